package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
)

// Hiding answers 404 for the paths that a server lacks, split into their segments, and leaves them out of discovery.
func Hiding(next http.Handler, lacks func(path []string) bool) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
		switch {
		case lacks(path):
			writer.Header().Set("Content-Type", "application/json")
			writer.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"not found"}`)
		case request.URL.Path == "/api", request.URL.Path == "/api/v1", path[0] == "apis" && len(path) < 4:
			request.Header.Set("Accept", "application/json") // discovery that is not aggregated
			request.Header.Del("Accept-Encoding")
			response := httptest.NewRecorder()
			next.ServeHTTP(response, request)
			content, err := response.Body.Bytes(), error(nil)
			if response.Code == http.StatusOK {
				content, err = without(content, path, lacks)
			}
			if err != nil {
				http.Error(writer, err.Error(), http.StatusBadGateway)
				return
			}
			maps.Copy(writer.Header(), response.Header())
			writer.Header().Set("Content-Length", strconv.Itoa(len(content)))
			writer.WriteHeader(response.Code)
			_, _ = io.Copy(writer, bytes.NewReader(content))
		default:
			next.ServeHTTP(writer, request)
		}
	}
}

// without returns discovery without the groups and resources that a server lacks.
func without(discovery []byte, path []string, lacks func(path []string) bool) ([]byte, error) {
	content := map[string]any{}
	if err := json.Unmarshal(discovery, &content); err != nil {
		return nil, errors.Join(errors.New("read discovery"), err)
	}
	for _, list := range []string{"groups", "resources"} {
		if elements, ok := content[list].([]any); ok {
			content[list] = slices.DeleteFunc(elements, func(element any) bool {
				name, _ := element.(map[string]any)["name"].(string)
				return lacks(append(slices.Clone(path), strings.Split(name, "/")...))
			})
		}
	}
	return json.Marshal(content)
}

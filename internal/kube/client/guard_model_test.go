package client

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// foreignServer is a model of an API server that holds objects of a run and of others. It interprets a request in every way in which an API
// server, or a proxy before it, might.
type foreignServer struct {
	// Run is the id of the run.
	Run string
	// Objects are the objects of others that a deletecollection may match.
	Objects []foreignObject
	// Excepted are paths of other objects that the run may change, and Created maps paths to the uids of those that it created.
	Excepted []string
	Created  map[string]string
}

// foreignObject is one object on the server.
type foreignObject struct {
	// Collection is the path of its collection.
	Collection, Name string
	Labels           labels.Set
}

// Changes returns what a request could change that is not the run's; empty for nothing. The request is one that a server received.
func (f foreignServer) Changes(request *http.Request, body []byte) string {
	methods := []string{request.Method}
	for name, values := range request.Header {
		if strings.HasPrefix(name, "X-") && strings.Contains(name, "Method") {
			methods = append(methods, values...)
		}
	}
	twice, err := url.PathUnescape(request.URL.Path)
	if err != nil {
		twice = request.URL.Path
	}
	for _, method := range methods {
		for _, at := range []string{request.URL.Path, path.Clean("/" + request.URL.Path), twice, path.Clean("/" + twice)} {
			if changed := f.changedBy(method, at, request, body); changed != "" {
				return strings.ToUpper(method) + " " + at + " changes " + changed
			}
		}
	}
	return ""
}

// target is what a path names.
type target struct {
	collection, group, namespace, resource, name, subresource string
	connects                                                  bool
}

// targetOf resolves a path as k8s.io/apiserver/pkg/endpoints/request does.
func targetOf(at string) (target, bool) {
	parts := strings.Split(strings.Trim(at, "/"), "/")
	t := target{}
	var prefix []string
	switch {
	case parts[0] == "api" && len(parts) > 2:
		prefix, parts = parts[:2], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		t.group, prefix, parts = parts[1], parts[:3], parts[3:]
	default:
		return t, false
	}
	if parts[0] == "proxy" || parts[0] == "watch" {
		t.connects, parts = parts[0] == "proxy", parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		t.namespace, prefix, parts = parts[1], append(slices.Clone(prefix), parts[:2]...), parts[2:]
	}
	if len(parts) == 0 {
		return t, false
	}
	t.resource, t.collection = parts[0], "/"+strings.Join(append(slices.Clone(prefix), parts[0]), "/")
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = parts[2]
	}
	t.connects = t.connects || slices.Contains([]string{"attach", "exec", "portforward", "proxy"}, t.subresource)
	return t, true
}

// changedBy returns what one interpretation of a request changes that is not the run's.
func (f foreignServer) changedBy(method, at string, request *http.Request, body []byte) string {
	t, ok := targetOf(at)
	reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
	switch {
	case ok && t.connects:
		if name := strings.Split(t.name, ":"); len(name) > 1 { // scheme:name:port
			t.name = name[len(name)-2+len(name)%2]
		}
		return f.foreign(t, t.name, nil)
	case reads:
		return ""
	case !ok:
		return "the server"
	case f.isDryRun(method, t, request, body):
		return ""
	case t.name != "":
		return f.foreign(t, t.name, requiredUIDs(method, request, body))
	case method == http.MethodDelete:
		return f.collected(t, request.URL.Query())
	case method == http.MethodPost && slices.Contains(reviewPaths, t.group+"/"+t.resource):
		return ""
	}
	return f.createdBy(t, request, body)
}

var reviewPaths = []string{
	"authentication.k8s.io/tokenreviews", "authentication.k8s.io/selfsubjectreviews", "authorization.k8s.io/subjectaccessreviews",
	"authorization.k8s.io/localsubjectaccessreviews", "authorization.k8s.io/selfsubjectaccessreviews", "authorization.k8s.io/selfsubjectrulesreviews",
}

// named reports whether a name contains the id of the run.
func (f foreignServer) named(name string) bool {
	return regexp.MustCompile(`(^|[-.])` + f.Run + `([-.]|$)`).MatchString(name)
}

// foreign describes an object that is not the run's.
func (f foreignServer) foreign(t target, name string, uids []any) string {
	uid, created := f.Created[t.collection+"/"+name]
	switch {
	case f.named(t.namespace), f.named(name):
		return ""
	case created && len(uids) > 0 && !slices.ContainsFunc(uids, func(required any) bool { return required != uid }):
		return ""
	case slices.Contains(f.Excepted, t.collection+"/"+name) && !t.connects:
		return ""
	}
	return strings.TrimSuffix(t.resource+" "+t.namespace+"/"+name+"/"+t.subresource, "/")
}

// createdBy returns what a POST creates, or binds, that is not the run's.
func (f foreignServer) createdBy(t target, request *http.Request, body []byte) string {
	names := valuesAt(body, either, "metadata", "name")
	for _, from := range valuesAt(body, either, "metadata", "generateName") {
		if text, _ := from.(string); text != "" && !slices.ContainsFunc(names, func(name any) bool { return name != "" }) {
			names = append(names, text[:min(len(text), 58)]+"x2k4p")
		}
	}
	names = slices.DeleteFunc(names, func(name any) bool { return name == "" })
	if len(names) == 0 || !isJSON(request, body) {
		names = append(names, "any")
	}
	for _, name := range names {
		text, _ := name.(string)
		if _, created := f.Created[t.collection+"/"+text]; created {
			continue // a create changes nothing that exists
		}
		if changed := f.foreign(t, text, nil); changed != "" {
			return changed
		}
	}
	return ""
}

// collected returns what a deletecollection deletes that is not the run's.
func (f foreignServer) collected(t target, query url.Values) string {
	if f.named(t.namespace) {
		return ""
	}
	if query.Has("resourceVersion") || query.Has("continue") || len(query["labelSelector"]) > 1 || len(query["fieldSelector"]) > 1 {
		return "an older state"
	}
	for _, name := range f.Selected(t.collection, query) {
		if changed := f.foreign(t, name, nil); changed != "" {
			return changed
		}
	}
	if selected, err := labels.Parse(query.Get("labelSelector")); err != nil || selected.Matches(labels.Set{}) {
		return "what others create meanwhile"
	}
	return ""
}

// Selected returns the names of the objects of a collection that a query selects.
func (f foreignServer) Selected(collection string, query url.Values) []string {
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil
	}
	var names []string
	for _, thing := range f.Objects {
		if thing.Collection == collection && byLabel.Matches(thing.Labels) && byField.Matches(fields.Set{"metadata.name": thing.Name}) {
			names = append(names, thing.Name)
		}
	}
	return names
}

// isDryRun reports whether a write is a dry-run to every server.
func (f foreignServer) isDryRun(method string, t target, request *http.Request, body []byte) bool {
	values := request.URL.Query()["dryRun"]
	dry := len(values) > 0 && !slices.ContainsFunc(values, func(value string) bool { return value != "All" }) && t.subresource != "token"
	if !dry || method != http.MethodDelete || len(body) == 0 {
		return dry
	}
	// A server takes every list for a dry-run, and refuses one with other values.
	exact, folded := valuesAt(body, exactly, "dryRun"), valuesAt(body, either, "dryRun")
	if len(exact) != 1 || len(folded) != 1 {
		return false
	}
	listed, _ := exact[0].([]any)
	return slices.Contains(listed, any("All")) && isJSON(request, body)
}

// isJSON reports whether every server decodes a body as JSON.
func isJSON(request *http.Request, body []byte) bool {
	kinds := request.Header.Values("Content-Type")
	return json.Valid(body) && (len(kinds) == 0 || len(kinds) == 1 && strings.HasSuffix(strings.Split(kinds[0], ";")[0], "json"))
}

// requiredUIDs returns the uids that a write requires of its object, for every decoder.
func requiredUIDs(method string, request *http.Request, body []byte) []any {
	in := map[string]string{http.MethodDelete: "preconditions", http.MethodPut: "metadata", http.MethodPatch: "metadata"}[method]
	if exact := valuesAt(body, exactly, in, "uid"); len(exact) > 0 && isJSON(request, body) {
		return append(exact, valuesAt(body, either, in, "uid")...)
	}
	return nil
}

// either matches the names of fields as some decoders do, and exactly as others do.
func either(key, name string) bool  { return strings.EqualFold(key, name) }
func exactly(key, name string) bool { return key == name }

// valuesAt returns every value that a decoder might take for a field, of duplicates as well.
func valuesAt(body []byte, matches func(key, name string) bool, names ...string) []any {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil
	}
	var values []any
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return values
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return values
		}
		text, _ := key.(string)
		var decoded any
		switch {
		case !matches(text, names[0]):
		case len(names) > 1:
			values = append(values, valuesAt(value, matches, names[1:]...)...)
		case json.Unmarshal(value, &decoded) == nil:
			values = append(values, decoded)
		}
	}
	return values
}

package client

import (
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// absences are the objects, by their paths, of which the server has said that they are not there, and which nobody has
// written since. What is refused of one of them does nothing, however often it is sent.
type absences struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (a *absences) has(request Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.paths[request.Path]
}

// note takes over what a response says of whether its object is there. What was written, or may have been, may be there.
func (a *absences) note(response Response) {
	request := response.sent
	if request.Object == nil || request.Object.Name == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case request.Method == http.MethodPost && request.Subresource == "":
		delete(a.paths, request.Path+"/"+request.Object.Name)
	case request.Subresource != "":
	case apierrors.IsNotFound(response.Err):
		a.paths[request.Path] = true
	default:
		delete(a.paths, request.Path)
	}
}

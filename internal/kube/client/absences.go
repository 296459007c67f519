package client

import (
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// absences are the paths of objects that the server did not find and that have not been written since. A rejected request to such a path
// changes nothing, so it can be repeated.
type absences struct {
	mu    sync.Mutex
	paths map[string]bool
}

// maxAbsences limits the memory of explorations, which create objects for hours. What is forgotten is not known to be absent.
const maxAbsences = 10_000

func (a *absences) has(request Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.paths[request.Path]
}

// note records whether the object of a response exists. An object that may have been written may exist.
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
		if len(a.paths) >= maxAbsences {
			clear(a.paths)
		}
		a.paths[request.Path] = true
	default:
		delete(a.paths, request.Path)
	}
}

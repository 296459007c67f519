package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Guard keeps a run from changing objects that it did not create. All clients of a run share one guard, and every request passes through it
// (see limitedTransport), including kubectl's.
//
// It permits reads, dry-runs and reviews; creates; writes to objects in the run's own namespaces; writes to objects that the run created or
// that carry its label; writes to objects that do not exist, which the API server rejects; and deletecollections in the run's own
// namespaces or with a selector that requires the run's label. It rejects all other requests. An object is read only when nothing is known
// about it.
type Guard struct {
	run string
	// read reads an object, with the credentials of the run.
	read func(context.Context, Request) Response

	mu sync.RWMutex
	// namespaces are those that the run created.
	namespaces map[string]bool
	// own are the paths of other objects that the run may write.
	own map[string]bool
}

// NewGuard returns the guard of a run that created these namespaces.
func NewGuard(run string, namespaces ...string) *Guard {
	guard := &Guard{run: run, namespaces: map[string]bool{}, own: map[string]bool{}}
	for _, namespace := range namespaces {
		guard.note(namespacePath + namespace)
	}
	return guard
}

// Except allows the run to write one object that it did not create, because the user requested it with a flag.
func (g *Guard) Except(collection Collection, name string) { g.note(collection.path() + "/" + name) }

// owns records an object that was read if the run created it.
func (g *Guard) owns(collection Collection, object *Object) {
	if g.isOwn(object) {
		g.note(collection.path() + "/" + object.GetName())
	}
}

const namespacePath = "/api/v1/namespaces/"

// note records that the run may write the object at a path. If it is a namespace, the run may also write the objects in it.
func (g *Guard) note(objectPath string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own[objectPath] = true
	if name, is := strings.CutPrefix(objectPath, namespacePath); is && !strings.Contains(name, "/") {
		g.namespaces[name] = true
	}
}

// forget drops a deleted object. Another user may create one with the same name.
func (g *Guard) forget(objectPath string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.own, objectPath)
}

func (g *Guard) knows(objectPath string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.own[objectPath]
}

func (g *Guard) ownsNamespace(name string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return name != "" && g.namespaces[name]
}

// NotOwned is the error for a request that was not sent because the run did not create its object.
type NotOwned struct {
	what, why string
}

func (n *NotOwned) Error() string { return "refusing to " + n.what + ": " + n.why }

// IsNotOwned reports whether an error is a NotOwned.
func IsNotOwned(err error) bool { return errors.As(err, new(*NotOwned)) }

const notCreated = "it was not created by this run"

// guarded wraps a transport with the guard. The base is the part of a URL's path that precedes the API's paths.
func (g *Guard) guarded(next http.RoundTripper, base string) http.RoundTripper {
	base = strings.TrimSuffix(base, "/")
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		write := writeOf(sent, strings.TrimPrefix(sent.URL.Path, base))
		if write == nil {
			return next.RoundTrip(sent)
		}
		if err := g.check(sent.Context(), write); err != nil {
			if sent.Body != nil {
				_ = sent.Body.Close() // required of a RoundTripper
			}
			return nil, err
		}
		response, err := next.RoundTrip(sent)
		if err == nil {
			g.learn(write, response.StatusCode)
		}
		return response, err
	})
}

// write is a request that would change an object.
type write struct {
	Request
	http *http.Request
	// object is the path of its object; empty for a create, whose body contains the name.
	object string
}

// connecting are the subresources that can change an object with any HTTP method.
var connecting = []string{"attach", "exec", "portforward", "proxy"}

// writeOf parses a request; nil when it changes nothing.
func writeOf(sent *http.Request, from string) *write {
	request := parsePath(sent.Method, from)
	subresource, _, _ := strings.Cut(request.Subresource, "/")
	switch {
	case slices.Contains(connecting, subresource):
	case sent.Method == http.MethodGet, sent.Method == http.MethodHead, sent.Method == http.MethodOptions:
		return nil
	case isCertainDryRun(sent), request.Object != nil && strings.HasSuffix(request.Object.Resource, "reviews"):
		return nil
	}
	made := &write{Request: request, http: sent}
	if about := request.Object; about != nil && about.Name != "" {
		made.object = strings.TrimSuffix(strings.TrimSuffix(from, "/"), "/"+request.Subresource)
	}
	return made
}

// isCertainDryRun reports whether a request changes nothing. The API server ignores the query of a DELETE that has a body, so the body must
// contain dryRun as well.
func isCertainDryRun(sent *http.Request) bool {
	if !isAll(sent.URL.Query()["dryRun"]) {
		return false
	}
	if sent.Method != http.MethodDelete || sent.Body == nil || sent.Body == http.NoBody {
		return true
	}
	options := metav1.DeleteOptions{}
	return json.Unmarshal(bodyIn(sent), &options) == nil && isAll(options.DryRun)
}

func isAll(dryRun []string) bool { return slices.Equal(dryRun, []string{metav1.DryRunAll}) }

// bodyIn returns a copy of a request's body; nil when it has none or cannot be read twice.
func bodyIn(sent *http.Request) []byte {
	if sent.GetBody == nil {
		return nil
	}
	body, err := sent.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	return content
}

// check returns the reason why a write is not sent; nil when it is permitted.
func (g *Guard) check(ctx context.Context, write *write) error {
	about := write.Object
	switch {
	case about == nil || path.Clean(write.Path) != strings.TrimSuffix(write.Path, "/") || slices.Contains([]string{"watch", "proxy"}, about.Resource):
		return &NotOwned{strings.ToLower(write.Method) + " " + write.Path, "the path names no object"}
	case g.ownsNamespace(about.Namespace), write.object != "" && g.knows(write.object):
		return nil
	case write.object != "":
		return g.lookUp(ctx, write)
	case write.Method == http.MethodPost || g.requiresLabel(write.http.URL.Query().Get("labelSelector")):
		return nil
	}
	return &NotOwned{
		fmt.Sprintf("delete the collection %s", describeCollection(about)),
		fmt.Sprintf("it may hold objects that this run did not create; select the run's own by %s=%s", RunLabel, g.run),
	}
}

func describeCollection(about *v1alpha1.ObjectReference) string {
	if about.Namespace == "" {
		return about.Resource
	}
	return fmt.Sprintf("%s in namespace %q", about.Resource, about.Namespace)
}

// requiresLabel reports whether a label selector matches only objects with the run's label.
func (g *Guard) requiresLabel(selector string) bool {
	parsed, err := labels.Parse(selector)
	if err != nil || g.run == "" {
		return false
	}
	requirements, _ := parsed.Requirements()
	return slices.ContainsFunc(requirements, func(requirement labels.Requirement) bool {
		exact := slices.Contains([]selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}, requirement.Operator())
		return exact && requirement.Key() == RunLabel && slices.Equal(requirement.ValuesUnsorted(), []string{g.run})
	})
}

// lookUp reads the object of a write when nothing is known about it.
func (g *Guard) lookUp(ctx context.Context, write *write) error {
	about := *write.Object
	read := g.read(ctx, Request{Method: http.MethodGet, Path: write.object, Object: &about})
	refusal := &NotOwned{fmt.Sprintf("%s %s", write.verb(), nameOf(write.Object, read.Object)), notCreated}
	switch {
	case apierrors.IsNotFound(read.Err):
		return nil // the API server rejects the write
	case read.Err != nil && g.isNamedAfter(about.Name):
		return nil
	case read.Err != nil:
		refusal.why = fmt.Sprintf("it could not be read to check whether this run created it: %v", read.Err)
		return refusal
	case read.Object != nil && g.isOwn(read.Object):
		g.note(write.object)
		return nil
	}
	return refusal
}

// verb names what a write does.
func (w *write) verb() string {
	verbs := map[string]string{http.MethodDelete: "delete", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodPost: "post"}
	verb := verbs[w.Method]
	if verb == "" {
		verb = strings.ToLower(w.Method)
	}
	if w.Subresource != "" {
		verb += " the " + w.Subresource + " of"
	}
	return verb
}

// nameOf names the object of a request in messages: ConfigMap ns/name.
func nameOf(about *v1alpha1.ObjectReference, read *Object) string {
	kind := about.Resource
	if read != nil && read.GetKind() != "" && read.GetKind() != "Status" {
		kind = read.GetKind()
	}
	return kind + " " + strings.TrimPrefix(about.Namespace+"/"+about.Name, "/")
}

// isOwn reports whether the run created an object, or a controller created it for one of the run's objects.
func (g *Guard) isOwn(object *Object) bool {
	return g.isLabelled(object) || g.isNamedAfter(object.GetName()) || g.isAbout(object)
}

func (g *Guard) isLabelled(object *Object) bool {
	return g.run != "" && object.GetLabels()[RunLabel] == g.run
}

// isNamedAfter reports whether a name contains the run's id. Controllers derive names from those of the objects that they act for.
func (g *Guard) isNamedAfter(name string) bool { return g.run != "" && strings.Contains(name, g.run) }

// isAbout reports whether an object is an Event about an object of the run.
func (g *Guard) isAbout(object *Object) bool {
	if object.GetKind() != "Event" {
		return false
	}
	for _, field := range []string{"involvedObject", "regarding"} { // in the core group, and in events.k8s.io
		name, _, _ := unstructured.NestedString(object.Object, field, "name")
		if g.isNamedAfter(name) {
			return true
		}
	}
	return false
}

// learn updates the known objects from the response to a write.
func (g *Guard) learn(write *write, statusCode int) {
	about := write.Object
	created := statusCode == http.StatusCreated || statusCode == http.StatusOK || statusCode == http.StatusAccepted
	switch {
	case write.object != "" && statusCode == http.StatusNotFound && write.Subresource == "":
		g.forget(write.object)
	case g.ownsNamespace(about.Namespace):
	case write.object == "" && write.Method == http.MethodPost && created:
		named := metav1.PartialObjectMetadata{}
		if json.Unmarshal(bodyIn(write.http), &named) == nil && named.Name != "" {
			g.note(strings.TrimSuffix(write.Path, "/") + "/" + named.Name)
		}
	case write.object != "" && write.Subresource == "" && statusCode == http.StatusCreated: // an update or an apply created it
		g.note(write.object)
	}
}

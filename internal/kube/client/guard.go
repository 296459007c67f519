package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Guard keeps a run from changing objects of others. All clients of a run share one guard, and every request passes through it (see
// limitedTransport), including kubectl's.
//
// It permits reads, reviews and dry-runs; everything in the run's namespaces; and elsewhere writes to the run's objects. A name with the
// run's id proves that a namespace or an object is the run's (see NamedBy). The decision needs no read, except for a deletecollection, so
// an object cannot change owners between the decision and the write. The guard rejects all other requests, and those that a server or a
// proxy could interpret in another way.
type Guard struct {
	run string
	// read reads a collection, with the credentials of the run.
	read func(context.Context, Request) Response

	mu sync.RWMutex
	// excepted are the paths of objects that the user named.
	excepted map[string]bool
	// created are the uids of objects that the run created under a name that the user chose, by path; empty before the create.
	created map[string]types.UID
}

// NewGuard returns the guard of a run. With an empty id it permits no writes.
func NewGuard(run string) *Guard {
	return &Guard{run: run, excepted: map[string]bool{}, created: map[string]types.UID{}}
}

// Except permits writes to one object that the run did not create, because the user requested it with a flag.
func (g *Guard) Except(collection Collection, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.excepted[collection.path()+"/"+name] = true
}

// noteCreated permits creating an object at a path or, with the uid of the created object, writes that name the uid. Without one it forgets
// no uid, because another worker may have created the object already.
func (g *Guard) noteCreated(path string, uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.created[path] = cmp.Or(uid, g.created[path])
}

// owns reports whether an object of a collection is the run's.
func (g *Guard) owns(collection Collection, object *Object) bool {
	if NamedBy(g.run, collection.Namespace) || BelongsTo(g.run, collection, object) {
		return true
	}
	collection.Namespace = cmp.Or(object.GetNamespace(), collection.Namespace)
	at := collection.path() + "/" + object.GetName()
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.excepted[at] || g.created[at] != "" && g.created[at] == object.GetUID()
}

// NotOwned is the error for a request that was not sent because its object may not be the run's.
type NotOwned struct {
	request, reason string
}

func (n *NotOwned) Error() string { return "refusing to " + n.request + ": " + n.reason }

// IsNotOwned reports whether an error is a NotOwned.
func IsNotOwned(err error) bool { return errors.As(err, new(*NotOwned)) }

// guarded wraps a transport with the guard. The base is the part of a URL's path that precedes the API's paths.
func (g *Guard) guarded(next http.RoundTripper, base string) http.RoundTripper {
	base = strings.TrimSuffix(base, "/")
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		sent, body, err := withCopiedBody(sent)
		if err != nil {
			return nil, err
		}
		request := parsePath(sent.Method, strings.TrimPrefix(sent.URL.Path, base))
		reason := g.refusal(sent, request, body, base)
		if reason == "" {
			return next.RoundTrip(sent)
		}
		if g.run == "" {
			reason = "it is not a read, a review or a dry-run, and this run changes nothing"
		}
		return nil, &NotOwned{describe(request), reason}
	})
}

// withCopiedBody reads the body of a request, and returns the request with a copy, so that what is checked is what is sent.
func withCopiedBody(sent *http.Request) (*http.Request, []byte, error) {
	if sent.Body == nil || sent.Body == http.NoBody {
		return sent, nil, nil
	}
	body, err := io.ReadAll(sent.Body)
	_ = sent.Body.Close() // required of a RoundTripper
	if err != nil {
		return nil, nil, fmt.Errorf("read the body of %s %s: %w", sent.Method, sent.URL.Path, err)
	}
	sent = sent.Clone(sent.Context())
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	sent.Body, _ = sent.GetBody()
	sent.ContentLength, sent.TransferEncoding = int64(len(body)), nil
	return sent, body, nil
}

// refusal returns the reason why a request is not sent; empty when it is permitted.
func (g *Guard) refusal(sent *http.Request, request Request, body []byte, base string) string {
	about := request.Object
	switch {
	case !isPlain(sent, base):
		return "its path or a header could mean something else to the server: send a plain path without an overridden method"
	case reads(request), reviews(request), isDryRun(sent, request, body):
		return ""
	case about == nil:
		return "the path names no object"
	case NamedBy(g.run, about.Namespace):
		return ""
	case !stores(request) && request.Subresource != "token": // of a ServiceAccount; it is issued in a dry-run, too
		return "outside of the run's namespaces, it can reach something of others: use an object in one of them"
	case about.Name != "":
		return g.refusalOf(sent, request, body)
	case request.Method == http.MethodPost:
		return g.refusalToCreate(sent, request, body)
	case request.Method == http.MethodDelete:
		return g.refusalToCollect(sent, request)
	}
	return "it writes to a collection"
}

// plainPath matches paths that every server and proxy splits in the same way: without escapes, parameters and empty elements, of which a
// slash at the end makes one.
var plainPath = regexp.MustCompile(`^(/|(/[A-Za-z0-9_.:~@+=,-]+)*)$`)

// overrides are the headers by which some proxies and frameworks replace the method of a request.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// isPlain reports whether a server cannot take a request for another one than the guard does.
func isPlain(sent *http.Request, base string) bool {
	from := sent.URL.Path
	plain := from
	if from == base+"/" { // the list of all paths
		plain = base
	}
	overridden := slices.ContainsFunc(overrides, func(name string) bool { return len(sent.Header.Values(name)) > 0 })
	return !overridden && sent.URL.Opaque == "" && sent.URL.RawPath == "" && plainPath.MatchString(plain) &&
		path.Clean("/"+plain) == cmp.Or(plain, "/") && (base == "" || strings.HasPrefix(from, base+"/"))
}

// storedSubresources are those whose writes change only the object at the path, and that follow dryRun.
var storedSubresources = []string{"", "status", "scale", "finalize", "approval", "binding", "eviction", "ephemeralcontainers", "resize"}

// stores reports whether a request is about a stored object and nothing else. Other subresources connect to something, such as proxy, whose
// names can have another form: https:payments:443. So does what follows /api/v1/proxy in the API of old versions.
func stores(request Request) bool {
	about := request.Object
	return about != nil && about.Resource != "proxy" && about.Resource != "watch" && slices.Contains(storedSubresources, request.Subresource)
}

// reads reports whether a request changes nothing, whatever it names. A read of an unknown subresource may connect to something.
func reads(request Request) bool {
	read := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, request.Method)
	return read && (request.Object == nil || request.Object.Resource == "pods" && request.Subresource == "log" || stores(request))
}

// reviewed are the resources of which a create stores nothing.
var reviewed = []schema.GroupResource{
	{Group: authenticationv1.GroupName, Resource: "tokenreviews"}, {Group: authenticationv1.GroupName, Resource: "selfsubjectreviews"},
	{Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"}, {Group: authorizationv1.GroupName, Resource: "localsubjectaccessreviews"},
	{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}, {Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"},
}

// reviews reports whether a request creates a review.
func reviews(request Request) bool {
	about := request.Object
	return request.Method == http.MethodPost && about != nil && about.Name == "" &&
		slices.Contains(reviewed, schema.GroupResource{Group: about.Group, Resource: about.Resource})
}

// isDryRun reports whether a request is certainly a dry-run. The API server ignores the query of a DELETE that has a body, so the body must
// contain dryRun as well.
func isDryRun(sent *http.Request, request Request, body []byte) bool {
	query, err := url.ParseQuery(sent.URL.RawQuery)
	if err != nil || !slices.Equal(query["dryRun"], []string{metav1.DryRunAll}) || !stores(request) {
		return false
	}
	if request.Method != http.MethodDelete || len(body) == 0 {
		return true
	}
	options, ok := plainObject(sent, body, "dryRun")
	values, _ := options["dryRun"].([]any)
	return ok && slices.Contains(values, any(metav1.DryRunAll)) // of several values the server accepts none
}

// plainObject decodes a JSON object as every server does. It fails for other encodings, for duplicate fields, and where one of the named
// fields is spelled in another case, which some decoders accept.
func plainObject(sent *http.Request, body []byte, fields ...string) (map[string]any, bool) {
	for i, header := range sent.Header.Values("Content-Type") { // JSON is the default
		if media, _, err := mime.ParseMediaType(header); err != nil || !strings.HasSuffix(media, "json") || i > 0 {
			return nil, false
		}
	}
	object := map[string]any{}
	if strict, err := json.UnmarshalStrict(body, &object, json.DisallowDuplicateFields); err != nil || len(strict) > 0 {
		return nil, false
	}
	return object, hasExactNames(object, fields...)
}

// hasExactNames reports whether no field of an object has one of these names in another case.
func hasExactNames(object map[string]any, fields ...string) bool {
	for key := range object {
		for _, field := range fields {
			if key != field && strings.EqualFold(key, field) {
				return false
			}
		}
	}
	return true
}

// names reports whether the run may write the object of a resource with this name, wherever it is.
func (g *Guard) names(about *v1alpha1.ObjectReference, name string) bool {
	resource := schema.GroupResource{Group: about.Group, Resource: about.Resource}
	return NamedBy(g.run, name) || g.run != "" && definesOwnGroup(resource, name)
}

// notNamed is why a write to an object of others is refused.
func (g *Guard) notNamed() string {
	return fmt.Sprintf("neither its name nor its namespace contains the id of this run, %s, so others may own it: use an object of the run", g.run)
}

// refusalOf is the refusal to write to the object at a path.
func (g *Guard) refusalOf(sent *http.Request, request Request, body []byte) string {
	at := strings.TrimSuffix(request.Path, "/"+request.Subresource)
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.names(request.Object, request.Object.Name) || g.excepted[at] || requiresUID(sent, body, g.created[at]) {
		return ""
	}
	return g.notNamed()
}

// requiresUID reports whether a write names the uid of its object, so that the server refuses it for another object.
func requiresUID(sent *http.Request, body []byte, uid types.UID) bool {
	in := map[string]string{http.MethodDelete: "preconditions", http.MethodPut: "metadata", http.MethodPatch: "metadata"}[sent.Method]
	object, ok := plainObject(sent, body, in)
	required, _ := object[in].(map[string]any)
	return ok && uid != "" && required["uid"] == string(uid) && hasExactNames(required, "uid")
}

// generatedFrom is the length to which the API server cuts a generateName, before it appends random letters.
const generatedFrom = 58

// refusalToCreate is the refusal to create an object, whose name is in the body.
func (g *Guard) refusalToCreate(sent *http.Request, request Request, body []byte) string {
	object, ok := plainObject(sent, body, "metadata")
	metadata, _ := object["metadata"].(map[string]any)
	if !ok || !hasExactNames(metadata, "name", "generateName") {
		return "the name in its body is not certain: send JSON without duplicate fields"
	}
	name, _ := metadata["name"].(string)
	if generate, _ := metadata["generateName"].(string); name == "" && generate != "" {
		name = generate[:min(len(generate), generatedFrom)] + "x"
	}
	at := request.Path + "/" + name
	g.mu.RLock()
	defer g.mu.RUnlock()
	if _, requested := g.created[at]; requested || g.names(request.Object, name) || g.excepted[at] {
		return ""
	}
	return fmt.Sprintf("neither its name, %q, nor its namespace contains the id of this run, %s: create it under a name that does", name, g.run)
}

// refusalToCollect is the refusal of a deletecollection outside of the run's namespaces. Labels can be copied, so it must select the run's
// label, and everything that it selects must be the run's by name. Only an object that gets the label between this read and the delete could be
// another user's. A server that ignores selectors also returns the objects of others.
func (g *Guard) refusalToCollect(sent *http.Request, request Request) string {
	query, err := url.ParseQuery(sent.URL.RawQuery)
	selected := url.Values{}
	for name, values := range query {
		switch {
		case len(values) != 1 || name == "continue" || strings.HasPrefix(name, "resourceVersion"):
			return "its query is ambiguous, or selects from an older state"
		case strings.HasSuffix(name, "Selector"):
			selected[name] = values
		}
	}
	if err != nil || !g.requiresLabel(selected.Get("labelSelector")) {
		return fmt.Sprintf("it may delete objects of others: select the run's own by %s=%s", RunLabel, g.run)
	}
	objects, next, read := g.read(sent.Context(), Request{Method: http.MethodGet, Path: request.Path, Object: request.Object, Query: selected}).page()
	if next != "" {
		read.Err = errors.New("the list is incomplete")
	}
	if read.Err != nil {
		return fmt.Sprintf("it could not be listed to check whether it selects objects of others: %v", read.Err)
	}
	for _, object := range objects {
		if !NamedBy(g.run, object.GetName()) && !NamedBy(g.run, object.GetNamespace()) {
			return fmt.Sprintf("it selects %s, whose name does not contain the id of this run, %s: remove the copied label %s", Title(object), g.run, RunLabel)
		}
	}
	return ""
}

// requiresLabel reports whether a label selector matches only objects with the run's label.
func (g *Guard) requiresLabel(selector string) bool {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return false
	}
	value, ok := parsed.RequiresExactMatch(RunLabel)
	return ok && value == g.run && g.run != ""
}

// describe names a request in messages: delete configmaps "a" in namespace "b".
func describe(request Request) string {
	verb, about := strings.ToLower(request.Method), request.Object
	if about == nil {
		return verb + " " + request.Path
	}
	verbs := map[string]string{http.MethodPut: "update", http.MethodPost: "create"}
	if named := verbs[request.Method]; named != "" {
		verb = named
	}
	if request.Subresource != "" {
		verb += " the " + request.Subresource + " of"
	}
	return verb + " " + describeObject(about)
}

func describeObject(about *v1alpha1.ObjectReference) string {
	text := about.Resource
	if about.Name != "" {
		text += fmt.Sprintf(" %q", about.Name)
	}
	if about.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", about.Namespace)
	}
	return text
}

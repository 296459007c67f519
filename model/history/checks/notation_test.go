package checks_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
	"github.com/deletion-conformance/deletion-conformance/model/history/removals"
)

// historyOf reads a history from clauses in the order of time, one each second. In capitals are events of the watch without a selector, and the
// other clauses are requests, each with its response after a colon:
//
//	ADDED a; ADDED d of a!; delete a Foreground; MODIFIED a foreground; DELETED d; DELETED a; get a : 404
//
// An object keeps what clauses before have shown of it. Its uid is its name, and resourceVersions count from 2, unless a clause names others.
// EXPIRED and RESUMED begin the watch's next stream, OTHER begins one of another watch, and INITIAL one of a third with initial events, which
// "BOOKMARK 12 ends" ends. An earlier round has removed the uid with a version. Names that begin with ns are those of namespaces; role and quiet are
// none of the round's objects. CHILD comes before an event of what an operator has created, whose name has that of its parent, as Secret/x-1, and
// QUIET is a moment at which the operator had time to finish. After "interrupted", the API server was restarted.
func historyOf(t *testing.T, clauses string) *history.History {
	r := &reader{t: t, version: 1, objects: map[string]*model.Object{}, pods: map[string]*history.Pod{}}
	r.history.Streams = []history.Stream{{ID: "the watch", From: "1"}}
	for clause := range strings.SplitSeq(clauses, ";") {
		r.read(clause)
		r.now += time.Second
	}
	return &r.history
}

type reader struct {
	t       *testing.T
	history history.History
	now     time.Duration
	version int
	objects map[string]*model.Object
	pods    map[string]*history.Pod
	words   []string
}

func (r *reader) read(clause string) {
	asked, answered, _ := strings.Cut(clause, ":")
	r.words = strings.Fields(asked)
	if len(r.words) == 0 {
		return
	}
	switch kind := r.next(); kind {
	case history.Added, history.Modified, history.Deleted:
		r.event(kind)
	case history.Bookmark:
		r.deliver(history.Event{
			At: r.now, Type: kind, Object: model.Object{ResourceVersion: r.next()}, InitialEventsEnd: slices.Contains(r.words, "ends"),
		})
	case "CHILD":
		r.child()
	case "QUIET":
		operated := r.operated()
		operated.Quiet = append(operated.Quiet, history.Moment{Version: strconv.Itoa(r.version), Children: len(operated.Children)})
	case "INITIAL":
		r.history.Streams = append(r.history.Streams, history.Stream{ID: "a third watch"})
	case "removed":
		r.history.Removed = map[string]string{r.next(): r.next()}
	case "EXPIRED", "RESUMED", "OTHER":
		id := map[bool]string{true: "another watch", false: "the watch"}[kind == "OTHER"]
		r.history.Streams = append(r.history.Streams, history.Stream{ID: id, From: r.next(), Resumed: kind == "RESUMED"})
		for _, missed := range r.words {
			last := &r.history.Streams[len(r.history.Streams)-1]
			last.Missed = append(last.Missed, history.Event{Type: history.Modified, Name: missed})
		}
	case "interrupted":
		r.history.Interrupted = true
	case "settled":
		r.history.Settled = strconv.Itoa(r.version)
	default:
		r.request(model.Verb(kind), strings.Fields(answered))
	}
}

func (r *reader) next() string {
	word := r.words[0]
	r.words = r.words[1:]
	return word
}

func (r *reader) duration() time.Duration {
	seconds, err := time.ParseDuration(r.next() + "s")
	NewWithT(r.t).Expect(err).NotTo(HaveOccurred())
	return seconds
}

func (r *reader) number() int64 {
	number, err := strconv.ParseInt(r.next(), 10, 64)
	NewWithT(r.t).Expect(err).NotTo(HaveOccurred())
	return number
}

// names are those that a word lists; none for "nothing".
func (r *reader) names() model.Names {
	word := r.next()
	if word == "nothing" {
		return ""
	}
	return model.NamesOf(strings.Split(word, ",")...)
}

func (r *reader) owners() model.Names {
	var owners model.Names
	for _, name := range r.names().List() {
		uid, blocks := strings.CutSuffix(name, "!")
		owners = owners.With(model.Owner{Name: uid, UID: uid, Blocks: blocks}.String())
	}
	return owners
}

func (r *reader) object(name string) *model.Object {
	if r.objects[name] == nil {
		r.objects[name], r.pods[name] = &model.Object{UID: name}, &history.Pod{Scheduled: true, Termination: 30}
	}
	if name != "quiet" && name != "role" && !strings.HasPrefix(name, "ns") && !strings.Contains(name, "/") && !slices.Contains(r.history.Names, name) {
		r.history.Names = append(r.history.Names, name)
	}
	return r.objects[name]
}

func (r *reader) event(kind string) {
	name := r.next()
	if kind == history.Added {
		delete(r.objects, name)
	}
	object := r.object(name)
	r.version++
	object.ResourceVersion = strconv.Itoa(r.version)
	r.describe(object, r.pods[name])
	r.version, _ = strconv.Atoi(object.ResourceVersion)
	pod := *r.pods[name]
	r.deliver(history.Event{At: r.now, Type: kind, Name: name, Object: *object, Pod: &pod})
}

func (r *reader) operated() *history.Operated {
	if r.history.Operated == nil {
		r.history.Operated = &history.Operated{}
	}
	return r.history.Operated
}

// child reads an event of a child.
func (r *reader) child() {
	r.event(r.next())
	last := &r.history.Streams[len(r.history.Streams)-1]
	event := last.Events[len(last.Events)-1]
	last.Events = last.Events[:len(last.Events)-1]
	_, name, _ := strings.Cut(event.Name, "/")
	parent, _, _ := strings.Cut(name, "-")
	for _, owner := range model.OwnersOf(event.Object.Owners) {
		event.Object.Owners = model.NamesOf(model.Owner{Name: parent, UID: owner.UID}.String())
	}
	operated := r.operated()
	operated.Children = append(operated.Children, history.Child{Event: event, Parent: parent})
}

func (r *reader) deliver(event history.Event) {
	to := &r.history.Streams[len(r.history.Streams)-1].Events
	if strings.HasPrefix(event.Name, "ns") {
		to = &r.history.Namespaces
	}
	*to = append(*to, event)
}

// describe reads what a clause shows of an object, and of a pod.
func (r *reader) describe(object *model.Object, pod *history.Pod) {
	for len(r.words) > 0 {
		switch word := r.next(); word {
		case "at":
			r.now = r.duration()
		case "uid":
			object.UID = r.next()
		case "version":
			object.ResourceVersion = strings.Trim(r.next(), "-")
		case "of":
			object.Owners = r.owners()
		case "holds":
			object.Finalizers = r.names()
		case "label":
			object.Label = r.next()
		case "value":
			object.Value = r.next()
		case "terminating":
			object.Terminating = true
		case "stray":
			object.Stray = true
		case "foreground":
			object.Terminating, object.Finalizers = true, model.Foreground
		case "orphan":
			object.Terminating, object.Finalizers = true, model.Orphan
		case "unscheduled":
			pod.Scheduled = false
		case "running", "stopped":
			pod.Running = word == "running"
		case "grace":
			grace := r.number()
			object.Terminating, pod.Grace, pod.Deadline = true, &grace, new(time.Unix(1000+grace, 0))
		case "deadline":
			pod.Deadline = new(time.Unix(1000+r.number(), 0))
		case "new":
			*object = model.Object{UID: object.UID, ResourceVersion: object.ResourceVersion}
		case "undeleted":
			object.Terminating, pod.Grace, pod.Deadline = false, nil, nil
		default:
			r.t.Fatalf("unknown word: %s", word)
		}
	}
}

// request reads a request and its response: a status code, "lost", and what the response shows of the object. A response to a list or
// deletecollection shows some objects by name.
func (r *reader) request(verb model.Verb, answer []string) {
	request := history.Request{Client: 1, Operation: model.Operation{Verb: verb}, Outcome: model.Outcome{Code: 200}}
	switch verb {
	case "list":
		request.Operation.Verb = model.Select
	case "deletecollection":
		request.Operation.Verb = model.Delete
	default:
		request.Name = r.next()
	}
	request.Return = -1
	r.ask(&request)
	if request.Call = r.now; request.Return < 0 {
		request.Return = r.now
	}
	if r.words = answer; len(answer) > 0 {
		request.Outcome.Code, _ = strconv.Atoi(r.next())
	}
	switch {
	case request.Name == "" && len(answer) > 1:
		request.Listing = &history.Listing{Versions: []string{r.next()}, Objects: map[string]model.Object{}}
		for _, name := range r.words {
			request.Listing.Objects[name] = *r.object(name)
		}
	case request.Name != "":
		r.answer(&request)
	}
	r.history.Requests = append(r.history.Requests, request)
}

// answer reads the object that a response shows.
func (r *reader) answer(request *history.Request) {
	if request.Operation.Verb == model.Create && request.Outcome.Succeeded() {
		delete(r.objects, request.Name)
	}
	object := *r.object(request.Name)
	change := request.Operation.Change
	for field, value := range map[*string]*string{&object.Label: change.Label, &object.Value: change.Value} {
		if value != nil {
			*field = *value
		}
	}
	if change.Finalizers != nil {
		object.Finalizers = *change.Finalizers
	}
	if len(r.words) > 0 {
		r.describe(&object, nil)
		request.Outcome.Object = new(object)
		if !request.Operation.DryRun {
			*r.object(request.Name) = object
		}
	}
}

// ask reads what a request asks for.
func (r *reader) ask(request *history.Request) {
	operation := &request.Operation
	for len(r.words) > 0 {
		switch word := r.next(); word {
		case "at":
			r.now = r.duration()
		case "until":
			request.Return = r.duration()
		case "uid":
			operation.UID = r.next()
		case "version":
			operation.ResourceVersion = r.next()
		case "from":
			request.Version = r.next()
		case model.PolicyBackground, model.PolicyForeground, model.PolicyOrphan:
			operation.Policy = word
		case "grace":
			operation.Grace = new(r.number())
		case "dry-run":
			operation.DryRun = true
		case "label":
			operation.Label = r.next()
			if request.Name != "" {
				operation.Label, operation.Change.Label = "", new(operation.Label)
			}
		case "value":
			operation.Change.Value = new(r.next())
		case "holds":
			operation.Change.Finalizers = new(r.names())
		default:
			r.t.Fatalf("unknown word: %s", word)
		}
	}
}

// row is a history that must be accepted, or refused for one property.
type row struct {
	rule    string
	clauses string
	broken  *history.Property
}

// deletesByUID adds to deletes the uid that clients require.
func deletesByUID(h *history.History) {
	for i, request := range h.Requests {
		if request.Operation.Verb == model.Delete {
			h.Requests[i].Operation.UID = cmp.Or(request.Operation.UID, request.Name)
		}
	}
}

// expectEach checks each history, after a change that makes it one of a scenario.
func expectEach(t *testing.T, change func(*history.History), rows []row) {
	for _, row := range rows {
		t.Run(row.rule, func(t *testing.T) {
			h := historyOf(t, row.clauses)
			change(h)
			broken := map[string]string{}
			for _, violation := range checks.Violations(h) {
				broken[violation.Property.ID] = violation.Message
			}
			if row.broken == nil {
				NewWithT(t).Expect(broken).To(BeEmpty())
				return
			}
			if row.broken != removals.StaysGone { // what shows a removed object often breaks another promise, too
				delete(broken, removals.StaysGone.ID)
			}
			NewWithT(t).Expect(broken).To(And(HaveLen(1), HaveKey(row.broken.ID)))
		})
	}
}

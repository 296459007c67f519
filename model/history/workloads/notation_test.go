package workloads

import (
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// reader reads a history of workloads from clauses like "ReplicaSet/a needs 2; Pod/p of a; delete Pod/p; -Pod/p". A clause that names an object is an
// event with what earlier ones have shown of it, and one with a minus is its removal. Each comes a second after the one before. The uid of an object
// is its name, unless another one is given.
type reader struct {
	t       *testing.T
	words   []string
	now     time.Duration
	version int
	events  map[string]history.Event
	history *history.History
}

func historyOf(t *testing.T, clauses string) *history.History {
	r := &reader{t: t, version: 100, events: map[string]history.Event{}, history: &history.History{}}
	for clause := range strings.SplitSeq(clauses, ";") {
		r.words = strings.Fields(clause)
		r.now += time.Second
		r.clause(r.next())
	}
	if r.history.Quiet == 0 {
		r.history.Quiet = len(r.history.Workloads)
	}
	return r.history
}

func (r *reader) clause(subject string) {
	switch subject {
	case "delete":
		r.deletion(model.Delete)
	case "evict":
		r.deletion(model.Evict)
	case "quiet":
		r.history.Quiet = len(r.history.Workloads)
	case "unsupervised":
		r.history.Unsupervised = true
	case "interrupted":
		r.history.Interrupted = true
	case "fault":
		r.history.Faults = append(r.history.Faults, history.Fault{At: r.now, Name: r.next(), Write: strings.Join(r.words, " ")})
	default:
		r.event(subject)
	}
}

func (r *reader) next() string {
	word := r.words[0]
	r.words = r.words[1:]
	return word
}

func (r *reader) number() int64 {
	number, err := strconv.ParseInt(r.next(), 10, 64)
	NewWithT(r.t).Expect(err).NotTo(HaveOccurred())
	return number
}

// deletion reads a delete or an eviction of a client, by the name and uid of an object.
func (r *reader) deletion(verb model.Verb) {
	name := r.next()
	request := history.Request{Client: 1, Name: name, Operation: model.Operation{Verb: verb, UID: bare(name)}, Outcome: model.Outcome{Code: 200}}
	for len(r.words) > 0 {
		switch word := r.next(); word {
		case "grace":
			request.Operation.Grace = new(r.number())
		case "uid":
			request.Operation.UID = r.next()
		case "refused":
			request.Outcome.Code = 403
		case "lost":
			request.Outcome.Code = 0
		default:
			request.Operation.Policy = word
		}
	}
	request.Call, request.Return = r.now, r.now
	r.history.Requests = append(r.history.Requests, request)
}

func (r *reader) event(subject string) {
	name, isRemoval := strings.CutPrefix(subject, "-")
	event, exists := r.events[name]
	kind, uid, _ := strings.Cut(name, "/")
	if event.Type = history.Modified; !exists {
		event = history.Event{Type: history.Added, Name: name, Object: model.Object{UID: uid}, Workload: &history.Workload{Kind: kind}}
	}
	details := *event.Workload
	event.Workload = &details
	for len(r.words) > 0 {
		r.describe(&event)
	}
	r.version++
	event.At, event.Object.ResourceVersion = r.now, strconv.Itoa(r.version)
	r.events[name] = event
	if isRemoval {
		event.Type = history.Deleted
		delete(r.events, name)
	}
	r.history.Workloads = append(r.history.Workloads, event)
}

// describe reads one thing that an event shows.
func (r *reader) describe(event *history.Event) {
	known, object := event.Workload, &event.Object
	switch word := r.next(); word {
	case "at":
		r.now = time.Duration(r.number()) * time.Second
	case "uid":
		object.UID = r.next()
	case "of":
		object.Owners, known.Controller = "", ""
		if uid := r.next(); uid != "nothing" {
			object.Owners, known.Controller = model.NamesOf(model.Owner{Name: uid, UID: uid, Blocks: true}.String()), uid
		}
	case "holds":
		object.Finalizers = model.NamesOf(strings.Split(r.next(), ",")...)
	case "released":
		object.Finalizers = ""
	case "terminating":
		object.Terminating = true
	case "needs":
		known.Replicas = r.number()
	case "template":
		known.Template = r.next()
	case "group":
		known.Group = r.next()
	case "node":
		known.Node = r.next()
	case "ready":
		known.Ready = true
	case "retains":
		known.Retains = true
	case "finished", "failed":
		known.Finished, known.Failed, known.Ready = true, word == "failed", false
	case "allows":
		known.Allowed = r.number()
	case "counts":
		known.Disrupted = model.NamesOf(strings.Split(strings.TrimSuffix(r.next(), "nobody"), ",")...)
	case "unready":
		known.Ready = false
	case "shows":
		known.Endpoints = model.NamesOf(strings.Split(r.next(), ",")...)
	default:
		r.t.Fatalf("unknown word: %s", word)
	}
}

// row is a history that must be accepted, or refused for one property.
type row struct {
	rule    string
	clauses string
	broken  *history.Property
}

func expectEach(t *testing.T, check func(*history.History) []history.Violation, rows []row) {
	for _, row := range rows {
		t.Run(row.rule, func(t *testing.T) {
			broken := map[string]string{}
			for _, violation := range check(historyOf(t, row.clauses)) {
				broken[violation.Property.ID] = violation.Message
			}
			if row.broken == nil {
				NewWithT(t).Expect(broken).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(broken).To(And(HaveLen(1), HaveKey(row.broken.ID)))
		})
	}
}

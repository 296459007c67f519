package scenarios

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// child is an event of a child, whose name has the kind.
func child(event, name, version string) history.Child {
	return history.Child{Parent: "x", Event: history.Event{Type: event, Name: name, Object: model.Object{UID: name, ResourceVersion: version}}}
}

func TestOperatedBy(t *testing.T) {
	g := NewWithT(t)
	seen := model.Object{Finalizers: model.NamesOf("a", "op.io/f", model.Foreground)}
	children := []history.Child{
		child(history.Added, "Secret/x-1", "7"), child(history.Added, "ConfigMap/x-2", "9"), child(history.Modified, "Secret/x-1", "8"),
		child(history.Added, "Secret/x-3", "9"), child(history.Deleted, "Secret/x-3", "10"),
	}

	g.Expect(*operatedBy("5", seen, children, "11")).To(Equal(history.Operated{
		Finalizers: "op.io/f", Kinds: map[string]int{"ConfigMap": 1, "Secret": 1}, Ordered: true,
	}))
	for name, store := range map[string]struct{ created, written string }{
		"ahead": {"8", "11"}, "behind": {"5", "9"}, "not numeric": {"a", "11"},
	} {
		g.Expect(operatedBy(store.created, seen, children, store.written).Ordered).To(BeFalse(), "children are in a store that is "+name)
	}
	g.Expect(operatedBy("5", seen, nil, "11").Ordered).To(BeFalse(), "nothing shows it")
}

func TestPrograms_Operator(t *testing.T) {
	g := NewWithT(t)
	programs := generate.Programs(1, optionsOf(Operator))
	var restarts, children, again, namespaces int
	for _, program := range programs {
		for i, intent := range program {
			switch {
			case intent.Verb == model.Restart:
				restarts++
				g.Expect(intent.Down.Milliseconds()).To(BeNumerically("<", longestDown))
			case intent.Part > 0:
				children++
			case intent.Namespace:
				namespaces++
			case intent.Verb == model.Delete:
				g.Expect(intent.UID).To(BeTrue())
			case intent.Verb == model.Create && i > 0 && program[i-1].Verb == model.Delete && program[i-1].Object == intent.Object:
				again++
			}
		}
	}
	for what, count := range map[string]int{"restarts": restarts, "children": children, "names that are used again": again, "namespaces": namespaces} {
		g.Expect(count).To(BeNumerically(">", 2), what)
	}
	g.Expect(deletesNamespace(programs)).To(BeTrue())
	g.Expect(deletesNamespace([]generate.Program{{{Verb: model.Delete}}})).To(BeFalse())
}

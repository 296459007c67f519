package suggest_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/suggest"
)

func TestNearest(t *testing.T) {
	for _, test := range []struct {
		given, want string
		known       []string
	}{
		{"jsn", "json", []string{"table", "json", "markdown"}},
		{"JSON", "json", []string{"table", "json", "markdown"}},
		{"biuld", "build", []string{"up", "build"}},
		{"gcx", "gc", []string{"kcm", "gc"}},
		{"abc", "", []string{"axy"}},
		{"cascad", "cascade", []string{"admission", "cascade", "finalizers"}},
		{"cascade.foreground.circel", "cascade.foreground.circle", []string{"cascade.foreground.chain", "cascade.foreground.circle", "cascade.background.circle"}},
		{"foreground.circle", "cascade.foreground.circle", []string{"cascade.foreground.chain", "cascade.foreground.circle"}},
		{"yaml", "", []string{"table", "json", "markdown"}},
		{"minikube", "", []string{"embedded", "kind"}},
		{"x", "", nil},
	} {
		t.Run(test.given, func(t *testing.T) {
			NewWithT(t).Expect(suggest.Nearest(test.given, test.known)).To(Equal(test.want))
		})
	}
}

func TestHint(t *testing.T) {
	g := NewWithT(t)
	g.Expect(suggest.Hint("embdeded", []string{"embedded", "kind"})).To(Equal(`; did you mean "embedded"?`))
	g.Expect(suggest.Hint("minikube", []string{"embedded", "kind"})).To(BeEmpty())
}

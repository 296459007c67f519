package manifest

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestDocumentsOfAFileComeInOrder(t *testing.T) {
	g := NewWithT(t)
	documents, err := decode(strings.NewReader(`---
apiVersion: example.com/v1
kind: Rack
metadata: {name: first}
---
---
# nothing but a comment
---
{"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 3}}
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(documents).To(HaveLen(2))
	g.Expect(documents[0].GetKind()).To(Equal("Rack"))
	g.Expect(documents[1].Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("size", BeNumerically("==", 3))))
}

func TestWhatIsNoManifestIsRefused(t *testing.T) {
	for _, test := range []struct{ name, content, says string }{
		{"nothing", "", "no manifest is in it"},
		{"only comments", "# nothing\n---\n", "no manifest is in it"},
		{"another document", "name: a pipeline\nsteps: []\n", "document 1 says no apiVersion and kind"},
		{"a list", "- one\n- two\n", "document 1"},
		{"the second", "apiVersion: v1\nkind: Secret\n---\nkind: Secret\n", "document 2 says no apiVersion and kind"},
		{"no YAML", "a: [b\n", "document 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := decode(strings.NewReader(test.content))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.says)))
		})
	}
}

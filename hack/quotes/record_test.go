package main

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestRecord_Current(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("record.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var compared record
	g.Expect(yaml.UnmarshalStrict(text, &compared)).To(Succeed())
	quotes, err := readQuotes()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(compared.Quotes).To(Equal(newRecord("", quotes).Quotes), "make quotes compares quotes with the pages, and records them")
}

func TestQuote_Compare(t *testing.T) {
	docs := t.TempDir()
	page := "{{< glossary_tooltip text=\"Pods\" term_id=\"pod\" >}} are\n  *deleted* [within](/docs/a) 30&nbsp;s.\n<td>202</td>\n<td>It's &quot;gone&quot;</td>\n"
	NewWithT(t).Expect(os.WriteFile(docs+"/page.md", []byte(page), 0o600)).To(Succeed())
	for _, test := range []struct {
		name, page, text string
		found            bool
	}{
		{"without markup", "page", "Pods are `deleted` within 30 s.", true},
		{"two parts", "page", "deleted ... It's \"gone\"", true},
		{"parts in another order", "page", "It's \"gone\" ... deleted", false},
		{"other words", "page", "Pods are removed", false},
		{"no page", "other", "Pods", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := quote{"id", test.page, test.text}.compare(docs)
			NewWithT(t).Expect(err == nil).To(Equal(test.found), "%v", err)
		})
	}
}

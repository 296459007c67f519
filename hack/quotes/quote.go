package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
	"github.com/deletion-conformance/deletion-conformance/model/history/workloads"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

// quote is the promise of a behavior, or of a property that explore checks.
type quote struct{ id, page, text string }

// record is what was compared.
type record struct {
	// Commit is the commit of the website.
	Commit string `json:"commit"`
	// Quotes are the checksums of the quotes by id.
	Quotes map[string]string `json:"quotes"`
}

func newRecord(commit string, quotes []quote) record {
	made := record{Commit: commit, Quotes: map[string]string{}}
	for _, quote := range quotes {
		made.Quotes[quote.id] = quote.checksum()
	}
	return made
}

// onWebsite matches the sources that are pages of the website. KEPs, API conventions and conformance tests are elsewhere.
var onWebsite = regexp.MustCompile(`^(concepts|reference|setup|tasks|tutorials)/`)

// readQuotes returns the quotes of pages of the website, sorted by id.
func readQuotes() ([]quote, error) {
	all, err := plan.Make(plan.Selection{Slow: true})
	if err != nil {
		return nil, err
	}
	var quotes []quote
	for _, behavior := range all.Catalog {
		quotes = append(quotes, quote{behavior.ID, behavior.Source, behavior.Promise})
	}
	for _, property := range slices.Concat(checks.Objects, checks.Ownership, checks.Grace, checks.Nodes, checks.Namespaces,
		checks.Operators, workloads.Properties) {
		quotes = append(quotes, quote{property.ID, property.Rule.Source, property.Rule.Promise})
	}
	quotes = slices.DeleteFunc(quotes, func(q quote) bool { return q.text == "" || !onWebsite.MatchString(q.page) })
	slices.SortFunc(quotes, func(a, b quote) int { return cmp.Compare(a.id, b.id) })
	return slices.Compact(quotes), nil
}

// checksum identifies the words and the page of a quote.
func (q quote) checksum() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(q.page+"\n"+q.text)))[:16]
}

// compare returns an error if the page does not contain the parts of the quote in their order.
func (q quote) compare(docs string) error {
	text, err := os.ReadFile(filepath.Join(docs, q.page+".md"))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(docs, q.page, "_index.md"))
	}
	if err != nil {
		return fmt.Errorf("%s: %w: correct its Source", q.id, err)
	}
	rest := plain(definition.ReplaceAllStringFunc(string(text), func(shortcode string) string {
		defined, _ := os.ReadFile(filepath.Join(docs, "reference", "glossary", definition.FindStringSubmatch(shortcode)[1]+".md"))
		return string(defined)
	}))
	for part := range strings.SplitSeq(q.text, "...") {
		_, after, found := strings.Cut(rest, plain(part))
		if !found {
			return fmt.Errorf("%s: %s does not contain %q: correct its Promise", q.id, q.page, strings.TrimSpace(part))
		}
		rest = after
	}
	return nil
}

// definition is the shortcode that includes an entry of the glossary.
var definition = regexp.MustCompile(`\{\{<\s*glossary_definition[^>]*?term_id="([^"]*)"[^>]*>\}\}`)

// markup is what a page contains besides words: each element is replaced.
var markup = []struct {
	element *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\{\{<\s*glossary_tooltip[^>]*?text="([^"]*)"[^>]*>\}\}`), "$1"},
	{regexp.MustCompile(`\{\{<\s*glossary_tooltip[^>]*?term_id="([^"]*)"[^>]*>\}\}`), "$1"},
	{regexp.MustCompile(`\{\{[<%].*?[%>]\}\}`), " "},
	{regexp.MustCompile(`</?[a-zA-Z][^>]*>`), " "},
	{regexp.MustCompile(`\[([^\]]*)\]\([^)\s]*\)`), "$1"},
	{regexp.MustCompile("[`*_\"]+"), ""},
	{regexp.MustCompile(`[\s\x{a0}]+`), " "},
	{regexp.MustCompile(` ([.,;:)])`), "$1"},
}

// plain returns the words of Markdown.
func plain(text string) string {
	text = html.UnescapeString(strings.ReplaceAll(text, "&lt;", " "))
	for _, known := range markup {
		text = known.element.ReplaceAllString(text, known.by)
	}
	return strings.TrimSpace(text)
}

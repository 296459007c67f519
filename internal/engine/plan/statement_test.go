package plan_test

import (
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// statementWords limits the words of a statement.
const statementWords = 30

var (
	// sentence matches the beginning and the end of a statement, and the boundary between two sentences.
	sentence  = regexp.MustCompile(`^[A-Z0-9].*[^. ]\.$`)
	sentences = regexp.MustCompile(`[.?!;:] `)
	// pronoun matches a first word that depends on a heading.
	pronoun = regexp.MustCompile(`(?i)^(it|its|one|ones|that|those|these|this|they|what|who|which|whoever|none|others?|so|also|go)\b`)
	promise = regexp.MustCompile(`\bmust\b`)
	// dialect matches words that the Kubernetes documentation does not use, or not with this meaning.
	dialect = regexp.MustCompile(`(?i)\b(judge[sd]?|anew|beside|besides|all the same|lets? be|goes by|go by|at last|says?|tells?|told|midway|meanwhile|harms?|harmless|unharmed|anybody|nobody|somebody|whatever|wish|namesakes?)\b`)
)

func TestCatalog_Statements(t *testing.T) {
	for _, behavior := range catalog(t) {
		t.Run(behavior.ID, func(t *testing.T) {
			g := NewWithT(t)
			statement := behavior.Statement
			g.Expect(statement).To(MatchRegexp(sentence.String()), "a sentence begins with a capital and ends with a full stop")
			g.Expect(statement).NotTo(MatchRegexp(sentences.String()), "a statement is one sentence")
			g.Expect(statement).NotTo(MatchRegexp(pronoun.String()), "the subject has a name")
			g.Expect(statement).NotTo(MatchRegexp(dialect.String()), "the words are those of the Kubernetes documentation")
			g.Expect(len(strings.Fields(statement))).To(BeNumerically("<=", statementWords), "a statement is short")
			if behavior.Level == v1alpha1.Observed {
				g.Expect(statement).NotTo(MatchRegexp(promise.String()), "what is observed is not promised")
			} else {
				g.Expect(statement).To(MatchRegexp(promise.String()), "what is promised must be so")
			}
		})
	}
}

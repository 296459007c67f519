package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// ranWith returns the report of a run of one behavior.
func ranWith(id string, outcome v1alpha1.Outcome) v1alpha1.Report {
	return reporttest.Run("run", 0, reporttest.OnCluster("local", reporttest.Ran(id, "holds", outcome)))
}

func TestStation(t *testing.T) {
	const id = "b.first"
	e := experiment{Mutant{Name: "x", KilledBy: []string{id}}, madeUp[7:8]}
	for name, test := range map[string]struct {
		with, without v1alpha1.Outcome
		failure       error
		message       string
	}{
		"killed":                 {with: v1alpha1.Failed, without: v1alpha1.Passed},
		"survived":               {with: v1alpha1.Passed, without: v1alpha1.Passed, message: "it was not killed by b.first"},
		"fails afterwards":       {with: v1alpha1.Failed, without: v1alpha1.Failed, message: "afterwards, without the mutant: these behaviors did not pass: b.first"},
		"is skipped afterwards":  {with: v1alpha1.Failed, without: v1alpha1.Skipped, message: "these behaviors did not pass: b.first"},
		"the run itself fails":   {with: v1alpha1.Failed, failure: errors.New("no response"), message: "no response"},
		"errored with a mutant":  {with: v1alpha1.Errored, without: v1alpha1.Passed, message: "it was not killed by b.first"},
		"errored without mutant": {with: v1alpha1.Failed, without: v1alpha1.Errored, message: "did not pass"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l, _ := fake(t)
			s := l.station("one")
			s.cluster, s.served = embedded.New(""), 1 // as if it ran
			g.Expect(s.prepare(s.folder(), Mutant{Name: noMutant})).To(Succeed())
			active := func() string {
				content, err := os.ReadFile(filepath.Join(s.binaries(), switchName))
				g.Expect(err).NotTo(HaveOccurred())
				return strings.TrimSpace(string(content))
			}
			var order []string
			s.behave = func(_ context.Context, _ experiment, reports string) (v1alpha1.Report, error) {
				order = append(order, active())
				if reports == "" {
					return ranWith(id, test.without), nil
				}
				return ranWith(id, test.with), errors.Join(test.failure, os.MkdirAll(reports, 0o755))
			}
			whole, err := s.test(t.Context(), e)
			g.Expect(active()).To(Equal(noMutant))
			g.Expect(order[0]).To(Equal("x"))
			if test.message != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.message)))
				g.Expect(l.path("runs", "x", "reports")).NotTo(BeADirectory(), "-again must not use them")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(order).To(HaveExactElements("x", noMutant))
			g.Expect(missed(whole)).To(ConsistOf(id))
			g.Expect(s.served).To(Equal(2))
		})
	}
}

func TestClasses(t *testing.T) {
	g := NewWithT(t)
	of := func(m Mutant) class { return experiment{m, onlyNamed.of(madeUp, m)}.class() }
	g.Expect(of(Mutant{KilledBy: []string{"b.first"}})).To(Equal(sharing))
	g.Expect(of(Mutant{KilledBy: []string{"b.first"}, OwnCluster: "acts only at start"})).To(Equal(alone))
	g.Expect(of(Mutant{KilledBy: []string{"a.one.on-node"}, Node: true})).To(Equal(sharingNode))
	g.Expect(of(Mutant{KilledBy: []string{"a.one.on-node"}, Node: true, OwnCluster: "acts only at start"})).To(Equal(ownNode))
	g.Expect(of(Mutant{KilledBy: []string{"a.one.slow"}})).To(Equal(sleeping))
	g.Expect(of(Mutant{})).To(Equal(alone), "a control")
}

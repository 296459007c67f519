package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTouchedMutants(t *testing.T) {
	g := NewWithT(t)
	catalog := slices.Clone(madeUp[7:9])
	catalog[0].File, catalog[1].File = "suites/b/first.go", "suites/b/second.go"
	mutants := []Mutant{
		{Name: "b/named", KilledBy: []string{"b.second"}},
		{Name: "b/own", KilledBy: []string{"b.first"}},
		{Name: "b/other", KilledBy: []string{"b.first"}},
	}
	names := func(files ...string) (names []string) {
		for _, mutant := range touched(mutants, catalog, files) {
			names = append(names, mutant.Name)
		}
		return names
	}
	g.Expect(names("test/mutation/mutants/b/own.yaml", "suites/b/second.go")).To(HaveExactElements("b/own", "b/named"))
	g.Expect(names("suites/b/first.go")).To(HaveExactElements("b/own", "b/other"))
	g.Expect(names("test/mutation/histories/b/own.yaml", "suites/b/third.go", "README.md")).To(BeEmpty())
}

func TestChangedFiles(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	do := func(arguments ...string) {
		t.Helper()
		_, err := git(t.Context(), folder, append([]string{"-c", "user.name=n", "-c", "user.email=e@example.invalid"}, arguments...)...)
		g.Expect(err).NotTo(HaveOccurred())
	}
	commit := func(file string) {
		t.Helper()
		g.Expect(os.WriteFile(filepath.Join(folder, file), nil, 0o644)).To(Succeed())
		do("add", ".")
		do("commit", "-q", "-m", file)
	}
	_, err := changedFiles(t.Context(), folder)
	g.Expect(err).To(HaveOccurred(), "no repository")
	do("init", "-q", "-b", "main")
	commit("one")
	_, err = changedFiles(t.Context(), folder)
	g.Expect(err).To(MatchError(ContainSubstring("history")))
	commit("two")
	g.Expect(changedFiles(t.Context(), folder)).To(ConsistOf("two"), "on main, the last commit")
	do("checkout", "-q", "-b", "change")
	commit("three")
	commit("four")
	g.Expect(os.WriteFile(filepath.Join(folder, "five"), nil, 0o644)).To(Succeed())
	g.Expect(changedFiles(t.Context(), folder)).To(ConsistOf("three", "four", "five"))
}

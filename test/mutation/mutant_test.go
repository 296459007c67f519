package main

import (
	"slices"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

func TestHistories(t *testing.T) {
	mutants, err := readMutants(ofHistories)
	if err != nil {
		t.Fatal(err)
	}
	for _, mutant := range mutants {
		if _, err := injection.Select(mutant.Inject, scenarioOf(mutant, 0)); err != nil {
			t.Errorf("%s: %v", mutant.Name, err)
		}
		for _, id := range mutant.KilledBy {
			if !slices.ContainsFunc(scenarioOf(mutant, 0).Properties, func(p *history.Property) bool { return p.ID == id }) {
				t.Errorf("%s is to be found by %s, which is no property of scenario %s", mutant.Name, id, scenarioOf(mutant, 0))
			}
		}
	}
}

// The source differs between versions of Kubernetes; this test detects it without a build.
func TestMutants_Apply(t *testing.T) {
	for _, folder := range []string{ofBehaviors, ofHistories} {
		t.Run(folder, func(t *testing.T) { everyMutantApplies(t, folder) })
	}
}

func everyMutantApplies(t *testing.T, folder string) {
	t.Helper()
	t.Chdir("../..")
	mutants, err := readMutants(folder)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := sourcesOf(t.Context(), mutants)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sources.mutate(mutants); err != nil {
		t.Error(err)
	}
	for _, mutant := range mutants {
		if !t.Failed() {
			break
		}
		if _, err := sources.mutate([]Mutant{mutant}); err != nil {
			t.Error(err) // all that do not apply
		}
	}
}

func TestMutate(t *testing.T) {
	const source = `package p

func (T) decide(_ int, names ...string) (bool, error) {
	if len(names) > 0 {
		return true, nil
	}
	return false, nil
}

func act() {
	println("act")
}
`
	mutated, err := mutate([]byte(source), "p.go", []Mutant{
		{Name: "a/one", Breaks: "Never decides.", Changes: []Change{{File: "p.go", Function: "decide", Old: "if len(names) > 0 {", New: "if false {"}}},
		{Name: "a/two", Breaks: "Does not act.", Changes: []Change{{File: "p.go", Function: "act", Old: `println("act")`}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `package p

func (mutantReceiver0 T) decide(mutantArgument0 int, names ...string) (bool, error) {
	if activeMutant() == "a/one" {
		return mutantReceiver0.decideMutant_a_one(mutantArgument0, names...)
	}

	if len(names) > 0 {
		return true, nil
	}
	return false, nil
}

func act() {
	if activeMutant() == "a/two" {
		actMutant_a_two()
		return
	}

	println("act")
}

// Never decides.
func (T) decideMutant_a_one(_ int, names ...string) (bool, error) {
	if false {
		return true, nil
	}
	return false, nil
}

// Does not act.
func actMutant_a_two() {

}
`
	if string(mutated) != want {
		t.Errorf("mutated:\n%s\nwant:\n%s", mutated, want)
	}
}

func TestMutate_UnclearChange(t *testing.T) {
	const source = "package p\n\nfunc f() {\n\tg()\n\th()\n\tg()\n}\n"
	for name, change := range map[string]Change{
		"lines that are not there": {Function: "f", Old: "i()", New: "h()"},
		"lines that occur twice":   {Function: "f", Old: "g()", New: "h()"},
		"no change":                {Function: "f", Old: "h()", New: "\th()"},
		"no such function":         {Function: "i", Old: "h()", New: "g()"},
	} {
		change.File = "p.go"
		if _, err := mutate([]byte(source), "p.go", []Mutant{{Name: "a/one", Changes: []Change{change}}}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

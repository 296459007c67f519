package main

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

//go:embed clauses.yaml
var clausesFile []byte

// clauses are the phrases of a behavior's statement that can be false on their own, in the order of the statement, by the behavior's id.
// The entry oneClause lists the ids of behaviors whose statement has only one.
type clauses map[string][]string

// oneClause is no id of a behavior, as these contain a dot.
const oneClause = "single"

// connecting are the words that may stand between the clauses of a statement.
var connecting = strings.Fields("a an the and or but also then so after before until when while if as because in of on for with it its they their must")

func readClauses() (clauses, error) {
	all := clauses{}
	if err := yaml.UnmarshalStrict(clausesFile, &all); err != nil {
		return nil, fmt.Errorf("read clauses.yaml: %w", err)
	}
	return all, nil
}

// check finds statements that the clauses do not cover, clauses that no mutant breaks, mutants that name a clause that is not there, and
// behaviors without an entry.
func (c clauses) check(mutants []Mutant, exempt map[string]string, catalog []plan.Behavior) error {
	var errs []error
	broken := map[string]bool{}
	for _, mutant := range mutants {
		for _, entry := range mutant.Clauses {
			broken[entry] = true
			if !slices.Contains(c.names(entry), entry) {
				errs = append(errs, fmt.Errorf("%s names %s, which is no clause: see clauses.yaml", mutant.Name, entry))
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(exempt)) {
		if strings.Contains(entry, "#") && !slices.Contains(c.names(entry), entry) {
			errs = append(errs, fmt.Errorf("exempt.yaml has %s, which is no clause: see clauses.yaml", entry))
		}
	}
	errs = append(errs, c.complete(exempt, catalog)...)
	for _, id := range c.ids() {
		at := slices.IndexFunc(catalog, func(b plan.Behavior) bool { return b.ID == id })
		if at < 0 {
			errs = append(errs, fmt.Errorf("clauses.yaml has %s, which is no behavior: see `runner list`", id))
			continue
		}
		if err := covers(c[id], catalog[at].Statement); err != nil {
			errs = append(errs, fmt.Errorf("clauses.yaml, %s: %w", id, err))
		}
		for _, entry := range c.names(id) {
			if !broken[entry] && exempt[entry] == "" {
				errs = append(errs, fmt.Errorf("no mutant breaks %s, %q", entry, c.phrase(entry)))
			}
		}
	}
	return errors.Join(errs...)
}

// complete finds behaviors that are neither split into clauses, nor listed as those with one, nor exempt, and those that are listed wrongly.
func (c clauses) complete(exempt map[string]string, catalog []plan.Behavior) []error {
	var errs []error
	for _, behavior := range catalog {
		listed, split := slices.Contains(c[oneClause], behavior.ID), len(c[behavior.ID]) > 0
		switch {
		case listed && split:
			errs = append(errs, fmt.Errorf("clauses.yaml has clauses of %s, and lists it under %q", behavior.ID, oneClause))
		case !listed && !split && exempt[behavior.ID] == "":
			errs = append(errs, fmt.Errorf("clauses.yaml has no clauses of %s: if no part of its statement can be false on its own, list it under %q",
				behavior.ID, oneClause))
		}
	}
	for _, id := range c[oneClause] {
		if !slices.ContainsFunc(catalog, func(b plan.Behavior) bool { return b.ID == id }) {
			errs = append(errs, fmt.Errorf("clauses.yaml lists %s under %q, which is no behavior: see `runner list`", id, oneClause))
		}
	}
	return errs
}

// ids returns the behaviors whose statement has several clauses.
func (c clauses) ids() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(id string) bool { return id == oneClause })
}

// names returns the clauses of a behavior, as mutants name them: finalizers.held#1, finalizers.held#2.
func (c clauses) names(entry string) []string {
	id, _, _ := strings.Cut(entry, "#")
	var names []string
	for i := range c[id] {
		names = append(names, id+"#"+strconv.Itoa(i+1))
	}
	return names
}

func (c clauses) phrase(entry string) string {
	id, _, _ := strings.Cut(entry, "#")
	return c[id][slices.Index(c.names(entry), entry)]
}

// covers checks that the phrases occur in a statement in this order, and that only connecting words are left.
func covers(phrases []string, statement string) error {
	rest, left := statement, ""
	for _, phrase := range phrases {
		before, after, ok := strings.Cut(rest, phrase)
		if !ok {
			return fmt.Errorf("the statement %q does not continue with %q", statement, phrase)
		}
		left += before + " "
		rest = after
	}
	for word := range strings.FieldsSeq(left + rest) {
		if word = strings.ToLower(strings.Trim(word, ",.:;()")); word != "" && !slices.Contains(connecting, word) {
			return fmt.Errorf("no clause contains %q of the statement %q", word, statement)
		}
	}
	return nil
}

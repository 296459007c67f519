package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

// known is everything there is.
type known struct {
	defects     []Defect
	unplantable map[string]string
	catalogue   []plan.Behavior
}

// readKnown reads the defects and the catalogue, and fails when they do not go together.
func readKnown() (known, error) {
	defects, err := readDefects()
	if err != nil {
		return known{}, err
	}
	unplantable, err := readUnplantable()
	if err != nil {
		return known{}, err
	}
	all, err := plan.Make(plan.Selection{Slow: true})
	if err != nil {
		return known{}, err
	}
	return known{defects, unplantable, all.Catalogue}, check(defects, unplantable, all.Catalogue)
}

// list prints the chosen defects, and what no defect names.
func (k known) list(out io.Writer, chosen []Defect) {
	for _, defect := range chosen {
		_, _ = fmt.Fprintf(out, "%-44s %s\n", defect.Name, defect.Breaks)
	}
	if missing := unnamed(k.defects, k.unplantable, k.catalogue); len(missing) > 0 {
		_, _ = fmt.Fprintf(out, "\nNo defect names these behaviours (%d):\n  %s\n", len(missing), strings.Join(missing, "\n  "))
	}
}

//go:embed unplantable.yaml
var unplantableFile []byte

// readUnplantable reads which behaviours no defect can make fail, and why.
func readUnplantable() (map[string]string, error) {
	unplantable := map[string]string{}
	if err := yaml.UnmarshalStrict(unplantableFile, &unplantable); err != nil {
		return nil, fmt.Errorf("read unplantable.yaml: %w", err)
	}
	return unplantable, nil
}

// check finds what defects and unplantable.yaml say of behaviours that cannot be.
func check(defects []Defect, unplantable map[string]string, catalogue []plan.Behavior) error {
	var wrong []error
	exists := func(id string) bool {
		return slices.ContainsFunc(catalogue, func(b plan.Behavior) bool { return b.ID == id })
	}
	for _, defect := range defects {
		for _, id := range defect.Noticed {
			if !exists(id) {
				wrong = append(wrong, fmt.Errorf("%s is to be noticed by %s, which is no behaviour: see `runner list`", defect.Name, id))
			}
			if unplantable[id] != "" {
				wrong = append(wrong, fmt.Errorf("%s is to be noticed by %s, of which unplantable.yaml says that no defect can exist", defect.Name, id))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unplantable)) {
		if !exists(id) {
			wrong = append(wrong, fmt.Errorf("unplantable.yaml has %s, which is no behaviour: see `runner list`", id))
		}
		if strings.TrimSpace(unplantable[id]) == "" {
			wrong = append(wrong, fmt.Errorf("unplantable.yaml does not say why no defect makes %s fail", id))
		}
	}
	return errors.Join(wrong...)
}

// unnamed are behaviours that no defect names, though one could.
func unnamed(defects []Defect, unplantable map[string]string, catalogue []plan.Behavior) []string {
	var ids []string
	for _, behavior := range catalogue {
		named := slices.ContainsFunc(defects, func(d Defect) bool { return slices.Contains(d.Noticed, behavior.ID) })
		if !named && unplantable[behavior.ID] == "" {
			ids = append(ids, behavior.ID)
		}
	}
	return ids
}

package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/suggest"
)

// needsKey is the key of a label filter for the features that behaviors need.
const needsKey = "needs"

var (
	// expressions are the regular expressions of a label filter.
	expressions = regexp.MustCompile(`/[^/]*/`)
	// setOperations are the operations of a label filter on the values of a key, such as "needs: containsAny {gc, kcm}".
	setOperations = regexp.MustCompile(`([^&|!,():{}\s]+)\s*:\s*(\w+)\s*(\{[^}]*\}|[^&|!,(){}]*)`)
	// separators stand between the labels of a label filter.
	separators = regexp.MustCompile(`[&|!,()]+`)
)

// labels are the labels of all behaviors, in lower case: Ginkgo's filters ignore the case.
type labels map[string]bool

// add adds the labels of a spec.
func (l labels) add(spec types.SpecReport) {
	for _, label := range spec.Labels() {
		l[strings.ToLower(label)] = true
	}
}

// check refuses a label filter with a label that no behavior has. A filter that is otherwise right would select less than was meant.
func (l labels) check(filter string, suites []string) error {
	rest := expressions.ReplaceAllString(filter, "")
	for _, operation := range setOperations.FindAllStringSubmatch(rest, -1) {
		if err := l.checkSet(filter, operation[1], operation[3]); err != nil {
			return err
		}
	}
	for _, label := range separators.Split(setOperations.ReplaceAllString(rest, ""), -1) {
		label = strings.TrimSpace(label)
		switch {
		case label == "" || l[strings.ToLower(label)]:
		case slices.Contains(suites, label):
			return fmt.Errorf("--label-filter %q: %q is a suite; select it with --suite %s", filter, label, label)
		default:
			return l.unknown(filter, "the label", label, l.plain())
		}
	}
	return nil
}

// checkSet refuses an operation on an unknown key or feature.
func (l labels) checkSet(filter, key, values string) error {
	if key != needsKey {
		if slices.ContainsFunc(l.all(), func(label string) bool { return strings.HasPrefix(label, strings.ToLower(key)+":") }) {
			return nil
		}
		return l.unknown(filter, "labels with the key", key, []string{needsKey})
	}
	features := make([]string, len(v1alpha1.Features))
	for i, feature := range v1alpha1.Features {
		features[i] = string(feature)
	}
	for value := range strings.FieldsFuncSeq(values, func(r rune) bool { return strings.ContainsRune("{}, ", r) }) {
		if !slices.Contains(features, strings.ToLower(value)) {
			return l.unknown(filter, "the feature", value, features)
		}
	}
	return nil
}

func (l labels) unknown(filter, what, given string, known []string) error {
	return fmt.Errorf("--label-filter %q: no behavior has %s %q; `runner list` prints ids, levels and features%s", filter, what, given, suggest.Hint(given, known))
}

// all are the labels in their order.
func (l labels) all() []string {
	all := make([]string, 0, len(l))
	for label := range l {
		all = append(all, label)
	}
	slices.Sort(all)
	return all
}

// plain are the labels without a key: ids, levels and the like.
func (l labels) plain() []string {
	return slices.DeleteFunc(l.all(), func(label string) bool { return strings.Contains(label, ":") })
}

package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/suggest"
)

var (
	// expressions are the regular expressions of a label filter.
	expressions = regexp.MustCompile(`/[^/]*/`)
	// setOperations are the operations of a label filter on the values of a key, such as "features: containsAny {gc, kcm}".
	setOperations = regexp.MustCompile(`([^&|!,():{}\s]+)\s*:\s*(\w+)\s*(\{[^}]*\}|[^&|!,(){}]*)`)
	// separators stand between the labels of a label filter.
	separators = regexp.MustCompile(`[&|!,()]+`)
)

// labels are the labels of all behaviors as Ginkgo's filters compare them: in lower case, and without spaces around key and value.
type labels map[string]bool

// add adds the labels of a spec.
func (l labels) add(spec types.SpecReport) {
	for _, label := range spec.Labels() {
		key, value, isSet := strings.Cut(strings.ToLower(label), ":")
		if isSet {
			key = strings.TrimSpace(key) + ":" + strings.TrimSpace(value)
		}
		l[key] = true
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

// checkSet refuses an operation on a key or a value that no behavior has.
func (l labels) checkSet(filter, key, values string) error {
	if keys := l.keys(); !slices.Contains(keys, strings.ToLower(key)) {
		return l.unknown(filter, "labels with the key", key, keys)
	}
	for value := range strings.SplitSeq(strings.Trim(values, "{} "), ",") {
		label := strings.ToLower(key + ":" + strings.TrimSpace(value))
		if value != "" && !l[label] {
			return l.unknown(filter, "the label", label, l.all())
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

// keys are the keys of the labels that have one.
func (l labels) keys() []string {
	var keys []string
	for _, label := range l.all() {
		if key, _, isSet := strings.Cut(label, ":"); isSet {
			keys = append(keys, key)
		}
	}
	return keys
}

// plain are the labels without a key: ids, levels and the like.
func (l labels) plain() []string {
	return slices.DeleteFunc(l.all(), func(label string) bool { return strings.Contains(label, ":") })
}

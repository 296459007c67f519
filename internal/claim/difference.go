package claim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

const (
	// maxDifferences limits the differences that are listed.
	maxDifferences = 10
	// valueLength limits a value in a difference, in characters.
	valueLength = 80
)

// differences returns where a claim states something else than what follows from its report.
func differences(stated, derived v1alpha1.ConformanceReport) []Problem {
	stated.Evidence, derived.Evidence = v1alpha1.ClaimEvidence{}, v1alpha1.ClaimEvidence{}
	var d comparison
	d.compare("", plain(stated), plain(derived))
	if len(d) > maxDifferences {
		d = append(d[:maxDifferences], problem("claim", fmt.Sprintf("%d more fields do not follow from the report", len(d)-maxDifferences)))
	}
	return d
}

// plain returns the claim as maps, lists and values.
func plain(claim v1alpha1.ConformanceReport) (value any) {
	encoded, err := json.Marshal(claim)
	if err == nil {
		err = json.Unmarshal(encoded, &value)
	}
	if err != nil {
		return err.Error() // a time beyond the year 9999
	}
	return value
}

// comparison lists the differences of two values.
type comparison []Problem

func (c *comparison) compare(path string, stated, derived any) {
	switch derived := derived.(type) {
	case map[string]any:
		if stated, ok := stated.(map[string]any); ok {
			c.compareFields(path, stated, derived)
			return
		}
	case []any:
		if stated, ok := stated.([]any); ok && len(stated) == len(derived) {
			for i := range derived {
				c.compare(fmt.Sprintf("%s[%s]", path, nameOf(derived[i], i)), stated[i], derived[i])
			}
			return
		}
	}
	if text(stated) != text(derived) {
		*c = append(*c, problem(path, fmt.Sprintf("the claim states %s, and the report shows %s", shown(stated), shown(derived))))
	}
}

func (c *comparison) compareFields(path string, stated, derived map[string]any) {
	names := slices.Collect(maps.Keys(derived))
	for name := range stated {
		if _, ok := derived[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		field := path + "." + name
		if path == "" {
			field = name
		}
		c.compare(field, stated[name], derived[name])
	}
}

// identifiers are the fields that name an element of a list.
var identifiers = []string{"profile", "level", "id", "feature", "check"}

// nameOf names an element of a list, by its identifier or by its number.
func nameOf(element any, number int) string {
	fields, _ := element.(map[string]any)
	for _, identifier := range identifiers {
		if name, ok := fields[identifier].(string); ok {
			return name
		}
	}
	return fmt.Sprint(number)
}

func text(value any) string {
	encoded, _ := json.Marshal(value) // was decoded from JSON
	return string(encoded)
}

// shown is a value in a message.
func shown(value any) string {
	if value == nil {
		return "nothing"
	}
	return report.OneLine(text(value), valueLength)
}

// Package knownfailures reads the list of known failures of a pipeline. A known failure does not fail a run. A known failure
// that passes, or fails after its date, does.
package knownfailures

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/suggest"
)

// Entry is one known failure.
type Entry struct {
	// ID is the id of the behavior.
	ID string `json:"id"`
	// Resource is the resource on which it fails, as the run names it. A name without a version covers all versions. Empty covers every
	// resource, and the run that tests none.
	Resource string `json:"resource,omitempty"`
	// Reason is why it fails.
	Reason string `json:"reason"`
	// Until is the last day, in UTC, on which it may fail: 2026-12-31. Empty sets no end.
	Until string `json:"until,omitempty"`
}

// List is a list of known failures.
type List []Entry

// Read reads a list from a file of YAML or JSON. Errors name the entry, not the file.
func Read(file string) (List, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "open "+file+": "))
	}
	content, err = yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, fmt.Errorf("it is not YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(content, &raw); err != nil {
		return nil, errors.New("it must be a list of entries, each with id and reason, and optionally resource and until")
	}
	list := make(List, len(raw))
	for i := range raw {
		if err := list[i].decode(raw[i]); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	return list, nil
}

func (e *Entry) decode(raw json.RawMessage) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(e)
	mistyped := (*json.UnmarshalTypeError)(nil)
	switch {
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return fmt.Errorf("%s must be text, and is a %s", mistyped.Field, mistyped.Value)
	case errors.As(err, &mistyped):
		return fmt.Errorf("it must have fields (id, resource, reason, until), and is a %s", mistyped.Value)
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("%s; the fields are id, resource, reason and until", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// resourceNames are the names that resources can have.
var resourceNames = regexp.MustCompile(`^[[:alnum:]]([-.[:alnum:]]*[[:alnum:]])?(/[[:alnum:]]+)?$`)

// Check returns the first mistake in the list: an id that is none of those of the catalog, a missing reason, a date that is none, or an
// entry that is a duplicate of another.
func (l List) Check(ids []string) error {
	for i, entry := range l {
		if err := entry.check(ids); err != nil {
			return fmt.Errorf("entry %d%s: %w", i+1, entry.named(), err)
		}
		same := func(other Entry) bool { return other.ID == entry.ID && other.Resource == entry.Resource }
		if first := slices.IndexFunc(l, same); first < i {
			return fmt.Errorf("entry %d%s: duplicate of entry %d: remove one of them", i+1, entry.named(), first+1)
		}
	}
	return nil
}

// named are the id and the resource in an error.
func (e Entry) named() string {
	name := strings.TrimSpace(e.ID + " " + e.Resource)
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (%.100s)", strings.Join(strings.Fields(name), " "))
}

func (e Entry) check(ids []string) error {
	switch {
	case e.ID == "":
		return errors.New("id is missing")
	case !slices.Contains(ids, e.ID):
		return fmt.Errorf("unknown behavior %q%s", e.ID, cmp.Or(suggest.Hint(e.ID, ids), "; `runner list` prints the ids"))
	case strings.TrimSpace(e.Reason) == "":
		return errors.New("reason is missing")
	case e.Resource != "" && !resourceNames.MatchString(e.Resource):
		return fmt.Errorf("resource %q is not the name of a resource; write it as widgets.example.com or widgets.example.com/v1", e.Resource)
	}
	if _, err := time.Parse(time.DateOnly, e.Until); err != nil && e.Until != "" {
		return fmt.Errorf("until %q is not a date; write it as 2026-12-31", e.Until)
	}
	return nil
}

// Apply is a result with what the list makes of its outcome. Only results that passed, failed or deviated are changed. On is the day of the
// run. In a strict run a deviation is a failure.
func (l List) Apply(result v1alpha1.Result, resource string, on time.Time, strict bool) v1alpha1.Result {
	entry, ok := l.find(result.ID, resource)
	if !ok {
		return result
	}
	over := entry.Until != "" && on.UTC().Format(time.DateOnly) > entry.Until
	ended := fmt.Sprintf("no longer a known failure: its entry ended on %s (%s)", entry.Until, entry.Reason)
	switch failed := result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Deviated; {
	case result.Outcome == v1alpha1.Passed:
		result.Outcome = v1alpha1.Outdated
		result.Reason = fmt.Sprintf("passed, but is listed as a known failure (%s): remove the entry", entry.Reason)
	case failed && !over:
		result.Outcome, result.Reason = v1alpha1.Known, "known failure: "+entry.text()
	case result.Outcome == v1alpha1.Deviated && !strict:
		result.Outcome, result.Reason = v1alpha1.Outdated, ended+": extend or remove the entry"
	case failed:
		result.Reason = ended
	}
	return result
}

func (e Entry) text() string {
	if e.Until == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s (until %s)", e.Reason, e.Until)
}

// find is the entry of a behavior on a resource. One that names the resource comes before one for all resources.
func (l List) find(id, resource string) (Entry, bool) {
	unversioned, _, _ := strings.Cut(resource, "/")
	for _, named := range []string{resource, unversioned, ""} {
		at := slices.IndexFunc(l, func(entry Entry) bool { return entry.ID == id && entry.Resource == named })
		if at >= 0 {
			return l[at], true
		}
	}
	return Entry{}, false
}

// Package report holds what the forms of a report share: reading and writing report.json, the verdict, what a result says,
// timelines by object and as text, and text of unknown origin made fit to be shown. Each form has a package of its own
// below, made from the types of api/report/v1alpha1.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// WriteJSON writes the report as report.json: indented, and with every character that a terminal would obey escaped.
func WriteJSON(w io.Writer, r v1alpha1.Report) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(complete(r)); err != nil {
		return fmt.Errorf("encode report.json: %w", err)
	}
	if _, err := w.Write(escapeUnseen(encoded.Bytes())); err != nil {
		return fmt.Errorf("write report.json: %w", err)
	}
	return nil
}

// complete is the report with its verdicts, and with empty lists where the format demands a list and none was made.
func complete(r v1alpha1.Report) v1alpha1.Report {
	r = Concluded(r)
	r.Clusters = append([]v1alpha1.Cluster{}, r.Clusters...)
	for i := range r.Clusters {
		results := append([]v1alpha1.Result{}, r.Clusters[i].Results...)
		for j := range results {
			if results[j].Needs == nil {
				results[j].Needs = []v1alpha1.Need{}
			}
		}
		r.Clusters[i].Results = results
	}
	return r
}

// escapeUnseen writes characters that cannot be seen as \u escapes. encoding/json leaves those above U+001F as they
// are, among them the C1 controls, which terminals obey, and the ones that turn the direction of writing. In JSON they
// only occur within strings, where the escape means the same.
func escapeUnseen(encoded []byte) []byte {
	hidden := func(r rune) bool { return r >= utf8.RuneSelf && unseen(r) || r == '\x7f' }
	if bytes.IndexFunc(encoded, hidden) < 0 {
		return encoded
	}
	var escaped bytes.Buffer
	for _, r := range string(encoded) {
		switch {
		case !hidden(r):
			escaped.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	return escaped.Bytes()
}

// Read reads a report.json. The errors say which file, where in it and what is wrong with it.
//
// What encoding/json does not check is checked here and not with the published schema: a validator names the place by a
// pointer into the document and not by line and column, lists what is wrong by the schema's own keywords, and cannot say
// that a name is there twice.
func Read(file string) (v1alpha1.Report, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return v1alpha1.Report{}, fmt.Errorf("read report: %w", err)
	}
	report, err := decode(content)
	if err != nil {
		return v1alpha1.Report{}, fmt.Errorf("read report %s: %w", file, err)
	}
	return report, nil
}

func decode(content []byte) (v1alpha1.Report, error) {
	if err := checkHeader(content); err != nil {
		return v1alpha1.Report{}, err
	}
	var report v1alpha1.Report
	if err := json.Unmarshal(content, &report); err != nil {
		return v1alpha1.Report{}, located(content, err)
	}
	return report, check(report)
}

// checkHeader says whether the content is JSON at all and calls itself a report of a version that can be read.
func checkHeader(content []byte) error {
	if len(bytes.TrimSpace(content)) == 0 {
		return errors.New("the file is empty: it was never written to its end")
	}
	var header struct {
		APIVersion any `json:"apiVersion"`
		Kind       any `json:"kind"`
	}
	if err := json.Unmarshal(content, &header); err != nil {
		if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
			return located(content, err)
		}
		return fmt.Errorf("%w; a report.json of this project is a JSON object", located(content, err))
	}
	if header.Kind != v1alpha1.Kind {
		return fmt.Errorf(`it is no report.json of this project: its "kind" is %s, not %q`, found(header.Kind), v1alpha1.Kind)
	}
	if header.APIVersion != v1alpha1.APIVersion {
		return fmt.Errorf(`its "apiVersion" is %s and this runner reads %q: use the runner that wrote it`,
			found(header.APIVersion), v1alpha1.APIVersion)
	}
	return nil
}

// found is a value for an error: quoted and short.
func found(value any) string {
	if value == nil {
		return "missing"
	}
	return fmt.Sprintf("%.60q", fmt.Sprint(value))
}

// located adds line and column to an error of encoding/json.
func located(content []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	var notTime *time.ParseError
	switch {
	case errors.As(err, &syntax):
		// The offset is behind the byte that is wrong.
		offset = max(syntax.Offset-1, 0)
	case errors.As(err, &mismatch):
		offset = mismatch.Offset
		err = fmt.Errorf("%s must be a %s, not a JSON %s", fieldText(mismatch.Field), mismatch.Type, mismatch.Value)
	case errors.As(err, &notTime):
		offset = int64(bytes.Index(content, []byte(strings.Trim(notTime.Value, `"`))))
		err = fmt.Errorf("%s is no time as RFC 3339 has it", strings.Trim(notTime.Value, `"`))
	}
	if offset < 0 || offset > int64(len(content)) {
		return err
	}
	before := content[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("line %d, column %d: %w", line, column, err)
}

func fieldText(field string) string {
	if field == "" {
		return "the document"
	}
	return `"` + field + `"`
}

// check says what is wrong with a report that is well-formed: unknown outcomes, missing names, doubles.
func check(r v1alpha1.Report) error {
	clusters := map[string]bool{}
	for i, cluster := range r.Clusters {
		where := fmt.Sprintf("clusters[%d]", i)
		if cluster.Name == "" {
			return fmt.Errorf(`%s: it has no "name"`, where)
		}
		if clusters[cluster.Name] {
			return fmt.Errorf("%s: the name %q is taken by another cluster of the report", where, cluster.Name)
		}
		clusters[cluster.Name] = true
		behaviors := map[string]bool{}
		for j, result := range cluster.Results {
			where := fmt.Sprintf("%s.results[%d]", where, j)
			switch {
			case result.ID == "":
				return fmt.Errorf(`%s: it has no "id"`, where)
			case behaviors[result.ID]:
				return fmt.Errorf("%s: cluster %q has two results of %q", where, cluster.Name, result.ID)
			case !slices.Contains(v1alpha1.Outcomes, result.Outcome):
				return fmt.Errorf(`%s: "outcome" of %q is %.60q, none of %v`, where, result.ID, result.Outcome, v1alpha1.Outcomes)
			}
			behaviors[result.ID] = true
		}
	}
	return nil
}

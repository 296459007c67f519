// Package report contains what the formats of a report share: reading and writing report.json, the verdict, texts of a result, and timelines by
// object and as text. Each format has its own package below, based on the types of
// api/report/v1alpha1.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// Source is a report with the file that it was read from; empty when it was not read.
type Source struct {
	v1alpha1.Report
	File string
}

// Name is the name of a report in errors: its file, or its run.
func (s Source) Name() string {
	if s.File != "" {
		return s.File
	}
	return fmt.Sprintf("run %q", s.RunID)
}

// WriteJSON writes the report as report.json: indented, with each text as it was received, as far as it is valid UTF-8.
func WriteJSON(w io.Writer, r v1alpha1.Report) error {
	encoder := json.NewEncoder(visible.JSON(w))
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(complete(r)); err != nil {
		return fmt.Errorf("write report.json: %w", err)
	}
	return nil
}

// complete returns the report with empty lists where the format requires a list.
func complete(r v1alpha1.Report) v1alpha1.Report {
	r.Clusters = append([]v1alpha1.Cluster{}, r.Clusters...)
	for i := range r.Clusters {
		if r.Clusters[i].Features == nil {
			r.Clusters[i].Features = []v1alpha1.FeatureStatus{}
		}
		results := append([]v1alpha1.Result{}, r.Clusters[i].Results...)
		for j := range results {
			if results[j].Features == nil {
				results[j].Features = []v1alpha1.Feature{}
			}
		}
		r.Clusters[i].Results = results
	}
	return r
}

// Read reads a report.json. It checks what encoding/json does not: the kind, the version, names and outcomes.
func Read(file string) (v1alpha1.Report, error) {
	content, err := ReadContent(file)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	report, err := Decode(content)
	if err != nil {
		return v1alpha1.Report{}, fmt.Errorf("read report %s: %w", file, err)
	}
	return report, nil
}

// maxSize limits the size of a report in bytes. Those of whole runs have 10 MB.
const maxSize = 256 << 20

// ReadContent returns the content of a report.json. It fails if that is too large, as of a link to /dev/zero.
func ReadContent(file string) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	defer func() { _ = opened.Close() }()
	content, err := io.ReadAll(io.LimitReader(opened, maxSize+1))
	if err == nil && len(content) > maxSize {
		err = fmt.Errorf("larger than %d MiB", maxSize>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("read report %s: %w", file, err)
	}
	return content, nil
}

// fewElements is a number of elements that any report may have, and leastSize the size in bytes of each further one. In reports of whole runs an
// element has some 470 bytes.
const fewElements, leastSize = 50_000, 100

// Decode decodes the content of a report.json, with the checks of Read. What follows from the results is not read but concluded again, so
// that it also is what the results show where others wrote the file.
func Decode(content []byte) (v1alpha1.Report, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return v1alpha1.Report{}, errors.New("the file is empty: the run was killed before it was written")
	}
	if HasMoreElements(content, fewElements+len(content)/leastSize) {
		return v1alpha1.Report{}, errors.New("its lists have more elements than a report of this size: it was not written by a runner")
	}
	var report v1alpha1.Report
	if err := DecodeKind(content, "report", v1alpha1.Kind, &report); err != nil {
		return v1alpha1.Report{}, err
	}
	if err := cmp.Or(Check(report), checkForm(report)); err != nil {
		return v1alpha1.Report{}, err
	}
	return Concluded(report), nil
}

// checkForm refuses a report of a runner that had another name for features. Since then each report has a list of them.
func checkForm(r v1alpha1.Report) error {
	for i, cluster := range r.Clusters {
		missing := cluster.Features == nil
		where := fmt.Sprintf("clusters[%d]", i)
		for j, result := range cluster.Results {
			if !missing && result.Features == nil {
				missing, where = true, fmt.Sprintf("%s.results[%d]", where, j)
			}
		}
		if missing {
			return fmt.Errorf("%s.features is missing, as in reports of earlier runners: use the runner that wrote the report", where)
		}
	}
	return nil
}

// DecodeKind decodes a document of the API of reports. It fails if the content is no JSON, or of another kind or apiVersion.
func DecodeKind(content []byte, document, kind string, into any) error {
	var header struct {
		APIVersion, Kind json.RawMessage
	}
	if err := json.Unmarshal(content, &header); err != nil {
		return fmt.Errorf("not a %s.json, or not all of one: %w", document, err)
	}
	if found := text(header.Kind); found != kind {
		return fmt.Errorf("not a %s of this project: kind is %.60q, must be %q", document, found, kind)
	}
	if found := text(header.APIVersion); found != v1alpha1.APIVersion {
		return fmt.Errorf("apiVersion is %.60q, must be %q: use the runner that wrote the %s", found, v1alpha1.APIVersion, document)
	}
	return json.Unmarshal(content, into)
}

// text returns a string, or what stands in its place, undecoded.
func text(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}

// Check returns the first error of a well-formed report: an unknown outcome, a missing name, a duplicate.
func Check(r v1alpha1.Report) error {
	clusters := map[string]bool{}
	for i, cluster := range r.Clusters {
		where := fmt.Sprintf("clusters[%d]", i)
		if cluster.Name == "" {
			return fmt.Errorf("%s.name is missing", where)
		}
		if clusters[cluster.Name] {
			return fmt.Errorf("%s.name is duplicate: %q", where, cluster.Name)
		}
		clusters[cluster.Name] = true
		behaviors := map[string]bool{}
		for j, result := range cluster.Results {
			where := fmt.Sprintf("%s.results[%d]", where, j)
			switch {
			case result.ID == "":
				return fmt.Errorf("%s.id is missing", where)
			case behaviors[result.ID]:
				return fmt.Errorf("%s.id is duplicate: %q", where, result.ID)
			case !slices.Contains(v1alpha1.Outcomes, result.Outcome):
				return fmt.Errorf("%s.outcome is %.60q, must be one of %v", where, result.Outcome, v1alpha1.Outcomes)
			}
			behaviors[result.ID] = true
		}
	}
	return nil
}

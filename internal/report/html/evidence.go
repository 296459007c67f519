package html

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// evidence is what stands behind one cell of report.html.
type evidence struct {
	Message     string   `json:"message,omitempty"`
	Took        string   `json:"took,omitempty"`
	Location    string   `json:"location,omitempty"`
	Explanation []string `json:"explanation,omitempty"`
	// Promise is the sentence that promises the behavior, and Source is the page that it stands on.
	Promise string `json:"promise,omitempty"`
	Source  string `json:"source,omitempty"`
	Trace   *trace `json:"trace,omitempty"`
	// LeftOut says that there is a timeline, and that the page would have become too large with it.
	LeftOut bool `json:"leftOut,omitempty"`
}

// detail is how much of the evidence of a behavior the page keeps.
type detail int

const (
	// everyTimeline keeps all, but the bodies of requests where the behavior passed.
	everyTimeline detail = iota
	// unpassedTimelines keeps no timelines of what passed.
	unpassedTimelines
	// noTimelines keeps the messages.
	noTimelines
)

const (
	// evidenceBudget is how many bytes of the page the evidence may take. It leaves room in the 5 MB that a page of 200
	// behaviors on 20 clusters may have. Timelines as most behaviors have them take a quarter of it; those of hundreds of
	// objects would take more, and a page that is too large to open shows nothing at all.
	evidenceBudget = 4_000_000
	// messageInPage is how many characters of a message the page keeps.
	messageInPage = 6_000
)

// packed is the evidence of one behavior on all clusters, as gzipped JSON in base64: browsers unpack it when somebody
// looks. The clusters of a behavior resemble each other, so they shrink well together: of 200 behaviors on 20 clusters
// 9.2 MB, which a browser would have to read before it shows anything, become 0.9 MB.
type packed string

// packEvidence packs the evidence of every row. It keeps within the budget (in bytes) by leaving out timelines: those
// of passed behaviors first, and of the largest behaviors first.
func packEvidence(rows [][]*v1alpha1.Result, budget int) ([]packed, error) {
	chunks := make([]packed, len(rows))
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	total := 0
	for _, keep := range []detail{everyTimeline, unpassedTimelines, noTimelines} {
		for _, i := range order {
			if keep != everyTimeline && total <= budget {
				return chunks, nil
			}
			chunk, err := pack(rows[i], keep)
			if err != nil {
				return nil, err
			}
			total += len(chunk) - len(chunks[i])
			chunks[i] = chunk
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(chunks[b]), len(chunks[a])) })
	}
	return chunks, nil
}

func pack(row []*v1alpha1.Result, keep detail) (packed, error) {
	cells := make([]*evidence, len(row))
	for i, result := range row {
		if result != nil {
			cells[i] = evidenceOf(*result, keep)
		}
	}
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	if err := errors.Join(json.NewEncoder(writer).Encode(cells), writer.Close()); err != nil {
		return "", fmt.Errorf("pack the evidence: %w", err)
	}
	return packed(base64.StdEncoding.EncodeToString(zipped.Bytes())), nil
}

// evidenceOf is what the page keeps of a result.
func evidenceOf(result v1alpha1.Result, keep detail) *evidence {
	e := &evidence{Promise: report.OneLine(result.Promise, messageInPage), Source: report.OneLine(result.Source, messageInPage)}
	switch result.Outcome {
	case v1alpha1.Passed:
	case v1alpha1.Failed, v1alpha1.Deviated:
		e.Message = report.FailureMessage(result)
	default:
		e.Message = report.ReasonOf(result)
		if result.Failure != nil && result.Failure.Message != e.Message {
			e.Message += "\n\n" + result.Failure.Message
		}
	}
	if tries := report.Tries(result); tries != "" {
		e.Message = strings.TrimSpace(e.Message + "\n\n" + tries)
	}
	e.Message = report.Shorten(report.Visible(e.Message), messageInPage)
	if failure := result.Failure; failure != nil {
		e.Location = report.Visible(failure.Location)
		e.Explanation = report.AllVisible(failure.Explanation)
	}
	if result.Seconds > 0 {
		e.Took = report.Seconds(result.Seconds)
	}
	if keep == noTimelines || keep == unpassedTimelines && result.Outcome == v1alpha1.Passed {
		e.LeftOut = len(result.Timeline.Requests)+len(result.Timeline.Events)+len(result.Timeline.Reviews) > 0
	} else {
		e.Trace = traceOf(result.Timeline, result.Outcome != v1alpha1.Passed)
	}
	return e
}

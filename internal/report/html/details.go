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

// cellDetails are what report.html shows of one result.
type cellDetails struct {
	Message     string   `json:"message,omitempty"`
	Took        string   `json:"took,omitempty"`
	Location    string   `json:"location,omitempty"`
	Explanation []string `json:"explanation,omitempty"`
	// Promise is the sentence that promises the behavior, and Source its page.
	Promise string `json:"promise,omitempty"`
	Source  string `json:"source,omitempty"`
	// Promised is set if the source promises the behavior; otherwise the behavior was observed there. URL is the address of the source.
	Promised bool   `json:"promised,omitempty"`
	URL      string `json:"url,omitempty"`
	Trace    *trace `json:"trace,omitempty"`
	// LeftOut is set when the timeline was omitted because of the page's size.
	LeftOut bool `json:"leftOut,omitempty"`
}

// detailLevel selects how many details of a behavior the page contains.
type detailLevel int

const (
	// everyTimeline includes everything except the bodies of requests of passed behaviors.
	everyTimeline detailLevel = iota
	// unpassedTimelines excludes the timelines of passed behaviors.
	unpassedTimelines
	// noTimelines includes only the messages.
	noTimelines
)

const (
	// detailsBudget limits the details in the page, in bytes. The page of 200 behaviors on 20 clusters then stays below 5 MB. Typical
	// timelines take a quarter of the budget; those with hundreds of objects would take more, and a browser cannot open a page that is too
	// large.
	detailsBudget = 4_000_000
	// messageInPage limits a message in the page, in characters.
	messageInPage = 6_000
)

// packed are the details of one behavior on all clusters, as gzipped JSON in base64, which browsers unpack on demand. The clusters of a
// behavior are similar, so they compress well together: for 200 behaviors on 20 clusters from 9.2 MB to 0.9 MB.
type packed string

// packDetails packs the details of every row. It stays within the budget (in bytes) by omitting timelines: first those of passed
// behaviors, starting with the largest.
func packDetails(rows [][]*v1alpha1.Result, budget int) ([]packed, error) {
	chunks := make([]packed, len(rows))
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	zipper := gzip.NewWriter(nil) // one for all: each has tables of 800 kB
	total := 0
	for _, keep := range []detailLevel{everyTimeline, unpassedTimelines, noTimelines} {
		for _, i := range order {
			if keep != everyTimeline && total <= budget {
				return chunks, nil
			}
			chunk, err := pack(zipper, rows[i], keep)
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

// pack packs the details of a row with a writer that it resets.
func pack(zipper *gzip.Writer, row []*v1alpha1.Result, keep detailLevel) (packed, error) {
	cells := make([]*cellDetails, len(row))
	for i, result := range row {
		if result != nil {
			cells[i] = detailsOf(*result, keep)
		}
	}
	var zipped bytes.Buffer
	zipper.Reset(&zipped)
	if err := errors.Join(json.NewEncoder(zipper).Encode(cells), zipper.Close()); err != nil {
		return "", fmt.Errorf("pack the details: %w", err)
	}
	return packed(base64.StdEncoding.EncodeToString(zipped.Bytes())), nil
}

// detailsOf returns the details of a result for the page.
func detailsOf(result v1alpha1.Result, keep detailLevel) *cellDetails {
	e := &cellDetails{
		Promise: report.OneLine(result.Promise, messageInPage), Source: report.OneLine(result.Source, messageInPage),
		Promised: result.Level != v1alpha1.Observed, URL: result.SourceURL(),
	}
	e.Message = report.Message(result)
	if failure := result.Failure; failure != nil && !strings.Contains(e.Message, failure.Message) {
		e.Message += "\n\n" + failure.Message
	}
	if tries := report.Tries(result); tries != "" {
		e.Message = strings.TrimSpace(e.Message + "\n\n" + tries)
	}
	e.Message = report.Shorten(e.Message, messageInPage)
	if failure := result.Failure; failure != nil {
		e.Location = failure.Location
		e.Explanation = failure.Explanation
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

package jobreport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobstore"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// Collector collects the reports of a Job.
type Collector struct {
	// Reader reads the Job named Job.
	Reader *jobstore.Reader
	Job    string
	// Out receives the output of the pods.
	Out io.Writer
	// Interval is the time between two reads of a running Job.
	Interval time.Duration
	// Interrupted is the exit code of a runner that was stopped. Its index is not over, because a Job replaces a stopped pod. Untested is that
	// of a runner whose error its report contains.
	Interrupted, Untested int
}

// reads is how often a report is read that is replaced meanwhile.
const reads = 5

// Follow prints the output of the pods until every index has ended, or until the Job has. A Job that has ended is not waited for.
func (c *Collector) Follow(ctx context.Context) (jobstore.State, []jobstore.Progress, error) {
	shown := map[int]*position{}
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for first := ""; ; {
		state, err := c.Reader.Job(ctx)
		if err != nil {
			return state, nil, err
		}
		if first != "" && first != state.UID {
			return state, nil, fmt.Errorf("the Job %q was replaced by another with its name; collect that one", c.Job)
		}
		first = state.UID
		progress, err := c.Reader.Progress(ctx, state)
		if err != nil {
			return state, nil, err
		}
		for _, index := range progress {
			if err := c.show(state, index, shown); err != nil {
				return state, nil, err
			}
		}
		if state.Ended != "" || c.ended(state, progress) {
			return state, progress, nil
		}
		select {
		case <-ctx.Done():
			return state, nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// ended reports whether every index has ended.
func (c *Collector) ended(state jobstore.State, progress []jobstore.Progress) bool {
	over := 0
	for _, index := range progress { // one of each index
		if index.Ended && index.ExitCode != c.Interrupted {
			over++
		}
	}
	return over >= state.Indexes
}

// position is what was printed of an index.
type position struct {
	attempt string
	bytes   int
	partial string
}

// show prints what is new in the output of an index, in whole lines. A line that is longer than a log is printed in parts.
func (c *Collector) show(state jobstore.State, index jobstore.Progress, shown map[int]*position) error {
	log, err := index.Log()
	if err != nil {
		return fmt.Errorf("read the output of index %d of Job %s: %w", index.Index, c.Job, err)
	}
	out, at := visible.NewLog(c.Out), shown[index.Index]
	if at == nil {
		at = &position{attempt: index.Attempt}
		shown[index.Index] = at
	}
	if at.attempt != index.Attempt {
		_, _ = fmt.Fprintf(out, "%sanother attempt: %s\n", prefix(state, index.Index), index.Attempt)
		*at = position{attempt: index.Attempt}
	}
	from := min(max(at.bytes-index.Skipped, 0), len(log))
	text := at.partial + string(log[from:])
	at.bytes = index.Skipped + len(log)
	end := strings.LastIndexByte(text, '\n') + 1
	if len(text)-end > jobstore.MaxLog {
		end = len(text)
	}
	at.partial = text[end:]
	for line := range strings.Lines(text[:end]) {
		_, _ = fmt.Fprintf(out, "%s%s\n", prefix(state, index.Index), strings.TrimSuffix(line, "\n"))
	}
	return nil
}

// prefix names an index in lines, if there are several.
func prefix(state jobstore.State, index int) string {
	if state.Indexes < 2 {
		return ""
	}
	return fmt.Sprintf("[index %d] ", index)
}

// Incomplete is the error when indexes have no report.
type Incomplete struct{ error }

// Reports reads the reports of the indexes and merges them. If indexes have none, it returns the others as an interrupted run, with an
// Incomplete error. Errors of the runners are joined to it.
func (c *Collector) Reports(ctx context.Context, state jobstore.State, progress []jobstore.Progress) (whole v1alpha1.Report, failed, err error) {
	var sources []report.Source
	var missing []string
	stored := map[int]bool{}
	for _, index := range progress {
		if index.Report.Parts == 0 {
			continue
		}
		one, err := c.report(ctx, state, index)
		if err != nil {
			return v1alpha1.Report{}, nil, err
		}
		stored[index.Index] = true
		sources = append(sources, report.Source{Report: one, File: fmt.Sprintf("index %d of Job %s", index.Index, c.Job)})
	}
	for index := range state.Indexes {
		if !stored[index] {
			missing = append(missing, fmt.Sprint(index))
		}
	}
	failed = c.failures(state, progress)
	if len(missing) > 0 {
		failed = errors.Join(Incomplete{c.incomplete(state, missing)}, failed)
		for i := range sources {
			sources[i].Shard, sources[i].Interrupted = "", true // the reports that exist can be merged
		}
	}
	if len(sources) == 0 {
		return v1alpha1.Report{}, nil, failed
	}
	if len(sources) == 1 {
		return sources[0].Report, failed, nil
	}
	whole, err = merge.Reports(sources...)
	return whole, failed, err
}

// named is how many indexes without a report an error names.
const named = 10

// incomplete is the error about indexes without a report.
func (c *Collector) incomplete(state jobstore.State, missing []string) error {
	which := "its pod has stored no report"
	if state.Indexes > 1 {
		which = "no report was stored by index " + strings.Join(missing[:min(named, len(missing))], ", ")
		if more := len(missing) - named; more > 0 {
			which += fmt.Sprintf(" and %d more", more)
		}
	}
	how := ""
	if state.Ended != "" {
		how = " and is " + state.Ended
	}
	return fmt.Errorf("the Job %s has ended%s, but %s; its pods and their logs show why: "+
		"kubectl describe pods -l batch.kubernetes.io/job-name=%[1]s", c.Job, how, which)
}

// failures are the errors of the runners that have ended, by index.
func (c *Collector) failures(state jobstore.State, progress []jobstore.Progress) error {
	var failures []error
	for _, index := range progress {
		if index.Error != "" && index.ExitCode != c.Untested {
			failures = append(failures, fmt.Errorf("%s%s", prefix(state, index.Index), index.Error))
		}
	}
	return errors.Join(failures...)
}

// report reads the report of an index. If it is replaced meanwhile, it is read again.
func (c *Collector) report(ctx context.Context, state jobstore.State, progress jobstore.Progress) (v1alpha1.Report, error) {
	content, err := c.Reader.Report(ctx, progress)
	for attempt := 1; err != nil && attempt < reads && ctx.Err() == nil; attempt++ {
		current, failed := c.Reader.Progress(ctx, state)
		if failed != nil {
			return v1alpha1.Report{}, failed
		}
		at := slices.IndexFunc(current, func(p jobstore.Progress) bool { return p.Index == progress.Index })
		if at < 0 || current[at].Report == progress.Report {
			return v1alpha1.Report{}, err
		}
		progress = current[at]
		content, err = c.Reader.Report(ctx, progress)
	}
	if err != nil {
		return v1alpha1.Report{}, err
	}
	return report.Decode(content)
}

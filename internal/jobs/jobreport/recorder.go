// Package jobreport stores the report of a run in a Job, and collects the reports of a Job's pods. Recorder is the end in the pod, Collector
// the other; package jobstore stores what they exchange.
package jobreport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/injob"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobstore"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
)

const (
	// interval is the time between writes of the progress.
	interval = 2 * time.Second
	// endTimeout limits the last writes, which an interruption does not stop.
	endTimeout = time.Minute
)

// Recorder stores the output and the report of a run. It is safe for concurrent use.
type Recorder struct {
	writer *jobstore.Writer
	cancel context.CancelFunc
	done   chan struct{}

	// storing is held during writes, and mu for the log.
	storing sync.Mutex
	mu      sync.Mutex
	log     bytes.Buffer
	skipped int
	changed bool
}

// Start stores that the pod has started, and then its output every two seconds until End. It fails outside of a Job, and without the
// permission to store.
func Start(ctx context.Context, flag string) (*Recorder, error) {
	pod, err := current(flag)
	if err != nil {
		return nil, err
	}
	config, err := clusters.InClusterConfig(flag)
	if err != nil {
		return nil, err
	}
	writer, err := jobstore.NewWriter(ctx, config, pod)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	recording, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Recorder{writer: writer, cancel: cancel, done: make(chan struct{})}
	go r.record(recording)
	return r, nil
}

// current returns the pod in which this process runs.
func current(flag string) (jobstore.Pod, error) {
	pod := injob.Current()
	for _, variable := range []struct{ name, value string }{
		{injob.NamespaceVariable, pod.Namespace}, {injob.PodVariable, pod.Name}, {injob.NameVariable, pod.Job}, {injob.UIDVariable, pod.JobUID},
	} {
		if variable.value == "" {
			return jobstore.Pod{}, fmt.Errorf("%s: %s is not set: use it in a pod of a Job with the environment of deploy/job", flag, variable.name)
		}
	}
	index := 0
	if pod.Index != "" {
		var err error
		if index, err = strconv.Atoi(pod.Index); err != nil || index < 0 {
			return jobstore.Pod{}, fmt.Errorf("%s: %s is %q, not an index", flag, injob.IndexVariable, pod.Index)
		}
	}
	return jobstore.Pod{Namespace: pod.Namespace, Name: pod.Name, Job: pod.Job, JobUID: pod.JobUID, Index: index}, nil
}

// Tee returns a writer that also records what is written.
func (r *Recorder) Tee(out io.Writer) io.Writer { return io.MultiWriter(out, r) }

// Write records output.
func (r *Recorder) Write(output []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.log.Write(output)
	if excess := r.log.Len() - jobstore.MaxLog; excess > 0 {
		r.skipped += len(r.log.Next(excess))
	}
	r.changed = true
	return len(output), nil
}

// record stores new output until the context ends. The next write makes up for one that failed.
func (r *Recorder) record(ctx context.Context) {
	defer close(r.done)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		r.mu.Lock()
		changed := r.changed
		r.changed = false
		r.mu.Unlock()
		if !changed {
			continue
		}
		if err := r.put(ctx); err != nil {
			r.mu.Lock()
			r.changed = true
			r.mu.Unlock()
		}
	}
}

// put stores the output.
func (r *Recorder) put(ctx context.Context) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	return r.putHeld(ctx)
}

// putHeld stores the output; the caller holds storing.
func (r *Recorder) putHeld(ctx context.Context) error {
	r.mu.Lock()
	log, skipped := bytes.Clone(r.log.Bytes()), r.skipped
	r.mu.Unlock()
	return r.writer.PutProgress(ctx, log, skipped)
}

// Store stores a report in place of an earlier one.
func (r *Recorder) Store(whole v1alpha1.Report) error {
	compressed, err := fit(whole, jobstore.MaxReport)
	if err != nil {
		return fmt.Errorf("store the report: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	r.storing.Lock()
	defer r.storing.Unlock()
	replaced, err := r.writer.PutReport(ctx, compressed)
	if err == nil {
		err = r.putHeld(ctx)
	}
	if err != nil {
		return fmt.Errorf("store the report: %w", err)
	}
	return replaced(ctx)
}

// End stores how the runner ends, with the error that it prints; nil for none.
func (r *Recorder) End(exitCode int, failed error) error {
	r.cancel()
	<-r.done
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	r.writer.End(exitCode, failed)
	return r.put(ctx)
}

// Package sonobuoy makes a run a plugin of Sonobuoy: it sends the progress to the worker that Sonobuoy runs next to a plugin, and hands over the
// reports to it. See https://sonobuoy.io/docs/main/plugins.
package sonobuoy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
)

// The variables that Sonobuoy sets in the container of a plugin.
const (
	// ResultsVariable is the directory that the plugin shares with the worker.
	ResultsVariable = "SONOBUOY_RESULTS_DIR"
	// PortVariable is the port at which the worker accepts the progress on the loopback interface.
	PortVariable = "SONOBUOY_PROGRESS_PORT"
)

const (
	// doneFile names the file with the results, in the directory that is shared. The worker waits for it.
	doneFile = "done"
	// archive contains the reports.
	archive = "results.tar.gz"
	// updateInterval is the time between updates of the progress, and updateTimeout how long the worker may take for one.
	updateInterval, updateTimeout = time.Second, 5 * time.Second
)

// Plugin is the plugin as which this process runs.
type Plugin struct {
	results, worker string
}

// Current returns the plugin as which this process runs. It fails outside of Sonobuoy; flag is named in the error.
func Current(flag string) (*Plugin, error) {
	results := os.Getenv(ResultsVariable)
	if results == "" {
		return nil, fmt.Errorf("%s: %s is not set: use it in a plugin of Sonobuoy, as in deploy/sonobuoy", flag, ResultsVariable)
	}
	plugin := &Plugin{results: results}
	if port := os.Getenv(PortVariable); port != "" {
		plugin.worker = "http://" + net.JoinHostPort("localhost", port) + "/progress"
	}
	return plugin, nil
}

// ReportDir is the directory for the reports.
func (p *Plugin) ReportDir() string { return filepath.Join(p.results, "reports") }

// Submit hands over the reports to the worker.
func (p *Plugin) Submit() error {
	packed := filepath.Join(p.results, archive)
	if err := pack(packed, p.ReportDir()); err != nil {
		return fmt.Errorf("pack the reports for Sonobuoy: %w", err)
	}
	if err := os.WriteFile(filepath.Join(p.results, doneFile), []byte(packed), 0o644); err != nil {
		return fmt.Errorf("hand over the reports to Sonobuoy: %w", err)
	}
	return nil
}

// pack writes the files of a directory to a compressed archive.
func pack(file, dir string) (err error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	files := tar.NewWriter(compressed)
	if err := errors.Join(os.MkdirAll(dir, 0o755), files.AddFS(os.DirFS(dir)), files.Close(), compressed.Close()); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o644)
}

// update is the progress as Sonobuoy shows it.
type update struct {
	Message   string   `json:"msg"`
	Total     int      `json:"total"`
	Completed int      `json:"completed"`
	Failures  []string `json:"failures,omitempty"`
}

// Follow returns a progress that also sends updates to the worker.
func (p *Plugin) Follow(shown progress.Progress) progress.Progress {
	if p.worker == "" {
		return shown
	}
	f := &follower{Progress: shown, worker: p.worker, latest: make(chan update, 1), closed: make(chan struct{}), done: make(chan struct{})}
	go f.send()
	return f
}

// follower sends the latest update to the worker, at most one each interval. The run does not wait for it, and goes on if the worker does not
// respond.
type follower struct {
	progress.Progress
	worker string
	update update
	latest chan update
	// closed ends the pause between updates, and done reports that the last one was sent.
	closed, done chan struct{}
}

// SetUp adds the behaviors that were chosen for a cluster.
func (f *follower) SetUp(cluster v1alpha1.Cluster, chosen int) {
	f.Progress.SetUp(cluster, chosen)
	f.update.Total += chosen
	f.put("running")
}

// Ended counts a behavior.
func (f *follower) Ended(cluster string, result v1alpha1.Result) {
	f.Progress.Ended(cluster, result)
	f.update.Completed++
	switch result.Outcome { //nolint:exhaustive // the others are no failures
	case v1alpha1.Failed, v1alpha1.Outdated, v1alpha1.Errored:
		f.update.Failures = append(f.update.Failures[:len(f.update.Failures):len(f.update.Failures)], result.ID)
	}
	f.put("running")
}

// TearingDown reports the cleanup.
func (f *follower) TearingDown(cluster string) {
	f.Progress.TearingDown(cluster)
	f.put("cleaning up")
}

// Close sends the last update.
func (f *follower) Close() error {
	close(f.latest)
	close(f.closed)
	<-f.done
	return f.Progress.Close()
}

// put replaces the update that is sent next.
func (f *follower) put(message string) {
	f.update.Message = message
	select {
	case <-f.latest:
	default:
	}
	f.latest <- f.update
}

func (f *follower) send() {
	defer close(f.done)
	for latest := range f.latest {
		f.post(latest)
		select {
		case <-time.After(updateInterval):
		case <-f.closed:
		}
	}
}

// post sends an update. The next one replaces one that is lost.
func (f *follower) post(latest update) {
	ctx, cancel := context.WithTimeout(context.Background(), updateTimeout)
	defer cancel()
	body, err := json.Marshal(latest)
	if err != nil {
		return
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.worker, bytes.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
	}
}

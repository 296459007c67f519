package jobreport

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobstore"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// large returns a report with a passed and a failed behavior, whose evidence cannot be compressed well.
func large(t *testing.T) v1alpha1.Report {
	t.Helper()
	noise := make([]byte, 1000)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	timeline := v1alpha1.Timeline{}
	for range 200 {
		timeline.Requests = append(timeline.Requests, v1alpha1.Request{At: time.Now(), Verb: "GET", Path: "/", Body: hex.EncodeToString(noise), Status: 200})
		timeline.Events = append(timeline.Events, v1alpha1.Observation{At: time.Now(), Type: "MODIFIED"})
	}
	result := func(id string, outcome v1alpha1.Outcome) v1alpha1.Result {
		return v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: id}, Outcome: outcome, Timeline: timeline, Start: time.Now()}
	}
	return v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, RunID: "dc", Clusters: []v1alpha1.Cluster{{
			Name: "c", Warning: "before", Results: []v1alpha1.Result{result("a.failed", v1alpha1.Failed), result("b.passed", v1alpha1.Passed)},
		}},
	}
}

// stored decodes what fit has returned.
func stored(t *testing.T, compressed []byte) v1alpha1.Report {
	t.Helper()
	g := NewWithT(t)
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	g.Expect(err).NotTo(HaveOccurred())
	content, err := io.ReadAll(reader)
	g.Expect(err).NotTo(HaveOccurred())
	whole, err := report.Decode(content)
	g.Expect(err).NotTo(HaveOccurred())
	return whole
}

func TestCompress_SmallReport(t *testing.T) {
	g := NewWithT(t)
	compressed, err := fit(large(t), jobstore.MaxReport)
	g.Expect(err).NotTo(HaveOccurred())
	cluster := stored(t, compressed).Clusters[0]
	g.Expect(cluster.Warning).To(Equal("before"))
	g.Expect(cluster.Results[1].Timeline.Requests).To(HaveLen(200))
}

func TestCompress_LargeReport(t *testing.T) {
	whole := large(t)
	sizes := []int{}
	for limit := jobstore.MaxReport; ; {
		compressed, err := fit(whole, limit)
		if err != nil {
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("distribute the run over more shards")))
			break
		}
		sizes = append(sizes, len(compressed))
		limit = len(compressed) - 1
		cluster := stored(t, compressed).Clusters[0]
		g := NewWithT(t)
		g.Expect(cluster.Results).To(HaveLen(2), "results are never lost")
		switch len(sizes) {
		case 2:
			g.Expect(cluster.Warning).To(Equal("before; " + notice + "the timelines of passed behaviors"))
			g.Expect(cluster.Results[0].Timeline.Requests).To(HaveLen(200), "what shows a failure is kept")
			g.Expect(cluster.Results[1].Timeline.Requests).To(BeEmpty())
		case 3:
			g.Expect(cluster.Results[0].Timeline.Requests[0].Body).To(BeEmpty())
		case 4:
			g.Expect(cluster.Results[0].Timeline.Requests).To(HaveLen(shortTimeline))
		case 5:
			g.Expect(cluster.Warning).To(HaveSuffix("long timelines, all timelines"))
		}
	}
	NewWithT(t).Expect(sizes).To(HaveLen(5))
	NewWithT(t).Expect(large(t).Clusters[0].Results[1].Timeline.Requests).To(HaveLen(200))
	NewWithT(t).Expect(whole.Clusters[0].Results[0].Timeline.Requests[0].Body).NotTo(BeEmpty(), "the report itself is not changed")
}

func TestCollector_Output(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	c, shown := &Collector{Out: &out}, map[int]*position{}
	show := func(state jobstore.State, index jobstore.Progress, log string) {
		var err error
		index.Compressed, err = jobstore.Compress([]byte(log))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.show(state, index, shown)).To(Succeed())
	}
	one, three := jobstore.State{Indexes: 1}, jobstore.State{Indexes: 3}
	show(one, jobstore.Progress{Attempt: "p"}, "first\nsec")
	show(one, jobstore.Progress{Attempt: "p"}, "first\nsecond\n")
	show(one, jobstore.Progress{Attempt: "p", Skipped: 6}, "second\nthird\n")
	g.Expect(out.String()).To(Equal("first\nsecond\nthird\n"))
	out.Reset()
	show(three, jobstore.Progress{Index: 2, Attempt: "p"}, "one\n")
	show(three, jobstore.Progress{Index: 2, Attempt: "q"}, "again\x1b\n")
	g.Expect(out.String()).To(HavePrefix("[index 2] one\n[index 2] another attempt: q\n[index 2] again"))
	g.Expect(strings.Contains(out.String(), "\x1b")).To(BeFalse(), "control characters are escaped")
}

func TestCollector_EndlessLine(t *testing.T) {
	g := NewWithT(t)
	c, shown := &Collector{Out: io.Discard}, map[int]*position{}
	log, err := jobstore.Compress(bytes.Repeat([]byte("x"), jobstore.MaxLog))
	g.Expect(err).NotTo(HaveOccurred())
	for read := range 20 {
		g.Expect(c.show(jobstore.State{Indexes: 1}, jobstore.Progress{Skipped: read * jobstore.MaxLog, Compressed: log}, shown)).To(Succeed())
	}
	g.Expect(len(shown[0].partial)).To(BeNumerically("<=", jobstore.MaxLog))
}

func TestCollector_ManyIndexesWithoutReport(t *testing.T) {
	g := NewWithT(t)
	c := &Collector{Job: "job"}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := c.Reports(t.Context(), jobstore.State{Indexes: v1alpha1.MaxShards, Ended: "Complete"}, nil)
	runtime.ReadMemStats(&after)
	g.Expect(err).To(MatchError(ContainSubstring("no report was stored by index 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 9990 more;")))
	g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 4<<20))
}

func TestCollector_Ended(t *testing.T) {
	g := NewWithT(t)
	c := &Collector{Interrupted: 130}
	ended := func(code int) jobstore.Progress { return jobstore.Progress{Ended: true, ExitCode: code} }
	g.Expect(c.ended(jobstore.State{Indexes: 2}, []jobstore.Progress{ended(0), ended(1)})).To(BeTrue())
	g.Expect(c.ended(jobstore.State{Indexes: 2}, []jobstore.Progress{ended(0), ended(130)})).To(BeFalse(), "the Job replaces it")
	g.Expect(c.ended(jobstore.State{Indexes: 2}, []jobstore.Progress{ended(0), {}})).To(BeFalse())
	g.Expect(c.ended(jobstore.State{Indexes: 2}, []jobstore.Progress{ended(0)})).To(BeFalse())
}

func TestStart_NotInAJob(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	_, err := Start(t.Context(), "--store-report")
	NewWithT(t).Expect(err).To(MatchError("--store-report: POD_NAMESPACE is not set: use it in a pod of a Job with the environment of deploy/job"))
}

package preflight

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Setup measures how slow an API server is: far away, throttled or busy. session.Settings.Slowness lengthens all waits by that. Waits for
// controllers also follow what these do at the time, because what they do before the run differs from what they do under its load.

const (
	// usualRead is the upper limit for a read on a fast cluster: several times the usual duration.
	usualRead = 50 * time.Millisecond
	// maxSlow is the maximum factor for waits.
	maxSlow = 10
	// readsEach is the number of reads for each worker. They are sent in parallel, because a throttled server lets single ones through.
	readsEach = 3
	// maxQueued is how many times as long as a single read one of many parallel ones may take where the server does not queue them.
	maxQueued = 2
)

// NoticeablySlow is the factor from which a run reports that the cluster is slow.
const NoticeablySlow = 1.5

// Latency is how long a cluster takes to respond.
type Latency struct {
	// Read is the median duration of a read while all workers read.
	Read time.Duration
	// Single is the shortest duration of a read while no other request is in flight. A busy machine lengthens the others.
	Single time.Duration
}

// Slowness is the factor for waits: 1 on a fast cluster, and more on others.
func (l Latency) Slowness() float64 {
	return min(max(1, float64(l.Read)/float64(usualRead)), maxSlow)
}

// Distance is how long a request is under way. It is 0 where the server makes parallel requests wait for each other, as API priority
// and fairness does: more of them would gain nothing there.
func (l Latency) Distance() time.Duration {
	if l.Read > maxQueued*l.Single {
		return 0
	}
	return l.Single
}

// MeasureLatency measures the duration of reads by a number of parallel workers.
func MeasureLatency(ctx context.Context, with *client.Client, workers int) Latency {
	alone, parallel := readsBy(ctx, with, 1), readsBy(ctx, with, workers)
	latency := Latency{}
	if len(alone) > 0 {
		latency.Single = alone[0]
	}
	if len(parallel) > 0 {
		latency.Read = parallel[len(parallel)/2]
	}
	return latency
}

// readsBy returns the durations of reads by parallel clients that succeed, sorted.
func readsBy(ctx context.Context, with *client.Client, parallel int) []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var reading sync.WaitGroup
	for range parallel {
		reading.Go(func() {
			for range readsEach {
				began := time.Now()
				response := with.SendOnce(ctx, client.Request{Method: http.MethodGet, Path: "/version"})
				if response.Authoritative() {
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	reading.Wait()
	slices.Sort(took)
	return took
}

package environment

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// A cluster is far away, throttles, or is busy: then all takes longer that a run waits for. How much longer is measured
// once, when the run is set up; session.Settings.ForSlowness is where it becomes longer waits.

const (
	// usualRead is how long a read may take, and usualController how long a controller may take to act, on a cluster that is
	// as fast as the defaults of a run expect. Both are several times of what is usual.
	usualRead       = 50 * time.Millisecond
	usualController = 500 * time.Millisecond
	// mostSlow bounds how many times as long a run waits.
	mostSlow = 10
	// readsEach is how many reads each worker would make for a measurement. All make them at the same time, as they will later:
	// what throttles lets one alone through.
	readsEach = 3
)

// NoticeablySlow is how many times as long as on a fast cluster a run waits on one of which it says that it is slow.
const NoticeablySlow = 1.5

// Latency is how fast a cluster is.
type Latency struct {
	// Read is how long a read takes while all workers read.
	Read time.Duration
	// Controller is how long the garbage collector took to act, in the slowest case that its probe saw.
	Controller time.Duration
}

// Slowness is how many times as long a run should wait as on a fast cluster: 1 or more.
func (l Latency) Slowness() float64 {
	return min(max(1, float64(l.Read)/float64(usualRead), float64(l.Controller)/float64(usualController)), mostSlow)
}

// Latency is how fast the cluster was when the run was set up.
func (e *Environment) Latency() Latency {
	e.latencyLock.Lock()
	defer e.latencyLock.Unlock()
	return e.latency
}

// measureReads notes how long a read takes: the median of those that succeed.
func (e *Environment) measureReads(ctx context.Context) {
	var mu sync.Mutex
	var took []time.Duration
	var reading sync.WaitGroup
	for range max(e.options.Workers, 1) {
		reading.Go(func() {
			for range readsEach {
				began := time.Now()
				response := e.client.SendOnce(ctx, client.Request{Method: http.MethodGet, Path: "/version"})
				if response.Authoritative() {
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	reading.Wait()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	e.latencyLock.Lock()
	defer e.latencyLock.Unlock()
	e.latency.Read = took[len(took)/2]
}

// acted notes how long a controller took to act.
func (e *Environment) acted(took time.Duration) {
	e.latencyLock.Lock()
	defer e.latencyLock.Unlock()
	e.latency.Controller = max(e.latency.Controller, took)
}

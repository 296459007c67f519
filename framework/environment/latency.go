package environment

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// Setup measures how slow a cluster is: far away, throttled or busy. session.Settings.ForSlowness lengthens all waits by that.

const (
	// usualRead and usualController are the longest that a read and an action of a controller may take on a cluster that is as fast as the
	// defaults expect: several times what is usual.
	usualRead       = 50 * time.Millisecond
	usualController = 500 * time.Millisecond
	// mostSlow is the highest factor for waits.
	mostSlow = 10
	// readsEach is the number of reads for each worker. They are sent in parallel, because a throttled server lets single ones through.
	readsEach = 3
)

// NoticeablySlow is the factor from which on a run reports that the cluster is slow.
const NoticeablySlow = 1.5

// Latency is how long a cluster takes to respond and to act.
type Latency struct {
	// Read is the median duration of a read while all workers read.
	Read time.Duration
	// Controller is the longest that the garbage collector took in its probe.
	Controller time.Duration
}

// Slowness is the factor for waits: 1 on a fast cluster, and more on others.
func (l Latency) Slowness() float64 {
	return min(max(1, float64(l.Read)/float64(usualRead), float64(l.Controller)/float64(usualController)), mostSlow)
}

// Latency returns what setup measured.
func (e *Environment) Latency() Latency {
	e.latencyLock.Lock()
	defer e.latencyLock.Unlock()
	return e.latency
}

// measureReads measures the median duration of reads that succeed.
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

// acted records how long a controller took to act.
func (e *Environment) acted(took time.Duration) {
	e.latencyLock.Lock()
	defer e.latencyLock.Unlock()
	e.latency.Controller = max(e.latency.Controller, took)
}

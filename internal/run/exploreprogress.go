package run

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
)

// exploreProgress prints a line for each cluster from time to time.
type exploreProgress struct {
	mu      sync.Mutex
	out     io.Writer
	e       Exploration
	began   time.Time
	printed map[string]time.Time
}

// progressInterval is the time between two lines for a cluster.
const progressInterval = 10 * time.Second

func (p *exploreProgress) round(cluster string, totals exploration.Totals) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.printed == nil {
		p.printed, p.began = map[string]time.Time{}, now
	}
	if now.Sub(p.printed[cluster]) < progressInterval {
		return
	}
	p.printed[cluster] = now
	_, _ = fmt.Fprintf(p.out, "%s: %s, %s left\n", cluster, counted(totals), max(p.e.For-now.Sub(p.began), 0).Round(time.Second))
}

func (p *exploreProgress) ended(cluster string, found exploration.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "%s: %s, seed %d, checked in %s\n", cluster, counted(found.Totals), p.e.Seed, found.Checking.Round(time.Millisecond))
	for _, fault := range p.e.Faults.Faults {
		if count, ok := found.Faults[fault.Name]; ok {
			_, _ = fmt.Fprintf(p.out, "%s: injected %s %d times\n", cluster, fault.Name, count)
		}
	}
	for _, reason := range found.LeftOut {
		_, _ = fmt.Fprintf(p.out, "%s: not injected: %s\n", cluster, reason)
	}
	for _, failure := range found.Failures {
		word := "failed"
		if failure.Property.Observed {
			word = "deviated"
		}
		_, _ = fmt.Fprintf(p.out, "%s: %s\n%s\n", word, failure.Property.ID, messageOf(failure, replayCommand(failure.Property.ID)))
	}
}

func counted(totals exploration.Totals) string {
	text := fmt.Sprintf("%d rounds, %d requests, %d events", totals.Rounds, totals.Requests, totals.Events)
	if totals.Faults > 0 {
		text += fmt.Sprintf(", %d injected faults", totals.Faults)
	}
	return text
}

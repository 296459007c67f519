package redact

import (
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
)

// Progress returns a progress that redacts what it passes on.
func (r *Redactor) Progress(shown progress.Progress) progress.Progress {
	return &redacted{Progress: shown, redactor: r}
}

// redacted redacts what it passes on.
type redacted struct {
	progress.Progress
	redactor *Redactor
}

func (p *redacted) SettingUp(cluster string) { p.Progress.SettingUp(p.redactor.Cluster(cluster)) }

func (p *redacted) SetUp(cluster v1alpha1.Cluster, chosen int) {
	if cluster, err := Copy(p.redactor, cluster); err == nil { // what cannot be redacted is not shown
		p.Progress.SetUp(cluster, chosen)
	}
}

func (p *redacted) Slow(cluster string, latency preflight.Latency, takes time.Duration) {
	p.Progress.Slow(p.redactor.Cluster(cluster), latency, takes)
}

func (p *redacted) Began(cluster, id string) { p.Progress.Began(p.redactor.Cluster(cluster), id) }

func (p *redacted) Ended(cluster string, result v1alpha1.Result) {
	if result, err := Copy(p.redactor, result); err == nil {
		p.Progress.Ended(p.redactor.Cluster(cluster), result)
	}
}

func (p *redacted) Retrying(cluster string, result v1alpha1.Result) {
	if result, err := Copy(p.redactor, result); err == nil {
		p.Progress.Retrying(p.redactor.Cluster(cluster), result)
	}
}

func (p *redacted) TearingDown(cluster string) { p.Progress.TearingDown(p.redactor.Cluster(cluster)) }

package redact

import (
	"reflect"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
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
	whole, err := p.redactor.Report(v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster}})
	if err == nil { // what cannot be redacted is not shown
		p.Progress.SetUp(whole.Clusters[0], chosen)
	}
}

func (p *redacted) Found(cluster string, finding v1alpha1.Finding) {
	if redacted, err := copied(finding); err == nil {
		p.redactor.within(reflect.ValueOf(&redacted))
		p.Progress.Found(p.redactor.Cluster(cluster), redacted)
	}
}

func (p *redacted) Slow(cluster string, latency environment.Latency, takes time.Duration) {
	p.Progress.Slow(p.redactor.Cluster(cluster), latency, takes)
}

func (p *redacted) Began(cluster, id string) { p.Progress.Began(p.redactor.Cluster(cluster), id) }

func (p *redacted) Ended(cluster string, result v1alpha1.Result) {
	if result, err := p.redactor.Result(result); err == nil {
		p.Progress.Ended(p.redactor.Cluster(cluster), result)
	}
}

func (p *redacted) Again(cluster string, result v1alpha1.Result) {
	if result, err := p.redactor.Result(result); err == nil {
		p.Progress.Again(p.redactor.Cluster(cluster), result)
	}
}

func (p *redacted) TearingDown(cluster string) { p.Progress.TearingDown(p.redactor.Cluster(cluster)) }

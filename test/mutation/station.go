package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

const (
	// sharedWait is the timeout of behaviors on a shared cluster. It is short, because a mutant makes a behavior wait for all of it.
	// Where a healthy cluster needs longer, the run without a mutant fails too, and the experiment is repeated.
	sharedWait = 4 * time.Second
	// sharedTimeout is the timeout of a whole behavior there, because some waits are never shorter than minutes.
	sharedTimeout = 45 * time.Second
	// nodeWait and nodeTimeout are these timeouts on a cluster with a node, where containers have to start and end.
	nodeWait, nodeTimeout = 10 * time.Second, 90 * time.Second
	// mutantsEach is how many mutants a cluster serves. Runs leave their namespaces, so that none waits until they are gone.
	mutantsEach = 25
)

// station is a running cluster that mutants share, one after the other. Each mutant is followed by a run of the same behaviors without a
// mutant, with the same timeouts. It shows that the cluster has recovered, and that it was the mutant that made them fail.
type station struct {
	laboratory
	name string
	// cluster is nil when none runs, nodes is the number of its nodes, and served the number of mutants that it has served.
	cluster       *embedded.Cluster
	nodes, served int
	// behave runs behaviors; replaced in tests.
	behave func(ctx context.Context, e experiment, reports string) (v1alpha1.Report, error)
}

func (l laboratory) station(name string) *station {
	s := &station{laboratory: l, name: name}
	s.behave = s.runHere
	return s
}

// test runs an experiment. An error is why the cluster cannot show what the mutant does; the experiment then needs a separate cluster.
func (s *station) test(ctx context.Context, e experiment) (v1alpha1.Report, error) {
	dir := s.path("runs", e.mutant.Name)
	if err := errors.Join(os.RemoveAll(dir), s.prepare(dir, e.mutant)); err != nil {
		return v1alpha1.Report{}, err
	}
	whole, err := s.switched(ctx, e, filepath.Join(dir, "reports"))
	if err == nil {
		var healthy v1alpha1.Report
		if healthy, err = s.behave(ctx, e, ""); err == nil {
			err = passed(healthy, e)
		}
		if err != nil {
			err = fmt.Errorf("afterwards, without the mutant: %w", err)
		}
	}
	if s.served++; err != nil || s.served == mutantsEach {
		s.close()
	}
	if silent := (outcome{experiment: e, missed: missed(whole)}).silent(); err == nil && len(silent) > 0 {
		err = fmt.Errorf("it was not killed by %s", strings.Join(silent, ", "))
	}
	if err != nil { // -again must not use it
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, "reports")))
	}
	return whole, err
}

// switched runs an experiment while its mutant is active.
func (s *station) switched(ctx context.Context, e experiment, reports string) (v1alpha1.Report, error) {
	if err := s.open(ctx, e.nodes()); err != nil {
		return v1alpha1.Report{}, err
	}
	if err := s.activate(e.mutant.Name); err != nil {
		return v1alpha1.Report{}, err
	}
	whole, err := s.behave(ctx, e, reports)
	return whole, errors.Join(err, s.activate(noMutant))
}

// passed fails unless all behaviors of an experiment passed.
func passed(whole v1alpha1.Report, e experiment) error {
	passed := map[string]bool{}
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			passed[result.ID] = result.Outcome == v1alpha1.Passed
		}
	}
	not := slices.DeleteFunc(idsOf(e.behaviors), func(id string) bool { return passed[id] })
	if len(not) > 0 {
		return errors.New("these behaviors did not pass: " + strings.Join(not, ", "))
	}
	return nil
}

func (s *station) folder() string { return s.path("clusters", s.name) }

// open starts a cluster unless one with as many nodes runs.
func (s *station) open(ctx context.Context, nodes int) error {
	if s.cluster != nil && s.nodes == nodes {
		return nil
	}
	s.close()
	if err := errors.Join(os.RemoveAll(s.folder()), s.prepare(s.folder(), Mutant{Name: noMutant})); err != nil {
		return err
	}
	s.cluster, s.nodes, s.served = embedded.New(s.binaries(), withNodes(nodes)...), nodes, 0
	return s.cluster.Create(ctx)
}

// withNodes returns the options of a cluster with nodes, as the runner creates it.
func withNodes(count int) []embedded.Option {
	if count == 0 {
		return nil
	}
	return []embedded.Option{embedded.WithNodes(count, embedded.Images{
		Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage, StopSignal: fixtures.StopSignalImage,
	})}
}

// close removes the cluster.
func (s *station) close() {
	if s.cluster != nil {
		_ = s.cluster.Destroy() // the next start removes what remains
		s.cluster = nil
	}
}

// binaries is the directory of the cluster's binaries.
func (s *station) binaries() string {
	found, _ := filepath.Glob(filepath.Join(s.folder(), "kubernetes", "v*")) // the pattern is valid
	return strings.Join(found, "")
}

// activate names the active mutant. The file is replaced, so that none reads a part of it.
func (s *station) activate(name string) error {
	file := filepath.Join(s.binaries(), switchName)
	if err := os.WriteFile(file+".new", []byte(name+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// planning protects Ginkgo's tree of specs, which is global.
var planning sync.Mutex

// runHere runs behaviors on the cluster as the runner does on one that it has created.
func (s *station) runHere(ctx context.Context, e experiment, reports string) (v1alpha1.Report, error) {
	o := run.NewOptions()
	o.Version, o.ReportDir = "mutation", reports
	o.Processes = processes
	o.Selection = plan.Selection{Slow: true, LabelFilter: plan.LabelFilter(idsOf(e.behaviors))}
	o.MakePlan = func(_ context.Context, selection plan.Selection) (plan.Plan, error) {
		planning.Lock()
		defer planning.Unlock()
		return plan.Make(selection)
	}
	o.Settings.WaitTimeout, o.Timeout = sharedWait, sharedTimeout
	if s.nodes > 0 {
		o.Settings.WaitTimeout, o.Timeout = nodeWait, nodeTimeout
	}
	o.CreateCluster = func(context.Context, plan.Plan) (clusters.Cluster, func(), error) {
		cluster, err := clusters.Created("embedded", s.cluster)
		return cluster, func() {}, err // the next experiment needs it
	}
	o.FindKubectl = func(ctx context.Context) (session.Kubectl, error) {
		return session.FindKubectl(ctx, filepath.Join(s.binaries(), "kubectl"))
	}
	if err := errors.Join(o.Complete(ctx), o.Validate()); err != nil {
		return v1alpha1.Report{}, err
	}
	whole, err := o.Run(ctx)
	if err = errors.Join(err, s.cluster.Alive()); err != nil {
		return whole, err
	}
	for _, cluster := range whole.Clusters {
		if cluster.Problem != "" {
			return whole, errors.New(cluster.Problem)
		}
	}
	return whole, ctx.Err()
}

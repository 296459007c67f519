// Package preflight finds out what a cluster and the credentials offer to a run: which features are missing, and which behaviors are skipped
// for another reason.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// Run makes all checks, probes and dry-runs, in parallel. It fails after a panic, or when a probe could not be completed.
func Run(ctx context.Context, target Target) (*Result, error) {
	r := &Result{target: target, missing: map[v1alpha1.Feature]skipReason{}}
	apis := apisOf(ctx, target)
	var running sync.WaitGroup
	var crashed error
	running.Go(func() {
		crashed = crash.Caught("try the fixtures", func() error {
			r.mutators = findMutators(ctx, target.Client)
			r.skips = findSkips(ctx, target, r.mutators)
			return nil
		})
	})
	running.Go(func() { r.findings = append(r.check(ctx, apis), serverFinding(target), latencyFinding(target.Latency)) })
	err := r.probe(ctx, apis)
	running.Wait()
	unreadable, _ := apis.unreadable()
	r.SlowNamespaces = strings.Join(unreadable, "; ")
	return r, errors.Join(err, crashed)
}

// check runs all checks that are not probes, in parallel. A check that fails is a finding too.
func (r *Result) check(ctx context.Context, apis apis) []v1alpha1.Finding {
	checks := map[string]func(context.Context, Target) (v1alpha1.Finding, error){
		credentialsCheck: checkCredentials,
		apiServicesCheck: apis.check,
		quotaCheck:       checkQuota,
		networkCheck:     checkNetworkPolicies,
		clockCheck: func(ctx context.Context, t Target) (v1alpha1.Finding, error) {
			if t.requires(v1alpha1.Node) {
				r.nodeSkews = measureNodes(ctx, t.Client)
			}
			return checkClock(t, r.nodeSkews), nil
		},
	}
	results := make(chan v1alpha1.Finding, len(checks))
	for name, check := range checks {
		go func() {
			var found v1alpha1.Finding
			err := crash.Caught("check "+name, func() (err error) { found, err = check(ctx, r.target); return err })
			if err != nil {
				found = v1alpha1.Finding{Check: name, Severity: v1alpha1.Unknown, Cause: err.Error()}
			}
			results <- found
		}()
	}
	var all []v1alpha1.Finding
	for range checks {
		if found := <-results; found.Check != "" {
			all = append(all, found)
		}
	}
	return all
}

// notOwn is why OwnCluster is not supported, unless the options list it.
const notOwn = "the cluster was not created for this run: use --provider embedded or --provider kind"

// probes returns the probe of each feature.
func (r *Result) probes(apis apis) map[v1alpha1.Feature]func(context.Context, Target) error {
	return map[v1alpha1.Feature]func(context.Context, Target) error{
		v1alpha1.GC:            probeGarbageCollector,
		v1alpha1.KCM:           probeControllers,
		v1alpha1.CRD:           probeDefinitions,
		v1alpha1.Admin:         mayCreate("clusterroles", "rbac.authorization.k8s.io"),
		v1alpha1.Namespace:     apis.probeNamespaces,
		v1alpha1.Volume:        mayCreate("persistentvolumes", ""),
		v1alpha1.Class:         probeClasses,
		v1alpha1.Hook:          probeWebhook,
		v1alpha1.PodNetwork:    probePodNetwork,
		v1alpha1.Controller:    probeController,
		v1alpha1.SimulatedNode: noting(&r.simulatedNodes, probeSimulatedNode),
		v1alpha1.Node:          noting(&r.NodeRuntime, probeNodes),
		v1alpha1.TwoNodes:      noting(&r.SecondNode, probeTwoNodes),
		v1alpha1.Kubectl: func(_ context.Context, t Target) error { // it does not depend on the cluster
			if t.Kubectl.Absent != "" {
				return skipReason{text: t.Kubectl.Absent}
			}
			return nil
		},
		v1alpha1.OwnCluster: func(context.Context, Target) error { return skipReason{text: notOwn} },
	}
}

// noting returns a probe that also notes what it finds.
func noting[T any](in *T, probe func(context.Context, Target) (T, error)) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) (err error) {
		*in, err = probe(ctx, t)
		return err
	}
}

// probe determines which features the cluster and the credentials have. All probes run in parallel.
func (r *Result) probe(ctx context.Context, apis apis) error {
	probes, answers := r.probes(apis), make([]error, len(v1alpha1.Features))
	var running sync.WaitGroup
	for i, feature := range v1alpha1.Features {
		if _, known := r.target.Unsupported[feature]; known || feature != v1alpha1.Node && slices.Contains(r.target.Supported, feature) {
			continue
		}
		running.Go(func() {
			answers[i] = crash.Caught("probe", func() error { return persistently(ctx, r.target, probes[feature]) })
		})
	}
	running.Wait()
	r.Interrupted = ctx.Err() != nil
	var failures []error
	var crashed error
	for i, feature := range v1alpha1.Features {
		switch err := answers[i]; {
		case err == nil:
		case len(crash.Stacks(err)) > 0:
			crashed = cmp.Or(crashed, err) // one is enough
		default:
			failures = append(failures, r.note(feature, err))
		}
	}
	return errors.Join(append(failures, crashed)...)
}

// note records the error of a probe. An interrupted probe has no result. It fails when the probe could not be completed.
func (r *Result) note(feature v1alpha1.Feature, err error) (failure error) {
	reason := skipReason{text: err.Error()}
	switch {
	case r.Interrupted:
		reason.text = "the run was interrupted during the probe"
	case errors.As(err, &reason):
	case client.Inconclusive(err):
		failure = fmt.Errorf("probe feature %s: %w", feature, err)
	}
	r.missing[feature] = reason
	return failure
}

// probeAttempts limits how often a probe is started again after connection errors.
const probeAttempts = 5

// persistently restarts a probe after connection errors, because a single broken connection must not skip all behaviors that require the
// feature.
func persistently(ctx context.Context, target Target, probe func(context.Context, Target) error) error {
	var err error
	for range probeAttempts {
		if err = probe(ctx, target); err == nil || errors.As(err, new(skipReason)) || !client.Inconclusive(err) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// findSkips tries in parallel what the specs will do: which of the kinds, permissions and roles that they need are missing, and what admission
// does to their objects. What it cannot determine the specs will.
func findSkips(ctx context.Context, t Target, mutators admission.Mutators) []skip {
	kinds := map[string]bool{}
	for _, id := range t.behaviors() {
		for _, kind := range readFixtures()[id].Kinds() {
			kinds[kind] = true
		}
	}
	probes := []func() []skip{
		func() []skip { return probeRoles(ctx, t, t.Slowed(probeTime)) },
		func() []skip { return probeControlledPods(ctx, t, mutators) },
		func() []skip { return missingPermissions(ctx, t) },
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		probes = append(probes, func() []skip { return probeKind(ctx, t, mutators, kind) })
	}
	found := make([][]skip, len(probes))
	crash.InParallel(maxParallelProbes, len(probes), func(i int) { found[i] = probes[i]() })
	return slices.DeleteFunc(slices.Concat(found...), func(one skip) bool { return len(one.behaviors) == 0 })
}

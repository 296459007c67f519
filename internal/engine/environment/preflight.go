package environment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// Setup reports findings about a cluster, one or more for each check. A finding skips behaviors through an unsupported feature; this file
// maps features to findings.

// The checks, in the order of reports.
const (
	serverCheck      = "server"
	credentialsCheck = "credentials"
	admissionCheck   = "admission"
	apiServicesCheck = "apiservices"
	nodesCheck       = "nodes"
	quotaCheck       = "quota"
	sidecarsCheck    = "sidecars"
	networkCheck     = "networkpolicy"
	clockCheck       = "clock"
	latencyCheck     = "latency"
	featuresCheck    = "features"
	kindsCheck       = "kinds"
)

var checksInOrder = []string{
	serverCheck, credentialsCheck, featuresCheck, kindsCheck, admissionCheck, apiServicesCheck, nodesCheck, quotaCheck, sidecarsCheck, networkCheck,
	clockCheck, latencyCheck,
}

// roleRemedy is the remedy for missing permissions.
const roleRemedy = "grant deploy/rbac/clusterrole.yaml"

// missingFeature is why a feature is unsupported, with the text of its finding.
type missingFeature struct{ check, cause, remedy string }

func (o missingFeature) Error() string { return o.cause }

// Unwrap makes it a result of a probe, not a failure.
func (o missingFeature) Unwrap() error { return unmet(o.cause) }

// findings collects the results of concurrent checks.
type findings struct {
	mu  sync.Mutex
	all []v1alpha1.Finding
	// obstacles map unsupported features to their findings.
	obstacles map[v1alpha1.Feature]missingFeature
}

func (f *findings) add(finding v1alpha1.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, finding)
}

func (f *findings) obstruct(need v1alpha1.Feature, by missingFeature) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.obstacles == nil {
		f.obstacles = map[v1alpha1.Feature]missingFeature{}
	}
	f.obstacles[need] = by
}

// check runs all checks that are not probes, in parallel, and waits for them. A check that fails is a finding too.
func (e *Environment) check(ctx context.Context) {
	checks := map[string]func(context.Context) ([]v1alpha1.Finding, error){
		credentialsCheck: e.checkCredentials,
		apiServicesCheck: e.checkAPIServices,
		quotaCheck:       e.checkQuota,
		networkCheck:     e.checkNetworkPolicies,
		clockCheck:       e.checkClock,
	}
	var running sync.WaitGroup
	for name, find := range checks {
		running.Go(func() {
			var found []v1alpha1.Finding
			var err error
			crashed := crash.Caught("check "+name, func() error { found, err = find(ctx); return nil })
			if err = cmp.Or(crashed, err); err != nil {
				e.found.add(v1alpha1.Finding{Check: name, Severity: v1alpha1.Unknown, Cause: err.Error()})
			}
			for _, finding := range found {
				e.found.add(finding)
			}
		})
	}
	running.Wait()
}

// Preflight lists the findings about the cluster, with their effects on the run's behaviors. It omits features that no behavior requires.
func (e *Environment) Preflight() []v1alpha1.Finding {
	skipped := e.skippedByNeeds()
	e.found.mu.Lock()
	all := append([]v1alpha1.Finding{e.serverFinding(), e.latencyFinding()}, e.found.all...)
	e.found.mu.Unlock()
	all = append(all, e.admissionFindings()...)
	for by, ids := range oneOfKinds(skipped) {
		all = append(all, v1alpha1.Finding{
			Check: by.check, Severity: v1alpha1.Skips, Cause: by.cause, Behaviors: slices.Compact(slices.Sorted(slices.Values(ids))), Remedy: by.remedy,
		})
	}
	for i := range all {
		all[i].Effect = effectOf(all[i])
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(checksInOrder, a.Check), slices.Index(checksInOrder, b.Check)), strings.Compare(a.Cause, b.Cause))
	})
	return withoutIdle(all)
}

// admissionFindings describes what admission refuses or changes among the run's objects, or that there is nothing.
func (e *Environment) admissionFindings() []v1alpha1.Finding {
	return append(e.FixtureFindings(),
		v1alpha1.Finding{Check: admissionCheck, Severity: v1alpha1.OK, Cause: "the run's objects pass admission unchanged in dry-runs"},
		v1alpha1.Finding{Check: sidecarsCheck, Severity: v1alpha1.OK, Cause: "admission adds no containers to pods"})
}

// skippedByNeeds groups the behaviors that are skipped because of missing features or permissions, or of kinds that are not served, by the
// reasons.
func (e *Environment) skippedByNeeds() map[missingFeature][]string {
	session := e.Session(1)
	skipped := map[missingFeature][]string{}
	for _, behavior := range e.options.Behaviors {
		reason := session.SkipReason(behavior)
		switch {
		case reason == "":
			for _, by := range e.obstacles {
				if by.announced && slices.Contains(by.behaviors, behavior.ID) {
					skipped[by.asFeature()] = append(skipped[by.asFeature()], behavior.ID)
				}
			}
		case strings.HasPrefix(reason, client.NotServedPrefix):
			by := missingFeature{check: kindsCheck, cause: reason}
			skipped[by] = append(skipped[by], behavior.ID)
		case reason != session.SkipReasons[behavior.ID]:
			by := e.obstacleOf(behavior, reason)
			skipped[by] = append(skipped[by], behavior.ID)
		}
	}
	return skipped
}

// oneOfKinds replaces the reasons that name a kind which is not served by one that names all.
func oneOfKinds(skipped map[missingFeature][]string) map[missingFeature][]string {
	var kinds, behaviors []string
	merged := maps.Clone(skipped)
	for by, ids := range skipped {
		if by.check == kindsCheck {
			kinds, behaviors = append(kinds, strings.TrimPrefix(by.cause, client.NotServedPrefix)), append(behaviors, ids...)
			delete(merged, by)
		}
	}
	if len(kinds) > 0 {
		slices.Sort(kinds)
		merged[missingFeature{check: kindsCheck, cause: client.NotServedPrefix + strings.Join(kinds, ", ")}] = behaviors
	}
	return merged
}

// obstacleOf returns the finding that skips a behavior for a reason.
func (e *Environment) obstacleOf(behavior v1alpha1.Behavior, reason string) missingFeature {
	e.found.mu.Lock()
	defer e.found.mu.Unlock()
	for _, need := range behavior.Features {
		if by, ok := e.found.obstacles[need]; ok && by.cause == reason {
			return by
		}
		if need == v1alpha1.SimulatedNode && e.lostNodes() == reason {
			return missingFeature{check: nodesCheck, cause: reason}
		}
		if e.Unsupported()[need] == reason {
			return missingFeature{featuresCheck, fmt.Sprintf("%s: %s", need, reason), remedies[need]}
		}
	}
	if behavior.Disruptive && !e.options.Disruptive {
		return missingFeature{featuresCheck, reason, "--disruptive"}
	}
	return missingFeature{serverCheck, reason, ""}
}

// remedies are the flags that help when a feature is missing.
var remedies = map[v1alpha1.Feature]string{
	v1alpha1.Hook:    "--webhook-host",
	v1alpha1.Kubectl: "--kubectl",
}

// effectOf returns the effect of a finding on behaviors.
func effectOf(finding v1alpha1.Finding) string {
	if len(finding.Behaviors) == 0 {
		return finding.Effect
	}
	return v1alpha1.SkippedEffect(len(finding.Behaviors))
}

// withoutIdle drops the OK of a check that has other findings.
func withoutIdle(all []v1alpha1.Finding) []v1alpha1.Finding {
	return slices.DeleteFunc(slices.Clone(all), func(finding v1alpha1.Finding) bool {
		return finding.Severity == v1alpha1.OK && finding.Check != serverCheck && slices.ContainsFunc(all, func(other v1alpha1.Finding) bool {
			return other.Check == finding.Check && other.Severity != v1alpha1.OK
		})
	})
}

// flavors are the suffixes of distributions in the version of their API server.
var flavors = []struct{ sign, name string }{
	{"+k3s", "k3s"}, {"+rke2", "RKE2"}, {"-eks-", "Amazon EKS"}, {"-gke.", "GKE"}, {"+k0s", "k0s"}, {"+vmware", "VMware Tanzu"}, {"-aliyun", "Alibaba ACK"},
	{"+IKS", "IBM Cloud"}, {"-tke.", "Tencent TKE"}, {"-mirantis", "Mirantis"}, {"+vcluster", "vcluster"}, {"+kcp", "kcp"},
}

func (e *Environment) serverFinding() v1alpha1.Finding {
	cause := "Kubernetes " + cmp.Or(e.serverVersion, "(the credentials may not read the version)")
	for _, flavor := range flavors {
		if strings.Contains(e.serverVersion, flavor.sign) {
			cause += ", " + flavor.name
		}
	}
	if e.isOpenShift() {
		cause += ", OpenShift"
	}
	return v1alpha1.Finding{Check: serverCheck, Severity: v1alpha1.OK, Cause: cause}
}

func (e *Environment) latencyFinding() v1alpha1.Finding {
	latency := e.Latency()
	finding := v1alpha1.Finding{Check: latencyCheck, Severity: v1alpha1.OK, Cause: "a read takes " + latency.Read.Round(time.Millisecond).String()}
	if slowness := latency.Slowness(); slowness >= NoticeablySlow {
		finding.Effect = fmt.Sprintf("waits are %.1f times as long", slowness)
	}
	return finding
}

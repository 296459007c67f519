package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Result is what preflight has found.
type Result struct {
	// NodeRuntime is the container runtime that the nodes report ("containerd://1.7.2"); empty without nodes, or without the permission to
	// list them.
	NodeRuntime string
	// SecondNode is the name of a second node that runs pods; empty when there is none.
	SecondNode string
	// SlowNamespaces is why namespaces are deleted slowly; empty when no reason is known.
	SlowNamespaces string
	// Interrupted is set when an interruption stopped the probes.
	Interrupted bool

	target Target
	// missing are the features that were probed and are missing.
	missing map[v1alpha1.Feature]skipReason
	// skips are what admission does to objects of the run, and which kinds and permissions are missing.
	skips    []skip
	findings []v1alpha1.Finding
	// mutators are the cluster's mutating admission, and nodeSkews how far the clocks of nodes are ahead of the server's.
	mutators  admission.Mutators
	nodeSkews map[string]time.Duration
	// simulatedNodes are the findings about a Node without a machine and a pod on it.
	simulatedNodes []v1alpha1.Finding
}

// Unsupported maps missing features to the reasons.
func (r *Result) Unsupported() map[v1alpha1.Feature]string {
	unsupported := map[v1alpha1.Feature]string{}
	maps.Copy(unsupported, r.target.Unsupported)
	for feature, reason := range r.missing {
		unsupported[feature] = reason.text
	}
	return unsupported
}

// Apply adds what preflight has found to the configuration of a worker.
func (r *Result) Apply(config session.Config) session.Config {
	config.Unsupported, config.Mutators, config.NodeSkews = r.Unsupported(), r.mutators, r.nodeSkews
	config.SkipReasons = map[string]string{}
	for _, skip := range r.skips {
		if skip.announced {
			continue
		}
		for _, id := range skip.behaviors {
			config.SkipReasons[id] = cmp.Or(config.SkipReasons[id], skip.text)
		}
	}
	return config
}

// Findings lists the findings about the cluster, with their effects on the run's behaviors. It omits features that no behavior requires.
func (r *Result) Findings() []v1alpha1.Finding {
	all := append(slices.Clone(r.findings), r.simulatedNodes...)
	all = append(all,
		v1alpha1.Finding{Check: admissionCheck, Severity: v1alpha1.OK, Cause: "the run's objects pass admission unchanged in dry-runs"},
		v1alpha1.Finding{Check: sidecarsCheck, Severity: v1alpha1.OK, Cause: "admission adds no containers to pods"})
	for _, skip := range r.skips {
		if !skip.announced { // its behaviors may be skipped for another reason
			all = append(all, skip.finding(skip.behaviors))
		}
	}
	for reason, ids := range oneOfKinds(r.skipped()) {
		all = append(all, reason.finding(slices.Compact(slices.Sorted(slices.Values(ids)))))
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(checksInOrder, a.Check), slices.Index(checksInOrder, b.Check)), strings.Compare(a.Cause, b.Cause))
	})
	return withoutIdle(all)
}

// skipped groups the behaviors that are skipped because of missing features or permissions, or of kinds that are not served, by the reasons.
func (r *Result) skipped() map[skipReason][]string {
	config := r.Apply(r.target.Config)
	skipped := map[skipReason][]string{}
	for _, behavior := range r.target.Behaviors {
		text := config.SkipReason(behavior)
		switch {
		case text == "":
			for _, skip := range r.skips {
				if skip.announced && slices.Contains(skip.behaviors, behavior.ID) {
					skipped[skip.skipReason] = append(skipped[skip.skipReason], behavior.ID)
				}
			}
		case strings.HasPrefix(text, client.NotServedPrefix):
			reason := skipReason{check: kindsCheck, text: text}
			skipped[reason] = append(skipped[reason], behavior.ID)
		case text != config.SkipReasons[behavior.ID]:
			reason := r.reasonFor(behavior, text, config.Unsupported)
			skipped[reason] = append(skipped[reason], behavior.ID)
		}
	}
	return skipped
}

// reasonFor returns the skip reason of a behavior with a text.
func (r *Result) reasonFor(behavior v1alpha1.Behavior, text string, unsupported map[v1alpha1.Feature]string) skipReason {
	for _, feature := range behavior.Features {
		switch reason := r.missing[feature]; {
		case reason.check != "" && reason.text == text:
			return reason
		case unsupported[feature] == text:
			return skipReason{featuresCheck, fmt.Sprintf("%s: %s", feature, text), remedies[feature]}
		}
	}
	if behavior.Disruptive && !r.target.Disruptive {
		return skipReason{featuresCheck, text, "--disruptive"}
	}
	return skipReason{check: serverCheck, text: text}
}

// oneOfKinds replaces the reasons that name a kind which is not served by one that names all.
func oneOfKinds(skipped map[skipReason][]string) map[skipReason][]string {
	var kinds, behaviors []string
	merged := maps.Clone(skipped)
	for by, ids := range skipped {
		if by.check == kindsCheck {
			kinds, behaviors = append(kinds, strings.TrimPrefix(by.text, client.NotServedPrefix)), append(behaviors, ids...)
			delete(merged, by)
		}
	}
	if len(kinds) > 0 {
		slices.Sort(kinds)
		merged[skipReason{check: kindsCheck, text: client.NotServedPrefix + strings.Join(kinds, ", ")}] = behaviors
	}
	return merged
}

// remedies are the flags that help when a feature is missing.
var remedies = map[v1alpha1.Feature]string{
	v1alpha1.Hook:    "--webhook-host",
	v1alpha1.Kubectl: "--kubectl",
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

func serverFinding(t Target) v1alpha1.Finding {
	cause := "Kubernetes " + cmp.Or(t.ServerVersion, "(the credentials may not read the version)")
	for _, flavor := range flavors {
		if strings.Contains(t.ServerVersion, flavor.sign) {
			cause += ", " + flavor.name
		}
	}
	if IsOpenShift(t.Client) {
		cause += ", OpenShift"
	}
	return v1alpha1.Finding{Check: serverCheck, Severity: v1alpha1.OK, Cause: cause}
}

func latencyFinding(latency Latency) v1alpha1.Finding {
	finding := v1alpha1.Finding{Check: latencyCheck, Severity: v1alpha1.OK, Cause: "a read takes " + latency.Read.Round(time.Millisecond).String()}
	if slowness := latency.Slowness(); slowness >= NoticeablySlow {
		finding.Effect = fmt.Sprintf("waits are %.1f times as long", slowness)
	}
	return finding
}

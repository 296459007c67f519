package preflight

import (
	"context"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Pods that a NetworkPolicy selects are isolated, except for what policies allow. In some behaviors pods connect to each other.

// checkNetworkPolicies reports that nothing isolates the run's pods, if that is so.
func checkNetworkPolicies(ctx context.Context, t Target) (v1alpha1.Finding, error) {
	by, err := isolation(ctx, t)
	if err != nil || by != "" {
		return v1alpha1.Finding{}, err
	}
	return v1alpha1.Finding{Check: networkCheck, Severity: v1alpha1.OK, Cause: "no NetworkPolicy isolates the run's pods"}, nil
}

// probePodNetwork checks whether NetworkPolicies allow the run's pods to connect to each other. It cannot detect other policies.
func probePodNetwork(ctx context.Context, t Target) error {
	by, err := isolation(ctx, t)
	if err != nil || by == "" {
		return err
	}
	return skipReason{
		networkCheck, fmt.Sprintf("%s in namespace %q keeps the run's pods from connecting to each other", by, t.Namespace),
		"--label or --namespace with a NetworkPolicy that allows it",
	}
}

// isolation names the NetworkPolicies that keep the run's pods from connecting to each other; empty when there is none.
func isolation(ctx context.Context, t Target) (string, error) {
	objects, err := listInside(ctx, t, networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), "NetworkPolicy")
	if err != nil {
		return "", err
	}
	var policies []networkingv1.NetworkPolicy
	for _, object := range objects {
		policy := networkingv1.NetworkPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &policy); err != nil {
			return "", fmt.Errorf("read NetworkPolicy %q: %w", object.GetName(), err)
		}
		if selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector); err == nil && selector.Matches(labels.Merge(t.Settings.Labels, t.Labels())) {
			policies = append(policies, policy)
		}
	}
	return isolating(policies), nil
}

// isolating names the first policy for a direction in which no policy allows all pods; empty when both directions are open. Policies are
// additive.
func isolating(policies []networkingv1.NetworkPolicy) string {
	for _, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress} {
		about := slices.DeleteFunc(slices.Clone(policies), func(policy networkingv1.NetworkPolicy) bool {
			return !slices.Contains(policy.Spec.PolicyTypes, direction)
		})
		opens := func(policy networkingv1.NetworkPolicy) bool {
			if direction == networkingv1.PolicyTypeEgress {
				return slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
					return len(rule.Ports) == 0 && forAll(rule.To)
				})
			}
			return slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
				return len(rule.Ports) == 0 && forAll(rule.From)
			})
		}
		if len(about) > 0 && !slices.ContainsFunc(about, opens) {
			return fmt.Sprintf("NetworkPolicy %q", about[0].Name)
		}
	}
	return ""
}

// forAll reports whether the peers of a rule include all pods of the namespace.
func forAll(peers []networkingv1.NetworkPolicyPeer) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool {
		everywhere := peer.NamespaceSelector == nil || len(peer.NamespaceSelector.MatchLabels)+len(peer.NamespaceSelector.MatchExpressions) == 0
		return everywhere && peer.PodSelector != nil && len(peer.PodSelector.MatchLabels)+len(peer.PodSelector.MatchExpressions) == 0
	})
}

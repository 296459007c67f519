package session

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// SkipReason returns why a behavior is skipped; empty when it is not.
func (c Config) SkipReason(behavior v1alpha1.Behavior) string {
	for _, feature := range behavior.Features {
		if reason, missing := c.Unsupported[feature]; missing {
			return reason
		}
	}
	if reason := c.SkipReasons[behavior.ID]; reason != "" {
		return reason
	}
	if behavior.Disruptive && !c.Disruptive {
		return "disruptive: run it with --disruptive"
	}
	if slices.Contains(behavior.Features, v1alpha1.Kubectl) {
		return older("kubectl", "kubectl", c.Kubectl.Version, behavior.Since)
	}
	return older("Kubernetes", "server", c.ServerVersion, behavior.Since)
}

// older returns why a version is too old for a behavior; empty when it is not.
func older(product, which, present, since string) string {
	if since == "" {
		return ""
	}
	parsed, err := version.ParseGeneric(present)
	if err != nil {
		return fmt.Sprintf("requires %s %s or newer; the version of the %s, %q, is not valid", product, since, which, present)
	}
	if parsed.LessThan(version.MustParseGeneric(since)) {
		return fmt.Sprintf("requires %s %s or newer; the version of the %s is %s", product, since, which, present)
	}
	return ""
}

// Outside returns the skip reason for an action that affects more than a shared namespace.
func (c Config) Outside(what string) string {
	return fmt.Sprintf("it would %s, which could affect other users of namespace %q (--namespace)", what, c.Namespace)
}

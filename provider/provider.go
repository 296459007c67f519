package provider

import "github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

// Features are what whoever made a cluster knows of it.
type Features struct {
	// Supported are the needs that the cluster was made to meet. They are not probed, so that a cluster which does not
	// meet them fails behaviours instead of having them skipped.
	Supported []v1alpha1.Need
	// Unsupported says of needs that the cluster was made without why not.
	Unsupported map[v1alpha1.Need]string
}

// What a provider may offer beside e2e-framework's E2EClusterProvider. A run asks each provider for it, and does without
// where it is not offered.
type (
	// FeatureReporter knows the features of its cluster; those of other clusters are probed.
	FeatureReporter interface{ Features() Features }
	// ComponentController serves a socket under which components of its cluster can be stopped and started; see
	// provider/component.
	ComponentController interface{ Components() string }
	// WebhookReporter knows under which address of this machine its API server can reach a webhook, or why there is none; for
	// other clusters it is made out from the server's own address.
	WebhookReporter interface{ WebhookHost() (string, error) }
	// Ephemeral says whether Destroy removes the cluster with all that is on it, so that nothing needs to be removed from
	// it before.
	Ephemeral interface{ Ephemeral() bool }
)

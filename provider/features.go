package provider

import (
	"sigs.k8s.io/e2e-framework/support"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Features are what whoever made a cluster knows of it. Needs that are in neither field are found out by asking the
// cluster.
type Features struct {
	// Supported are needs that the maker vouches for: they are not probed, so that a cluster that does not meet them
	// fails behaviours instead of having them skipped.
	Supported []v1alpha1.Need
	// Unsupported says of needs that are known not to be met why not; they are not probed either.
	Unsupported map[v1alpha1.Need]string
}

// Featured is a provider that knows what its clusters support.
type Featured interface {
	support.E2EClusterProvider
	// Features are those of the cluster that Create makes.
	Features() Features
}

// Controllable is a provider whose clusters have components that can be stopped and started, by package component.
type Controllable interface {
	support.E2EClusterProvider
	// Components is the path of the socket under which that is possible, until Destroy; empty while there is no cluster.
	Components() string
}

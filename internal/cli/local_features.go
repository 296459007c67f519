package cli

import "github.com/deletion-conformance/deletion-conformance/provider"

// Features are what the flags made of the cluster.
func (l *localCluster) Features() provider.Features {
	return provider.Features{Supported: l.vouched, Unsupported: l.absent}
}

// Components is the socket under which specs stop components of the cluster.
func (l *localCluster) Components() string { return l.control }

// Ephemeral is true: all that is on the cluster goes with it.
func (l *localCluster) Ephemeral() bool { return true }

// Package workers runs specs in processes of their own. The runner starts itself as a worker, hands it a batch of
// behaviors, and reads Ginkgo's reports as the specs end. A worker that dies takes nothing else with it.
package workers

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/framework/specs"
)

// Job is what a worker reads from its standard input.
type Job struct {
	// Kubeconfig says how to reach the cluster. It is not on the worker's command line, because it may hold a token.
	Kubeconfig []byte `json:"kubeconfig"`
	// RequestTimeout bounds each request, for which a kubeconfig has no place; 0 is no bound.
	RequestTimeout time.Duration `json:"requestTimeout,omitempty"`
	// Session is what the run found out about the cluster, and how specs run on it.
	Session session.Config `json:"session"`
	// Behaviors are the ids of the behaviors to test.
	Behaviors []string `json:"behaviors"`
	// Timeout bounds each behavior.
	Timeout time.Duration `json:"timeout"`
}

// message is one line of what a worker writes: a behavior has begun, or has ended, with what evidence.
type message struct {
	Began    string            `json:"began,omitempty"`
	Ended    *types.SpecReport `json:"ended,omitempty"`
	Evidence specs.Evidence    `json:"evidence,omitzero"`
	// Failed says why the worker could not begin at all.
	Failed string `json:"failed,omitempty"`
}

// send writes one message.
func send(to io.Writer, m message) error {
	if err := json.NewEncoder(to).Encode(m); err != nil {
		return fmt.Errorf("report to the runner: %w", err)
	}
	return nil
}

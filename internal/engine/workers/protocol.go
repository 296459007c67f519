// Package workers runs specs in separate processes. The runner starts itself as a worker, sends it a batch of behaviors, and reads Ginkgo's
// reports when specs end. A worker that dies affects only its own spec.
package workers

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
)

// Job is the standard input of a worker.
type Job struct {
	// Kubeconfig configures the connection. It is not on the worker's command line, because it may contain a token.
	Kubeconfig []byte `json:"kubeconfig"`
	// RequestTimeout limits each request, which a kubeconfig cannot configure; 0 for no limit.
	RequestTimeout time.Duration `json:"requestTimeout,omitempty"`
	// Session is what the run found out about the cluster, and the settings of specs.
	Session session.Config `json:"session"`
	// Behaviors are the ids of the behaviors to test, and Files the files with their containers; all are built if there are none.
	Behaviors []string `json:"behaviors"`
	Files     []string `json:"files,omitempty"`
	// Timeout limits each behavior.
	Timeout time.Duration `json:"timeout"`
}

// message is one line of a worker's output: a behavior has started or ended, or a credential is sent or needed.
type message struct {
	// Sent is a value of the header Authorization, which the runner must keep out of reports. Each worker may have others: it reads files itself.
	Sent string `json:"sent,omitempty"`
	// Borrows asks for a credential of the exec plugin, which only the runner runs.
	Borrows  *borrows          `json:"borrows,omitempty"`
	Began    string            `json:"began,omitempty"`
	Ended    *types.SpecReport `json:"ended,omitempty"`
	Evidence specs.Evidence    `json:"evidence,omitzero"`
	// Failed is why the worker could not start.
	Failed string `json:"failed,omitempty"`
}

// borrows asks for the current credential, and a new one where its number is that of one that a server has rejected; 0 for none.
type borrows struct {
	Rejected int `json:"rejected"`
}

// loan is the runner's answer, which follows the job.
type loan struct {
	Credential credentials.Credential `json:"credential"`
	// Failed is why there is none.
	Failed string `json:"failed,omitempty"`
}

// send writes one message.
func send(to io.Writer, m message) error {
	if err := json.NewEncoder(to).Encode(m); err != nil {
		return fmt.Errorf("report to the runner: %w", err)
	}
	return nil
}

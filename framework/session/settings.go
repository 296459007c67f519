package session

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/controller"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/kubectl"
	"github.com/deletion-conformance/deletion-conformance/framework/overlay"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

// Settings are what a user chooses for a run, and every spec follows. They travel as they are from the flags to the
// workers.
type Settings struct {
	// Settle is how long a spec goes on watching after a barrier, before it takes a "does not happen" as shown.
	Settle time.Duration `json:"settle"`
	// WaitTimeout is how long a spec waits for something that must happen.
	WaitTimeout time.Duration `json:"waitTimeout"`
	// FixedSettle and FixedWait say that the user has chosen how long, which then does not depend on the cluster.
	FixedSettle bool `json:"fixedSettle,omitempty"`
	FixedWait   bool `json:"fixedWait,omitempty"`
	// Slowness is how many times as long as on a fast cluster is waited; 1 where it is 0.
	Slowness float64 `json:"slowness,omitempty"`
	// Scale is how many dependents the one owner has that many are collected of.
	Scale int `json:"scale,omitempty"`
	// Disruptive says that behaviors may run that change more of the cluster than what they make.
	Disruptive bool `json:"disruptive,omitempty"`
	// NoCreate says that nothing may be created, changed or deleted: specs only read, and ask what would happen.
	NoCreate bool `json:"noCreate,omitempty"`
	// WebhookHost is the address under which the API server can reach this machine; found out when empty.
	WebhookHost string `json:"webhookHost,omitempty"`
	// Kubectl is the kubectl that specs run.
	Kubectl Kubectl `json:"kubectl,omitzero"`
	// Controller is the controller of the resource under test; the zero value where none is named.
	Controller Controller `json:"controller,omitzero"`
	// Labels and Annotations are on everything that a run creates, pod templates included; NamespaceLabels are on its namespaces, too.
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// PodOverlay is a strategic merge patch for every pod and pod template that a run creates; nil for none.
	PodOverlay map[string]any `json:"podOverlay,omitempty"`
	// ImageRegistry is a mirror to take images from; empty for where they are published.
	ImageRegistry string `json:"imageRegistry,omitempty"`
}

// Overlay is what the settings add to everything that a run creates.
func (s Settings) Overlay() overlay.Overlay {
	return overlay.Overlay{Labels: s.Labels, Annotations: s.Annotations, NamespaceLabels: s.NamespaceLabels, Pod: s.PodOverlay}
}

// Kubectl is a kubectl that specs run, or why there is none.
type Kubectl = kubectl.Binary

// Controller names the controller of the resource under test.
type Controller = controller.Controller

// ListenForController makes a server for a controller that runs in this process. See [controller.Server].
func ListenForController() (*controller.Server, error) { return controller.Listen() }

// Except lets a run change the objects that are not its own and that the user has named for that.
func (s Settings) Except(guard *client.Guard) {
	if s.Controller.IsDeployment() {
		guard.Except(controller.Deployments(s.Controller.Namespace), s.Controller.Name)
	}
}

// ParseController reads the Deployment that runs a controller as kubectl takes it, deploy/NAME, in a namespace.
func ParseController(typeAndName, namespace string) (Controller, error) {
	return controller.Parse(typeAndName, namespace)
}

// KubectlUnwanted is why there is no kubectl in a run in which nothing needs one.
const KubectlUnwanted = "nothing in this run needs it, so none was looked for"

// FindKubectl finds a kubectl, by its path or, when that is empty, in PATH, and asks it for its version. It fails when there
// is none, or when it cannot be run; what is absent says why, too, in one line.
func FindKubectl(ctx context.Context, file string) (Kubectl, error) {
	found, err := kubectl.Find(ctx, file)
	if err != nil {
		found.Absent = strings.Join(strings.Fields(err.Error()), " ")
	}
	return found, err
}

// RemoveFolders removes temporary files that workers of a run left which were killed before they could.
func RemoveFolders(run string) { statedir.RemoveAll(statedir.Kubectl.Of(run)) }

// SweepFolders removes temporary files that workers of any run left which were killed together with their runner, and returns
// the paths. What belongs to a worker that lives is left alone.
func SweepFolders() ([]string, error) { return statedir.Stale(statedir.Kubectl, os.RemoveAll) }

const (
	// DefaultSettle is long enough for a collector to act on what it should leave alone: it takes some 50 ms for what it
	// should not.
	DefaultSettle = 500 * time.Millisecond
	// DefaultWaitTimeout is generous: a healthy cluster needs a fraction of a second, and a broken order is noticed at once.
	DefaultWaitTimeout = 30 * time.Second
	// DefaultScale is enough to keep all of the collector's workers busy, and takes a second or two.
	DefaultScale = 200
)

// DefaultSettings are those of a run that chooses nothing.
func DefaultSettings() Settings {
	return Settings{Settle: DefaultSettle, WaitTimeout: DefaultWaitTimeout, Scale: DefaultScale}
}

// ForSlowness are the settings for a cluster on which all takes several times as long: what the user has not chosen is
// as many times longer.
func (s Settings) ForSlowness(slowness float64) Settings {
	s.Slowness = slowness
	if !s.FixedSettle {
		s.Settle = s.Slowed(s.Settle)
	}
	if !s.FixedWait {
		s.WaitTimeout = s.Slowed(s.WaitTimeout)
	}
	return s
}

// timesAlone is how many times as long as of one object alone others may take to let go: hundreds are deleted at a time.
const timesAlone = 10

// ForRelease are the settings for a kind whose objects others hold for so long when one alone is deleted: unless the user has
// chosen how long, what must happen is waited for longer.
func (s Settings) ForRelease(alone time.Duration) Settings {
	if !s.FixedWait {
		s.WaitTimeout += timesAlone * alone
	}
	return s
}

// Slowed is how long something is waited for on this cluster that is waited for so long on a fast one.
func (s Settings) Slowed(duration time.Duration) time.Duration {
	return time.Duration(float64(duration) * max(s.Slowness, 1)).Round(time.Millisecond)
}

// Domain prefixes every label, annotation and finalizer of the runner.
const Domain = client.Domain

// RunLabel is on everything a run makes, with the run's id.
const RunLabel = client.RunLabel

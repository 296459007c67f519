package session

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/kubectl"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/overlay"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

// Settings are the user's choices for a run that specs depend on. They are passed from the flags to the workers unchanged.
type Settings struct {
	// Settle is the settling time that the user chose, and WaitTimeout the timeout; 0 for times that fit the cluster. See SettlingTime and
	// Timeout.
	Settle      time.Duration `json:"settle,omitempty"`
	WaitTimeout time.Duration `json:"waitTimeout,omitempty"`
	// Slowness is the factor for all waits, relative to a fast cluster; 0 means 1.
	Slowness float64 `json:"slowness,omitempty"`
	// Release is how long the controllers of the kind under test need to release a single deleted object.
	Release time.Duration `json:"release,omitempty"`
	// Scale is the number of dependents in the behavior with many dependents of one owner.
	Scale int `json:"scale,omitempty"`
	// Disruptive allows behaviors that change more of the cluster than their own objects.
	Disruptive bool `json:"disruptive,omitempty"`
	// NoCreate allows only reads and dry-runs.
	NoCreate bool `json:"noCreate,omitempty"`
	// KeepFailed keeps the objects of failed specs.
	KeepFailed bool `json:"keepFailed,omitempty"`
	// WebhookHost is the address under which the API server can reach this machine; detected when empty.
	WebhookHost string `json:"webhookHost,omitempty"`
	// WebhookService is set in a pod that the API server reaches through Services; WebhookHost is then the address of the pod.
	WebhookService bool `json:"webhookService,omitempty"`
	// Kubectl is the kubectl that specs run.
	Kubectl Kubectl `json:"kubectl,omitzero"`
	// Controller is the controller of the resource under test; the zero value for none.
	Controller Controller `json:"controller,omitzero"`
	// Additions are added to every object that a run creates.
	Additions `json:"additions,omitzero"`
	// Fixtures are the manifests that the user gave. Their values, and those of Annotations and PodOverlay, are not recorded.
	Fixtures []*client.Object `json:"fixtures,omitempty"`
	// TraceID is the W3C trace id that requests of specs carry, in hexadecimal digits; empty for none.
	TraceID string `json:"traceID,omitempty"`
}

// Additions are what the policies of a cluster require of the run's objects.
type Additions = overlay.Overlay

// Overlay returns the additions to every object that a run creates.
func (s Settings) Overlay() overlay.Overlay { return s.Additions }

// private returns the values that the user gave.
func (s Settings) private() client.Private {
	annotations := map[string]any{}
	for key, value := range s.Annotations {
		annotations[key] = value
	}
	manifests := []map[string]any{s.PodOverlay, {"metadata": map[string]any{"annotations": annotations}}}
	for _, fixture := range s.Fixtures {
		manifests = append(manifests, fixture.Object)
	}
	return client.NewPrivate(manifests...)
}

// Kubectl is a kubectl that specs run, or the reason why there is none.
type Kubectl = kubectl.Binary

// Controller references the controller of the resource under test.
type Controller = controller.Controller

// ListenForController returns a server for a controller that runs in this process. See [controller.Server].
func ListenForController() (*controller.Server, error) { return controller.Listen() }

// Except allows a run to change objects that it did not create and that the user named.
func (s Settings) Except(guard *client.Guard) {
	if s.Controller.IsDeployment() {
		guard.Except(controller.Deployments(s.Controller.Namespace), s.Controller.Name)
	}
}

// ParseController parses the Deployment of a controller in kubectl's notation, deploy/NAME, in a namespace.
func ParseController(typeAndName, namespace string) (Controller, error) {
	return controller.Parse(typeAndName, namespace)
}

// KubectlUnwanted is why a run does not look for kubectl.
const KubectlUnwanted = "no behavior of this run requires kubectl"

// FindKubectl returns the kubectl at a path or, when that is empty, in PATH, with its version. It fails when there is none, or when it
// cannot be run; Absent then contains the reason on one line.
func FindKubectl(ctx context.Context, file string) (Kubectl, error) {
	found, err := kubectl.Find(ctx, file)
	if err != nil {
		found.Absent = strings.Join(strings.Fields(err.Error()), " ")
	}
	return found, err
}

// RemoveFolders removes temporary files of workers of a run that were killed.
func RemoveFolders(run string) { statedir.RemoveAll(statedir.Kubectl.Of(run)) }

// SweepFolders removes temporary files of workers of any run that were killed together with their runner, and returns the paths. It leaves
// files of running workers alone.
func SweepFolders() ([]string, error) { return statedir.Stale(statedir.Kubectl, os.RemoveAll) }

const (
	// DefaultSettle is long enough for a faulty collector to act: a working one acts within about 50 ms.
	DefaultSettle = 500 * time.Millisecond
	// DefaultWaitTimeout is generous. A healthy cluster needs a fraction of a second, and a wrong order fails at once.
	DefaultWaitTimeout = 30 * time.Second
	// DefaultScale keeps all workers of the collector busy, and takes a second or two.
	DefaultScale = 200
)

// DefaultSettings are the settings without any choice of the user.
func DefaultSettings() Settings {
	return Settings{Scale: DefaultScale}
}

// SettlingTime returns how long a spec keeps watching after a barrier before it concludes that something does not happen: the time that
// the user chose, or one that fits the cluster.
func (s Settings) SettlingTime() time.Duration { return cmp.Or(s.Settle, s.Slowed(DefaultSettle)) }

// timesAlone is how many times longer controllers may take to release one of hundreds of deleted objects than a single one.
const timesAlone = 10

// Timeout returns how long a spec waits for something that must happen: the time that the user chose, or one that fits the cluster and the
// controllers of the kind under test.
func (s Settings) Timeout() time.Duration {
	return cmp.Or(s.WaitTimeout, s.Slowed(DefaultWaitTimeout)+timesAlone*s.Release)
}

// ReleaseLimit returns the timeout of the first wait for a controller to remove its finalizers, from the one on a fast cluster: longer when
// the user set a longer one for everything.
func (s Settings) ReleaseLimit(usual time.Duration) time.Duration {
	return max(s.WaitTimeout, s.Slowed(usual))
}

// Slowed returns the wait on this cluster for a wait on a fast one.
func (s Settings) Slowed(duration time.Duration) time.Duration {
	return time.Duration(float64(duration) * max(s.Slowness, 1)).Round(time.Millisecond)
}

// Domain is the prefix of every label, annotation and finalizer of the runner.
const Domain = client.Domain

// RunLabel is on every object that a run creates. Its value is the run's id.
const RunLabel = client.RunLabel

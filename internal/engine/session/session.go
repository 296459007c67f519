// Package session is the connection of one worker to a cluster: the clients, watches and recorder that its specs share. Specs find it in
// Ginkgo's context, not in a variable.
package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/kubectl"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// Config is what setup found out about a cluster. The runner sends it to its workers.
type Config struct {
	Settings
	// Run is the run's id, with which all its objects are labeled.
	Run string `json:"run"`
	// Worker numbers the workers of a run, from 1.
	Worker int `json:"worker"`
	// GroupDomain is the DNS domain of the API groups that the run defines. No other run uses it at the same time, but later runs do,
	// because an API server keeps metrics of every group that it has served.
	GroupDomain string `json:"groupDomain"`
	// Attempts counts the earlier attempts of the worker's behaviors that ended without a result.
	Attempts map[string]int `json:"attempts,omitempty"`
	// Namespace is where this worker's specs create objects. Only this worker uses it, unless it is Shared.
	Namespace string `json:"namespace"`
	// Shared is set when the run did not create the namespace, so that others, and the run's other workers, have objects in it.
	Shared bool `json:"shared,omitempty"`
	// ServerVersion is the API server's gitVersion ("v1.36.3").
	ServerVersion string `json:"serverVersion"`
	// Unsupported maps features that are not available to the reasons.
	Unsupported map[v1alpha1.Feature]string `json:"unsupported,omitempty"`
	// SkipReasons are those of behaviors by id: admission refuses or changes an object that they create.
	SkipReasons map[string]string `json:"skipReasons,omitempty"`
	// Mutators are the cluster's mutating admission.
	Mutators admission.Mutators `json:"mutators,omitzero"`
	// NodeSkews is how far the clocks of nodes are ahead of the server's, by node. Nodes without a difference are left out.
	NodeSkews map[string]time.Duration `json:"nodeSkews,omitempty"`
	// LostGarbageCollector describes the canary of a barrier that the garbage collector did not delete; empty when there is none.
	LostGarbageCollector string `json:"lostGarbageCollector,omitempty"`
	// Resource is an object of the kind that replaces ConfigMaps; nil when ConfigMaps are tested.
	Resource *client.Object `json:"resource,omitempty"`
	// Unreleased describes the finalizer that a controller did not remove from such an object, and the time limit; empty when there is none.
	Unreleased string `json:"unreleased,omitempty"`
	// Status is a valid status of such an object, from its fixture or its schema; nil when none is known.
	Status map[string]any `json:"status,omitempty"`
	// OrphansByDefault is set when a delete of such an object without a policy orphans its dependents.
	OrphansByDefault bool `json:"orphansByDefault,omitempty"`
	// SpareNode is the node on which disruptive specs run their pods, and other specs do not; empty when they share nodes.
	SpareNode string `json:"spareNode,omitempty"`
	// Components is the socket for stopping and starting components of the cluster; empty when that is not possible.
	Components string `json:"components,omitempty"`
}

// Labels are on all objects of the worker's specs.
func (c Config) Labels() labels.Set {
	return labels.Set{client.RunLabel: c.Run, client.WorkerLabel: strconv.Itoa(c.Worker)}
}

// CustomGroup is the API group of the custom kind that the run's specs share.
func (c Config) CustomGroup() string { return c.GroupDomain }

// SpareGroup is the API group of the custom kind that the run defines for a spec to delete.
func (c Config) SpareGroup() string { return "spare." + c.GroupDomain }

const (
	// lostTimeout is the timeout of specs after the collector has failed a barrier. A working collector needs about 50 ms.
	lostTimeout = 3 * time.Second
	// unreleasedTimeout is the timeout of specs after a controller has not removed its finalizer from the resource under test.
	unreleasedTimeout = 10 * time.Second
	// nodeTimeout is the minimum timeout of specs that wait for a real node, which is slow when it is busy.
	nodeTimeout = time.Minute
	// namespaceTimeout is the timeout of specs in which built-in controllers act on cluster-scoped objects, or the API server on
	// definitions, besides those of others. The namespace controller retries with delays of 5 s and more, and longer on busy processors. A
	// timeout that the user set takes precedence.
	namespaceTimeout = time.Minute
)

// TimeoutFor returns the timeout of a behavior.
func (c Config) TimeoutFor(behavior v1alpha1.Behavior) time.Duration {
	if c.LostGarbageCollector != "" && slices.Contains(behavior.Features, v1alpha1.GC) {
		return min(c.Slowed(lostTimeout), c.Timeout())
	}
	if c.Unreleased != "" {
		return min(c.Slowed(unreleasedTimeout), c.Timeout())
	}
	switch features := behavior.Features; {
	case slices.Contains(features, v1alpha1.Node):
		return c.AtLeast(nodeTimeout)
	case c.WaitTimeout == 0 && (slices.Contains(features, v1alpha1.CRD) || slices.Contains(features, v1alpha1.KCM) && slices.ContainsFunc(features, isClusterScoped)):
		return c.AtLeast(namespaceTimeout)
	}
	return c.Timeout()
}

// isClusterScoped reports whether controllers act on cluster-scoped objects in behaviors with this feature.
func isClusterScoped(feature v1alpha1.Feature) bool {
	return slices.Contains([]v1alpha1.Feature{v1alpha1.Admin, v1alpha1.Namespace, v1alpha1.Volume, v1alpha1.Class, v1alpha1.SimulatedNode}, feature)
}

// Shortened explains why timeouts are shorter than usual when Unreleased is set.
func (c Config) Shortened() string { return "The wait was shortened: " + c.Unreleased }

// AtLeast returns the timeout for something that takes up to this long on a fast cluster: more on a slow one, and at least the run's
// timeout.
func (c Config) AtLeast(duration time.Duration) time.Duration {
	return max(c.Slowed(duration), c.Timeout())
}

// guard returns the guard of a worker, which also permits changes to the Deployment that the user named. With NoCreate it permits no changes.
func (c Config) guard() *client.Guard {
	if c.NoCreate {
		return client.NewGuard("")
	}
	guard := client.NewGuard(c.Run)
	c.Except(guard)
	return guard
}

// Removal returns how specs remove their objects.
func (c Config) Removal() client.Removal {
	removal := client.Removal{}
	for _, feature := range []v1alpha1.Feature{v1alpha1.GC, v1alpha1.KCM} {
		_, absent := c.Unsupported[feature]
		if absent || feature == v1alpha1.GC && c.LostGarbageCollector != "" {
			removal.Absent = append(removal.Absent, feature)
		}
	}
	return removal
}

// Session is a worker's connection to its cluster.
type Session struct {
	Config
	// Client sends the requests of specs, and Recorder records them.
	Client   *client.Client
	Recorder *client.Recorder
	// Watches record the events of the worker's objects.
	Watches *journal.Watches
	// Harness sends the requests that are not part of a spec.
	Harness *client.Client
	// Commands run kubectl for specs.
	Commands *kubectl.Commands
	// Recovers reports whether a wait that has failed with a message comes true after all; nil outside specs.
	Recovers func(ctx context.Context, message string) bool
	// Stalled is set after a controller has not done what a wait that timed out gave it to do.
	Stalled bool
	// node is the context of the node that runs. Gomega's fail handler gets none.
	node context.Context
}

// Connect connects a worker to its cluster. It sends no request.
func Connect(config *rest.Config, settings Config) (*Session, error) {
	connected, err := client.New(config, settings.guard())
	if err != nil {
		return nil, err
	}
	harness := connected.Adding(settings.Additions)
	harness.SetStandIn(settings.Resource)
	recorder, err := settings.recorder()
	if err != nil {
		return nil, err
	}
	requests, err := harness.Recorded(recorder)
	if err != nil {
		return nil, err
	}
	return &Session{
		Config:   settings,
		Client:   requests,
		Recorder: recorder,
		Watches:  journal.NewWatches(harness, settings.Labels().String()),
		Harness:  harness,
		Commands: &kubectl.Commands{
			Binary: settings.Kubectl, Run: settings.Run, Recorded: requests, Harness: harness,
		},
	}, nil
}

// recorder returns the recorder of the requests of specs.
func (c Config) recorder() (*client.Recorder, error) {
	recorder := &client.Recorder{Private: c.private()}
	if c.TraceID == "" {
		return recorder, nil
	}
	id, err := trace.TraceIDFromHex(c.TraceID)
	if err != nil {
		return nil, fmt.Errorf("trace the requests of specs: %w", err)
	}
	recorder.Trace = id
	return recorder, nil
}

// Close stops the session's watches, and what Abandon stops.
func (s *Session) Close() {
	s.Abandon()
	s.Watches.Stop()
}

// Abandon kills running commands and removes temporary files.
func (s *Session) Abandon() { s.Commands.Close() }

type contextKey struct{}

// Decorate makes the session available in the context of specs. It also connects Gomega to Ginkgo and sets its timeouts.
func (s *Session) Decorate() types.AroundNodeDecorator {
	gomega.RegisterFailHandler(func(message string, callerSkip ...int) {
		skip := 1
		if len(callerSkip) > 0 {
			skip += callerSkip[0]
		}
		if s.Recovers != nil && s.Recovers(s.node, message) {
			return // and Gomega continues as after a success
		}
		message = describe.Message(message)
		if s.Unreleased != "" && strings.HasPrefix(message, "Timed out ") {
			message += "\n" + s.Shortened()
		}
		ginkgo.Fail(message, skip)
	})
	format.RegisterCustomFormatter(describe.Value)
	gomega.SetDefaultEventuallyTimeout(s.Timeout())
	gomega.SetDefaultEventuallyPollingInterval(MemoryPolling)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	return ginkgo.AroundNode(func(ctx context.Context) context.Context {
		s.node = context.WithValue(ctx, contextKey{}, s)
		return s.node
	})
}

// MemoryPolling is the interval for reading a history. A watch fills it in memory, so polling sends no requests.
const MemoryPolling = 5 * time.Millisecond

var errNoSession = errors.New("no cluster to run against: run the suites with bin/runner, or set KUBECONFIG for go test and ginkgo; a package that imports conformance must not contain Ginkgo specs")

// Of returns the session in a spec's context. It fails when there is none.
func Of(ctx context.Context) (*Session, error) {
	session, ok := ctx.Value(contextKey{}).(*Session)
	if !ok {
		return nil, errNoSession
	}
	return session, nil
}

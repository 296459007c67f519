// Package session is one worker at work on one cluster: the connection, the watches and the recorder that its specs
// share, one spec after the other. Specs find it in Ginkgo's context, not in a variable.
package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/admission"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/kubectl"
)

// Config is what a run found out about a cluster before the specs start. It travels from the runner to its workers.
type Config struct {
	Settings
	// Run is the id that everything the run makes is labelled with.
	Run string `json:"run"`
	// Worker numbers the workers of a run, from 1.
	Worker int `json:"worker"`
	// GroupDomain is the DNS domain of the API groups that the run defines. No other run uses it at the same time, but later ones do:
	// an API server keeps metrics of every group that it has served until it ends.
	GroupDomain string `json:"groupDomain"`
	// Attempts says of the worker's behaviors that were begun before, without a verdict, how often.
	Attempts map[string]int `json:"attempts,omitempty"`
	// Namespace is where this worker's specs create things. The run made it for this worker alone.
	Namespace string `json:"namespace"`
	// Shared says that the namespace is not the run's own: others have things there, and so have the run's other workers.
	Shared bool `json:"shared,omitempty"`
	// ServerVersion is the API server's gitVersion ("v1.36.3").
	ServerVersion string `json:"serverVersion"`
	// Unsupported says of each need that is not met why not.
	Unsupported map[v1alpha1.Feature]string `json:"unsupported,omitempty"`
	// Prevented says of each behavior why the environment prevents it: what admission refuses or changes of what it creates.
	Prevented map[string]string `json:"prevented,omitempty"`
	// Mutators are others' admission that changes objects.
	Mutators admission.Mutators `json:"mutators,omitzero"`
	// NodeSkews is how far the clocks of nodes are ahead of the server's, by node, as far as they differ.
	NodeSkews map[string]time.Duration `json:"nodeSkews,omitempty"`
	// LostGarbageCollector says which canary of a barrier the garbage collector left; empty as long as it takes them.
	LostGarbageCollector string `json:"lostGarbageCollector,omitempty"`
	// Resource is an object of the kind that is tested in the place of ConfigMaps; nil where ConfigMaps are.
	Resource *client.Object `json:"resource,omitempty"`
	// Status is one that such an object may have, as its fixture has it or its schema suggests; nil where nothing is known of any.
	Status map[string]any `json:"status,omitempty"`
	// OrphansByDefault says that a delete of such an object that names no policy orphans its dependents.
	OrphansByDefault bool `json:"orphansByDefault,omitempty"`
	// Components is the socket under which components of the cluster can be stopped and started; empty where they cannot.
	Components string `json:"components,omitempty"`
}

// Labels are on all that the worker's specs make.
func (c Config) Labels() labels.Set {
	return labels.Set{client.RunLabel: c.Run, client.WorkerLabel: strconv.Itoa(c.Worker)}
}

// Outside says why what needs more of the cluster than a shared namespace is not done.
func (c Config) Outside(what string) string {
	return fmt.Sprintf("it would %s, and this run stays in namespace %q (--namespace) and leaves alone what others have there", what, c.Namespace)
}

// CustomGroup is the API group of the custom kind that the run's specs share.
func (c Config) CustomGroup() string { return c.GroupDomain }

// SpareGroup is the API group of the custom kind that the run defines for a spec to delete.
func (c Config) SpareGroup() string { return "spare." + c.GroupDomain }

// Lacks says why a behavior cannot be tested; it is empty when it can.
func (c Config) Lacks(behavior v1alpha1.Behavior) string {
	for _, need := range behavior.Features {
		if reason, missing := c.Unsupported[need]; missing {
			return reason
		}
	}
	if reason := c.Prevented[behavior.ID]; reason != "" {
		return reason
	}
	if behavior.Disruptive && !c.Disruptive {
		return "it disturbs others on the cluster for a while: --disruptive allows that"
	}
	if slices.Contains(behavior.Features, v1alpha1.Kubectl) {
		return older("kubectl", "kubectl", c.Kubectl.Version, behavior.Since)
	}
	return older("Kubernetes", "server", c.ServerVersion, behavior.Since)
}

// older says why a version is not enough for what a minor version brought; it is empty when it is.
func older(product, which, present, since string) string {
	if since == "" {
		return ""
	}
	parsed, err := version.ParseGeneric(present)
	if err != nil {
		return fmt.Sprintf("needs %s %s or newer, and the %s's version %q cannot be read", product, since, which, present)
	}
	if parsed.LessThan(version.MustParseGeneric(since)) {
		return fmt.Sprintf("needs %s %s or newer; this %s is %s", product, since, which, present)
	}
	return ""
}

const (
	// lostTimeout is how long a spec waits for a collector that has left a barrier's canary. One that works takes some 50 ms.
	lostTimeout = 3 * time.Second
	// nodeTimeout is how long a spec waits for what a real node must do, or longer if the run waits longer: one that is busy
	// takes many times as long as others.
	nodeTimeout = time.Minute
	// namespaceTimeout is how long a spec waits where built-in controllers act on cluster-scoped objects, namespaces
	// above all: their controller goes through each some times, with 5 s and more in between, and far more when the
	// processors are busy. Where the user says how long to wait, that counts.
	namespaceTimeout = time.Minute
)

// TimeoutFor is how long a behavior waits for something that must happen.
func (c Config) TimeoutFor(behavior v1alpha1.Behavior) time.Duration {
	if c.LostGarbageCollector != "" && slices.Contains(behavior.Features, v1alpha1.GC) {
		return min(c.Slowed(lostTimeout), c.WaitTimeout)
	}
	switch needs := behavior.Features; {
	case slices.Contains(needs, v1alpha1.Node):
		return c.AtLeast(nodeTimeout)
	case !c.FixedWait && slices.Contains(needs, v1alpha1.KCM) && slices.ContainsFunc(needs, isClusterScoped):
		return c.AtLeast(namespaceTimeout)
	}
	return c.WaitTimeout
}

// isClusterScoped says that a behavior with this need has controllers act on cluster-scoped objects.
func isClusterScoped(need v1alpha1.Feature) bool {
	return slices.Contains([]v1alpha1.Feature{v1alpha1.Admin, v1alpha1.Namespace, v1alpha1.Volume, v1alpha1.Class, v1alpha1.SimulatedNode}, need)
}

// AtLeast is how long something is waited for that takes up to so long on a fast cluster: longer on a slow one, and
// where the user waits longer for everything.
func (c Config) AtLeast(duration time.Duration) time.Duration {
	return max(c.Slowed(duration), c.WaitTimeout)
}

// guard is what keeps a worker from changing what the run did not create. Its user lets it change the Deployment that is named.
func (c Config) guard() *client.Guard {
	guard := client.NewGuard(c.Run)
	if !c.Shared {
		guard = client.NewGuard(c.Run, c.Namespace)
	}
	c.Except(guard)
	return guard
}

// Removal is how specs remove what they made.
func (c Config) Removal() client.Removal {
	removal := client.Removal{}
	for _, need := range []v1alpha1.Feature{v1alpha1.GC, v1alpha1.KCM} {
		_, absent := c.Unsupported[need]
		if absent || need == v1alpha1.GC && c.LostGarbageCollector != "" {
			removal.Absent = append(removal.Absent, need)
		}
	}
	return removal
}

// Session is a worker's connection to its cluster.
type Session struct {
	Config
	// Client is what specs ask the API server with; Recorder notes what they ask.
	Client   *client.Client
	Recorder *client.Recorder
	// Watches see what the worker's specs make.
	Watches *journal.Watches
	// Harness asks for what belongs to the harness and not to a spec.
	Harness *client.Client
	// Commands run kubectl, as specs tell them to.
	Commands *kubectl.Commands
}

// Connect connects a worker to its cluster. It makes no request yet.
func Connect(config *rest.Config, settings Config) (*Session, error) {
	if settings.NoCreate {
		config = client.OnlyDryRun(config)
	}
	connected, err := client.New(config, settings.guard())
	if err != nil {
		return nil, err
	}
	harness := connected.Adding(settings.Overlay())
	harness.SetStandIn(settings.Resource)
	recorder := &client.Recorder{}
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

// Close ends the session's watches, and what it has started and left outside this process.
func (s *Session) Close() {
	s.Abandon()
	s.Watches.Stop()
}

// Abandon ends what the session has started and left outside this process: commands that run, and temporary files.
func (s *Session) Abandon() { s.Commands.Close() }

type contextKey struct{}

// Decorate is what RunSpecs takes so that the specs find this session: they get it from their context. It also ties
// Gomega to Ginkgo and tells it how long to wait.
func (s *Session) Decorate() types.AroundNodeDecorator {
	gomega.RegisterFailHandler(func(message string, callerSkip ...int) {
		skip := 1
		if len(callerSkip) > 0 {
			skip += callerSkip[0]
		}
		ginkgo.Fail(describe.Message(message), skip)
	})
	format.RegisterCustomFormatter(describe.Value)
	gomega.SetDefaultEventuallyTimeout(s.WaitTimeout)
	gomega.SetDefaultEventuallyPollingInterval(MemoryPolling)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	return ginkgo.AroundNode(func(ctx context.Context) context.Context {
		return context.WithValue(ctx, contextKey{}, s)
	})
}

// MemoryPolling is how often a history is looked at. A history is in memory and filled by a watch, so looking costs no
// request.
const MemoryPolling = 5 * time.Millisecond

var errNoSession = errors.New("no cluster to run against: run the suites with bin/runner, or set KUBECONFIG for go test and ginkgo; a package that imports conformance may not run Ginkgo specs of its own")

// Of is the session that a spec's context holds. It fails where nobody made one.
func Of(ctx context.Context) (*Session, error) {
	session, ok := ctx.Value(contextKey{}).(*Session)
	if !ok {
		return nil, errNoSession
	}
	return session, nil
}

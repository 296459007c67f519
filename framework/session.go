package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
)

// Terms are what a run and a cluster agreed on before the specs start. They travel from the runner to its workers.
type Terms struct {
	// Run is the id that everything the run makes is labelled with.
	Run string `json:"run"`
	// Worker numbers the workers of a run, from 1.
	Worker int `json:"worker"`
	// Namespace is where this worker's specs create things. The run made it for this worker alone.
	Namespace string `json:"namespace"`
	// ServerVersion is the API server's gitVersion ("v1.36.3").
	ServerVersion string `json:"serverVersion"`
	// Missing says of each need that is not met why not.
	Missing map[v1alpha1.Need]string `json:"missing,omitempty"`
	// Control is the socket under which parts of the cluster can be stopped and started; empty where they cannot.
	Control string `json:"control,omitempty"`
	// Settings are the user's, with the webhook host that was found out.
	Settings `json:"settings"`
}

// lacks says why a behaviour cannot be judged on these terms; it is empty when it can.
func (t Terms) lacks(contract v1alpha1.Behavior) string {
	for _, need := range contract.Needs {
		if reason, missing := t.Missing[need]; missing {
			return reason
		}
	}
	if contract.Since == "" {
		return ""
	}
	server, err := version.ParseGeneric(t.ServerVersion)
	if err != nil {
		return fmt.Sprintf("needs Kubernetes %s or newer, and the server's version %q cannot be read", contract.Since, t.ServerVersion)
	}
	if server.LessThan(version.MustParseGeneric(contract.Since)) {
		return fmt.Sprintf("needs Kubernetes %s or newer; this server is %s", contract.Since, t.ServerVersion)
	}
	return ""
}

// Session is one worker at work on one cluster: the connection, the watches and the recorder that its specs share,
// one spec after the other.
type Session struct {
	Terms
	client   *client
	recorder *recorder
	watches  *watches
}

// Open connects a worker to its cluster. It makes no request yet.
func Open(config *rest.Config, terms Terms) (*Session, error) {
	recorder := &recorder{}
	recorded := rest.CopyConfig(config)
	recorded.Wrap(recorder.around)
	asking, err := newClient(recorded)
	if err != nil {
		return nil, err
	}
	watching, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &Session{
		Terms:    terms,
		client:   asking,
		recorder: recorder,
		watches:  newWatches(watching, terms),
	}, nil
}

// Close ends the session's watches.
func (s *Session) Close() { s.watches.stop() }

type sessionKey struct{}

// Decorate is what RunSpecs takes so that the specs find this session: they get it from their context, not from a
// variable. It also ties Gomega to Ginkgo and tells it the session's wait timeout.
func (s *Session) Decorate() types.AroundNodeDecorator {
	gomega.RegisterFailHandler(ginkgo.Fail)
	format.RegisterCustomFormatter(func(value any) (string, bool) {
		object, is := value.(*Object)
		if !is {
			return "", false
		}
		return describe(object), true
	})
	gomega.SetDefaultEventuallyTimeout(s.WaitTimeout)
	gomega.SetDefaultEventuallyPollingInterval(memoryPolling)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	return ginkgo.AroundNode(func(ctx context.Context) context.Context {
		return context.WithValue(ctx, sessionKey{}, s)
	})
}

// memoryPolling is how often Eventually looks at a history. A history is in memory and filled by a watch, so looking
// costs no request.
const memoryPolling = 2 * time.Millisecond

var errNoSession = errors.New("no cluster to run against: run the suites with bin/runner, or set KUBECONFIG for go test and ginkgo")

func sessionOf(ctx context.Context) (*Session, error) {
	session, ok := ctx.Value(sessionKey{}).(*Session)
	if !ok {
		return nil, errNoSession
	}
	return session, nil
}

package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	checks "github.com/deletion-conformance/deletion-conformance/model/history/workloads"
)

// stage is what a round has besides its clients: the watches of all kinds, and a client that acts as the kubelet of the only node.
type stage struct {
	*clients.Round
	watches *journal.Watches
	// kinds are those that the server serves, and node is where all pods are; it is nil where the run may not create one.
	kinds   []kind
	node    string
	created *client.Object
	// home is the namespace of the objects: that of the run, or one that clients may delete, which is own then.
	home    string
	own     *client.Object
	kubelet *kubelet
	// collections are those that the round watches.
	collections []client.Collection
	// ended ends the watches and the kubelet, and stopped is closed after that.
	ended   context.CancelFunc
	stopped chan struct{}

	mu sync.Mutex
	// events are those of the watches so far, and state and objects what exists after them.
	events  []history.Event
	state   checks.State
	objects map[string]*client.Object
}

// begin prepares a round: its node, its watches and its kubelet.
func begin(ctx context.Context, d *exploration.Driver) error {
	with, err := d.Connect()
	if err != nil {
		return err
	}
	s := &stage{Round: d.Current, watches: journal.NewWatches(with, d.Current.Selected().String()), node: fixtures.GhostNode(), stopped: make(chan struct{})}
	s.state, s.objects, s.kubelet = checks.State{}, map[string]*client.Object{}, &kubelet{with: clients.New(d.Current, with, kubeletNumber), done: map[string]bool{}}
	if err := errors.Join(s.createNode(ctx, d), s.createHome(ctx, d)); err != nil {
		return err
	}
	if err := s.watch(ctx, with); err != nil {
		s.watches.Stop()
		return err
	}
	d.Current.State = s
	running := make(chan context.Context, 1)
	d.Go(func(ending context.Context) {
		defer close(s.stopped)
		ending, s.ended = context.WithCancel(ending)
		running <- ending
		var renewals sync.WaitGroup
		defer renewals.Wait()
		if s.created != nil {
			renewals.Go(func() { wait.UntilWithContext(ending, renewing(d.Own, s.created), renewInterval) })
		}
		s.serve(ending)
	})
	<-running
	return nil
}

// renewInterval is the interval at which the Lease of a node is renewed, the default of the kubelet.
const renewInterval = 10 * time.Second

// renewing returns a function that renews the Lease of a node. Without it the node lifecycle controller takes the node for lost after a minute: then it
// marks pods not ready that became ready before it has seen them, and evicts pods later. What fails is tried again after the interval.
func renewing(with *client.Client, node *client.Object) func(context.Context) {
	lease := &client.Object{}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	lease.SetNamespace(corev1.NamespaceNodeLease)
	lease.SetName(node.GetName())
	lease.SetLabels(node.GetLabels())
	lease.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.GetName(), UID: node.GetUID()}})
	exists := false
	return func(ctx context.Context) {
		spec := map[string]any{"holderIdentity": node.GetName(), "renewTime": time.Now().UTC().Format(metav1.RFC3339Micro)}
		if exists {
			with.Patch(ctx, lease, types.MergePatchType, map[string]any{"spec": spec}, "")
			return
		}
		lease.Object["spec"] = spec
		exists = with.Create(ctx, lease).Err == nil
	}
}

// createNode creates the node of a round where the run may do that, and the cluster leaves it alone.
func (s *stage) createNode(ctx context.Context, d *exploration.Driver) error {
	if d.Settings.Unsupported[v1alpha1.SimulatedNode] != "" || d.Settings.Shared {
		return nil
	}
	node := fixtures.Node(fmt.Sprintf("%s-r%d", d.Settings.Run, s.Number))
	mark(node.Object, d.Settings.Labels())
	mark(node.Object, map[string]string{nodeLabel: "true"})
	response := d.Own.Create(ctx, node)
	if response.Err != nil {
		return fmt.Errorf("%w: create node %q: %w", exploration.ErrSkipped, node.GetName(), response.Err)
	}
	s.node, s.created = node.GetName(), response.Object
	return nil
}

// apart is how many rounds there are for each one with its own namespace, which takes longer.
const apart = 4

// createHome chooses the namespace of a round, and creates it where it is one of the round's own and the run may do that.
func (s *stage) createHome(ctx context.Context, d *exploration.Driver) error {
	s.home = d.Settings.Namespace
	if s.Number%apart != apart/2 || d.Settings.Shared || d.Settings.Unsupported[v1alpha1.Namespace] != "" {
		return nil
	}
	home := fixtures.Namespace(fmt.Sprintf("%s-r%d", d.Settings.Run, s.Number))
	mark(home.Object, s.Selected())
	response := d.Own.Create(ctx, home)
	switch {
	case response.Forbidden():
		return nil
	case response.Err != nil:
		return fmt.Errorf("%w: create namespace %q: %w", exploration.ErrSkipped, home.GetName(), response.Err)
	}
	s.home, s.own = home.GetName(), response.Object
	account := fixtures.ServiceAccount()
	account.SetNamespace(s.home)
	mark(account.Object, d.Settings.Labels())
	if created := d.Own.Create(ctx, account); created.Err != nil {
		return fmt.Errorf("%w: create ServiceAccount %q in namespace %q: %w", exploration.ErrSkipped, account.GetName(), s.home, created.Err)
	}
	return nil
}

// watch begins to watch the kinds that the server serves, and the namespace that clients may delete.
func (s *stage) watch(ctx context.Context, with *client.Client) error {
	cover := func(manifest *client.Object) (bool, error) {
		manifest.SetNamespace(s.home)
		collection, err := with.CollectionOf(manifest)
		if err != nil {
			return false, nil //nolint:nilerr // which kinds are served differs
		}
		if !slices.Contains(s.collections, collection) {
			s.collections = append(s.collections, collection)
		}
		return true, s.watches.Cover(ctx, collection).Err
	}
	for _, k := range kinds {
		if k.onNode && s.created == nil {
			continue
		}
		served, err := cover(k.manifest("any"))
		if err != nil {
			return fmt.Errorf("%w: watch %s: %w", exploration.ErrSkipped, k.name, err)
		}
		if served {
			s.kinds = append(s.kinds, k)
		}
	}
	for _, manifest := range dependents {
		if _, err := cover(manifest.DeepCopy()); err != nil {
			return fmt.Errorf("%w: watch %s: %w", exploration.ErrSkipped, manifest.GetKind(), err)
		}
	}
	if len(s.kinds) == 0 {
		return fmt.Errorf("%w: the server serves no workloads", exploration.ErrSkipped)
	}
	if s.own == nil {
		return nil
	}
	if err := s.watches.Cover(ctx, client.Namespaces).Err; err != nil {
		return fmt.Errorf("%w: watch namespaces: %w", exploration.ErrSkipped, err)
	}
	return nil
}

// serve acts as the kubelet until the round ends, and then ends the watches.
func (s *stage) serve(ctx context.Context) {
	defer s.watches.Stop()
	_ = wait.PollUntilContextCancel(ctx, session.MemoryPolling, true, func(ctx context.Context) (bool, error) {
		return false, s.kubelet.act(ctx, s)
	})
}

// kindOf is the kind of the object with an index. Those of the barrier are of each kind in turn, too.
func (s *stage) kindOf(index int) kind { return s.kinds[index%objects%len(s.kinds)] }

// grouped is the name of the workload whose pods a Service or a PodDisruptionBudget selects: the next object of the round.
func (s *stage) grouped(name string) string {
	at := slices.Index(s.Names, name)
	for next := at + 1; next < at+len(s.Names); next++ {
		if index := next % len(s.Names); s.kindOf(index).template != nil && s.kindOf(index).name != "Job" {
			return s.Names[index]
		}
	}
	return name
}

// read reads what the watches have delivered. It fails when events may be missing.
func (s *stage) read() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := 0
	added, err := s.watches.Journal.Read(func(journal.Event) bool { at++; return at > len(s.events) })
	for _, event := range added {
		known := watching.WorkloadEvent(s.Began, event)
		s.events = append(s.events, known)
		s.state.Apply(known)
		if known.Type == history.Deleted {
			delete(s.objects, known.Name)
		} else {
			s.objects[known.Name] = event.Object
		}
	}
	return err
}

// live are the objects that match and exist, by name.
func (s *stage) live(matches func(*client.Object) bool) []*client.Object {
	_ = s.read() // what is missing is noticed at the end of the round
	s.mu.Lock()
	defer s.mu.Unlock()
	var live []*client.Object
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if matches(s.objects[name]) {
			live = append(live, s.objects[name])
		}
	}
	return live
}

// named is the object of a kind with a name; nil if it does not exist.
func (s *stage) named(k kind, name string) *client.Object {
	_ = s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[k.name+"/"+name]
}

// holds reports whether the state of the round is as expected. It fails when events may be missing.
func (s *stage) holds(expected func(checks.State) bool) (bool, error) {
	err := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && expected(s.state), err
}

// await waits until the state of the round is as expected. It returns false after a timeout, and when events may be missing.
func (s *stage) await(ctx context.Context, patience time.Duration, expected func(checks.State) bool) bool {
	return nil == wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, func(context.Context) (bool, error) {
		return s.holds(expected)
	})
}

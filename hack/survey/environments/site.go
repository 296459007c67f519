package environments

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"sync"
	"text/template"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// site is a running, configured cluster.
type site struct {
	cluster *embedded.Cluster
	// kubeconfig is the kubeconfig of the run.
	kubeconfig string
	// runner is the binary that runs the suites.
	runner string
	// client is the administrator's client.
	client client.WithWatch
	// folder is for files of the parts.
	folder string
	harm   harm
	stops  []func() error
}

// newSite starts the cluster. It owns the folder.
func newSite(ctx context.Context, folder string, options ...embedded.Option) (*site, error) {
	cluster, err := lab.Start(ctx, options...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	site := &site{cluster: cluster, kubeconfig: cluster.Kubeconfig(), runner: lab.Runner, folder: folder}
	if site.client, err = client.NewWithWatch(cluster.RESTConfig(), client.Options{}); err != nil {
		return nil, errors.Join(err, site.stop())
	}
	return site, nil
}

// onStop registers a function to call before the cluster is removed, in reverse order.
func (s *site) onStop(stop func() error) { s.stops = append(s.stops, stop) }

// stop stops the programs outside the cluster, and removes the cluster.
func (s *site) stop() error {
	var failed []error
	for _, stop := range slices.Backward(s.stops) {
		failed = append(failed, stop())
	}
	return errors.Join(append(failed, s.cluster.Destroy(), os.RemoveAll(s.folder))...)
}

//go:embed manifests/*.yaml
var manifests embed.FS

// installing limits how long the cluster may take to accept a manifest, because its kind must be served first.
const installing = time.Minute

// apply is a part that creates the objects of manifests/NAME.yaml.
func apply(name string) part {
	return func(ctx context.Context, site *site) error { return site.apply(ctx, name, nil) }
}

// apply creates the objects of manifests/NAME.yaml, a template for the values.
func (s *site) apply(ctx context.Context, name string, values any) error {
	text, err := manifests.ReadFile(path.Join("manifests", name+".yaml"))
	if err != nil {
		return err
	}
	parsed, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return err
	}
	var filled bytes.Buffer
	if err := parsed.Execute(&filled, values); err != nil {
		return err
	}
	return s.create(ctx, &filled)
}

// create creates the objects of a YAML stream.
func (s *site) create(ctx context.Context, from io.Reader) error {
	documents := utilyaml.NewYAMLOrJSONDecoder(from, 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := documents.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(object.Object) == 0:
			continue
		}
		if err := s.createObject(ctx, object); err != nil {
			return fmt.Errorf("create %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// createObject creates an object, and retries until its kind is served.
func (s *site) createObject(ctx context.Context, object *unstructured.Unstructured) error {
	return s.await(ctx, "the cluster does not accept it", func(ctx context.Context) error {
		return s.client.Create(ctx, object.DeepCopy())
	})
}

// as is a part that runs with the credentials of a user instead of the administrator.
func as(user string) part {
	return func(ctx context.Context, site *site) (err error) {
		if site.kubeconfig, err = site.cluster.AddUser(user); err != nil {
			return err
		}
		// The rules of Kubernetes' default roles are aggregated shortly after the start.
		return site.await(ctx, "the role admin allows nothing yet", func(ctx context.Context) error {
			role := &rbacv1.ClusterRole{}
			if err := site.client.Get(ctx, client.ObjectKey{Name: "admin"}, role); err != nil || len(role.Rules) > 0 {
				return err
			}
			return errors.New("it has no rules")
		})
	}
}

// await retries until a function succeeds.
func (s *site) await(ctx context.Context, what string, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, installing, true, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %w", what, err, last)
	}
	return nil
}

// harm collects changes that a run made to objects that it did not create.
type harm struct {
	mu   sync.Mutex
	done []string
}

func (h *harm) add(done string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, done)
}

func (h *harm) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.done)
}

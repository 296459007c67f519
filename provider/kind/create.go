package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kinderrors "sigs.k8s.io/kind/pkg/errors"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/deletion-conformance/deletion-conformance/provider/kind/internal/containers"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

const (
	// nodesReady is how long nodes may take to become Ready after Kubernetes was set up.
	nodesReady = 10 * time.Minute
	// nodesPolling is the interval for checking that.
	nodesPolling = 500 * time.Millisecond
	// removalInterval is the time between removals of what kind creates after an interruption.
	removalInterval = time.Second
)

// ImageOf returns the image that kind publishes for a version of Kubernetes, such as 1.35.0.
func ImageOf(version string) string { return "kindest/node:v" + strings.TrimPrefix(version, "v") }

// configAPIVersion is the version of kind's configuration files.
const configAPIVersion = "kind.x-k8s.io/v1alpha4"

// readConfig reads a configuration file as kind does; empty without a file.
func readConfig(file string) (*v1alpha4.Cluster, error) {
	config := &v1alpha4.Cluster{}
	if file == "" {
		return config, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of a kind cluster: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(config); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the configuration of a kind cluster, %s: %s", file, inOneLine(err.Error()))
	}
	if config.Kind != "Cluster" || config.APIVersion != configAPIVersion {
		return nil, fmt.Errorf("read the configuration of a kind cluster, %s: it begins with `kind: Cluster` and `apiVersion: %s`", file, configAPIVersion)
	}
	return config, nil
}

// createInstance creates a cluster. If it fails it leaves nothing.
func createInstance(ctx context.Context, config *v1alpha4.Cluster, settings settings) (*instance, error) {
	runtime, err := containers.Find(ctx)
	if err != nil {
		return nil, err
	}
	report := progressLines{settings.progress}
	made := &instance{
		config: config, runtime: runtime, report: report,
		provider: cluster.NewProvider(runtime.ForKind, cluster.ProviderWithLogger(report)),
	}
	if err := made.prepare(ctx); err != nil {
		return nil, err
	}
	if made.dir, err = statedir.New(statedir.InKind); err != nil {
		return nil, err
	}
	if err := made.note(settings.keep); err != nil {
		return nil, errors.Join(err, made.forget())
	}
	if err := made.create(ctx, settings.images); err != nil {
		return nil, made.abandon(err, settings.logs)
	}
	return made, nil
}

// prepare checks that the name is free, and that the machine has the nodes' images.
func (c *instance) prepare(ctx context.Context) error {
	there, err := c.provider.ListNodes(c.config.Name)
	if err != nil {
		return reasonOf(err)
	}
	if len(there) > 0 {
		return fmt.Errorf("%w: a kind cluster with this name exists; choose another name, or delete it: %s", ErrNameTaken, c.removal())
	}
	images := map[string]bool{}
	for _, node := range c.config.Nodes {
		if images[node.Image] || c.runtime.Has(ctx, node.Image) {
			continue
		}
		images[node.Image] = true
		c.report.print("pulling %s", node.Image)
		if err := c.runtime.Pull(ctx, node.Image); err != nil {
			return fmt.Errorf("the image of its nodes, %s, is not on this machine and cannot be pulled: %w; set --kind-image to another image", node.Image, err)
		}
	}
	return nil
}

// create creates the cluster, waits for its nodes and preloads images.
func (c *instance) create(ctx context.Context, images []string) error {
	if err := c.make(ctx); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.waitForNodes(ctx); err != nil {
		return err
	}
	c.preload(ctx, images)
	return ctx.Err()
}

// make creates the cluster with kind, which cannot be canceled: when the context ends, the nodes are removed until kind gives up.
func (c *instance) make(ctx context.Context) error {
	var failure error
	made := make(chan struct{})
	go func() {
		defer close(made)
		failure = c.provider.Create(c.config.Name, cluster.CreateWithV1Alpha4Config(c.config),
			cluster.CreateWithKubeconfigPath(c.kubeconfig()), cluster.CreateWithRetain(true))
	}()
	select {
	case <-made:
		return reasonOf(failure)
	case <-ctx.Done():
	}
	for {
		_ = c.provider.Delete(c.config.Name, c.kubeconfig()) // abandon reports a failure of this
		select {
		case <-made: // the error after the nodes were removed does not matter
			return ctx.Err()
		case <-time.After(removalInterval):
		}
	}
}

// nameConflict matches errors of container runtimes about a container with the same name.
var nameConflict = regexp.MustCompile(`name "[^"]*" is already (in use|used) by`)

// abandon removes a cluster that could not be created, after saving its logs if requested.
func (c *instance) abandon(failure error, logs string) error {
	if nameConflict.MatchString(failure.Error()) {
		return errors.Join(fmt.Errorf("%w: another kind cluster with this name was created at the same time; both are left: %s",
			ErrNameTaken, c.removal()), c.forget())
	}
	if logs != "" && !errors.Is(failure, context.Canceled) {
		if err := c.exportLogs(logs); err != nil {
			c.report.print("%v", err)
		}
	}
	if err := c.destroy(); err != nil {
		return fmt.Errorf("%w; %w", failure, err)
	}
	return failure
}

// removal returns a command that removes the cluster without the kind command.
func (c *instance) removal() string {
	names := []string{}
	there, _ := c.provider.ListNodes(c.config.Name) // without names the command is still correct
	for _, node := range there {
		names = append(names, node.String())
	}
	slices.Sort(names)
	return fmt.Sprintf("`%s rm --force --volumes %s`", c.runtime.Name, strings.Join(names, " "))
}

// waitForNodes waits until all nodes are Ready.
func (c *instance) waitForNodes(ctx context.Context) error {
	c.report.print("waiting for the nodes to be ready")
	reader, err := resources.New(c.admin)
	if err != nil {
		return fmt.Errorf("connect to it: %w", err)
	}
	list := &corev1.NodeList{}
	ready := conditions.New(reader).ResourceListMatchN(list, len(c.config.Nodes), func(object k8s.Object) bool {
		return notReady(object.(*corev1.Node)) == ""
	})
	err = wait.For(ready, wait.WithContext(ctx), wait.WithTimeout(nodesReady), wait.WithInterval(nodesPolling), wait.WithImmediate())
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	var reasons []string
	for _, node := range list.Items {
		if reason := notReady(&node); reason != "" {
			reasons = append(reasons, fmt.Sprintf("%s (%s)", node.Name, inOneLine(reason)))
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"the API server does not list them"}
	}
	return fmt.Errorf("its nodes are not Ready after %s: %s", nodesReady, strings.Join(reasons, ", "))
}

// notReady returns why a node is not Ready; empty when it is.
func notReady(node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type != corev1.NodeReady:
		case condition.Status == corev1.ConditionTrue:
			return ""
		default:
			return condition.Message
		}
	}
	return "it has not reported a status yet"
}

// preload loads those images onto the nodes that this machine has. If that fails, the nodes pull them.
func (c *instance) preload(ctx context.Context, images []string) {
	present := slices.DeleteFunc(slices.Clone(images), func(image string) bool { return !c.runtime.Has(ctx, image) })
	if len(present) == 0 {
		return
	}
	c.report.print("loading %s onto the nodes", strings.Join(present, ", "))
	archive := c.dir.Path("images.tar")
	defer func() { _ = os.Remove(archive) }()
	err := c.runtime.Save(ctx, archive, present...)
	if err == nil {
		err = c.load(archive)
	}
	if err != nil && ctx.Err() == nil {
		c.report.print("the nodes pull their images: %v", err)
	}
}

// load loads the images in an archive onto every node.
func (c *instance) load(archive string) error {
	there, err := c.provider.ListInternalNodes(c.config.Name)
	if err != nil {
		return reasonOf(err)
	}
	var loads []func() error
	for _, node := range there {
		loads = append(loads, func() error { return loadInto(node, archive) })
	}
	return reasonOf(kinderrors.AggregateConcurrent(loads))
}

func loadInto(node nodes.Node, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return nodeutils.LoadImageArchive(node, file)
}

// reasonOf returns an error of kind in one line, with the last output of the command that failed.
func reasonOf(err error) error {
	if err == nil {
		return nil
	}
	text := inOneLine(err.Error())
	failed := kindexec.RunErrorForError(err)
	if failed == nil {
		return errors.New(text)
	}
	last := containers.LastLine(failed.Output)
	if last == "" {
		return errors.New(text)
	}
	// The command line itself is not helpful: docker exec with a dozen flags.
	return errors.New(strings.ReplaceAll(text, inOneLine(failed.Error()), last))
}

func inOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

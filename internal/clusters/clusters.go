// Package clusters says which clusters a run is for, from the flags of kubectl users.
package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/provider"
)

// ErrNoCluster says that nothing names a cluster. The current context of ~/.kube/config does not count: a run deletes
// things, and does so only where it was told to.
var ErrNoCluster = errors.New(`no cluster named: say where to run
  --kubeconfig FILE    the cluster of a kubeconfig file (KUBECONFIG counts too)
  --context NAME       a context of your kubeconfig
  --provider local     an embedded Kubernetes, made for this run and removed after it`)

// Flags are the flags that name clusters.
type Flags struct {
	// Kubeconfigs and Contexts name clusters: every context of every file.
	Kubeconfigs, Contexts []string
	// AllContexts names every context of the files.
	AllContexts bool
	// naming holds the flags of the fields above, set those of k8s.io/cli-runtime that apply to every cluster: --server,
	// --token, --as and so on.
	naming, set *pflag.FlagSet
}

// AddTo defines the flags.
func (f *Flags) AddTo(set *pflag.FlagSet) {
	f.naming = pflag.NewFlagSet("clusters", pflag.ContinueOnError)
	f.naming.StringArrayVar(&f.Kubeconfigs, kubeconfigFlag, nil, "kubeconfig `FILE` of a cluster to run on; may be given several times")
	f.naming.StringArrayVar(&f.Contexts, contextFlag, nil, "`NAME` of a context of the kubeconfig; may be given several times")
	f.naming.BoolVar(&f.AllContexts, "all-contexts", false, "run on every context of the kubeconfig")
	rest := genericclioptions.NewConfigFlags(false)
	rest.KubeConfig, rest.Context, rest.Namespace, rest.CacheDir = nil, nil, nil, nil
	f.set = pflag.NewFlagSet("connection", pflag.ContinueOnError)
	rest.AddFlags(f.set)
	set.AddFlagSet(f.naming)
	set.AddFlagSet(f.set)
}

// Given is one of the flags that were given, such as --context; empty when none was.
func (f *Flags) Given() string { return cmp.Or(Given(f.naming), Given(f.set)) }

// Given is one of the flags of a set that were given, empty when none was. Parsing another set that holds the same flags
// counts.
func Given(set *pflag.FlagSet) string {
	given := ""
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && given == "" {
			given = "--" + flag.Name
		}
	})
	return given
}

const (
	kubeconfigFlag = "kubeconfig"
	contextFlag    = "context"
	serverFlag     = "server"
)

// Target is one cluster that exists.
type Target struct {
	// Name is the name of the context.
	Name string
	// Connection are the flags with which a worker reaches the cluster; see Config.
	Connection []string
}

// Targets are the clusters that the flags and KUBECONFIG name. It fails with ErrNoCluster, or says what is wrong with
// the first kubeconfig that cannot be used.
func (f *Flags) Targets() ([]Target, error) {
	files := f.Kubeconfigs
	if environment := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); len(files) == 0 && environment != "" {
		files = []string{environment}
	}
	server := f.set.Lookup(serverFlag).Value.String()
	switch {
	case len(files) > 0:
	case len(f.Contexts) > 0 || f.AllContexts:
		files = []string{clientcmd.RecommendedHomeFile}
	case server != "":
		return []Target{{Name: server, Connection: f.connection("", "")}}, nil
	default:
		return nil, ErrNoCluster
	}
	if f.AllContexts && len(f.Contexts) > 0 {
		return nil, errors.New("--all-contexts and --context contradict each other: give one")
	}
	var targets []Target
	for _, file := range files {
		contexts, err := f.contextsOf(file)
		if err != nil {
			return nil, err
		}
		for _, name := range contexts {
			target, err := f.target(file, name)
			if err != nil {
				return nil, err
			}
			targets = append(targets, target)
		}
	}
	return distinct(targets)
}

// contextsOf are the contexts of a file that are meant.
func (f *Flags) contextsOf(file string) ([]string, error) {
	switch {
	case f.AllContexts:
		return provider.Contexts(file)
	case len(f.Contexts) > 0:
		return f.Contexts, nil
	}
	return []string{currentContext}, nil
}

// currentContext stands for the context that a kubeconfig names as its current one.
const currentContext = ""

// target checks that a context of a file can be used.
func (f *Flags) target(file, name string) (Target, error) {
	existing := provider.NewExisting(file, name)
	if _, err := existing.Create(context.Background()); err != nil {
		return Target{}, err
	}
	target := Target{Name: existing.GetKubectlContext(), Connection: f.connection(file, existing.GetKubectlContext())}
	if _, err := Config(target.Connection); err != nil {
		return Target{}, fmt.Errorf("read kubeconfig %s: %w", file, err)
	}
	return target, nil
}

// distinct refuses two clusters of one name: reports tell clusters apart by their names.
func distinct(targets []Target) ([]Target, error) {
	seen := map[string]bool{}
	for _, target := range targets {
		if seen[target.Name] {
			return nil, fmt.Errorf("two clusters are named %q: rename one of the contexts (kubectl config rename-context)", target.Name)
		}
		seen[target.Name] = true
	}
	return targets, nil
}

// connection are the flags for one cluster.
func (f *Flags) connection(file, name string) []string {
	var flags []string
	add := func(name, value string) { flags = append(flags, "--"+name+"="+value) }
	if file != "" && file != os.Getenv(clientcmd.RecommendedConfigPathEnvVar) { // which workers inherit, and may list files
		add(kubeconfigFlag, file)
	}
	if name != "" {
		add(contextFlag, name)
	}
	f.set.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed {
			return
		}
		values := []string{flag.Value.String()}
		if several, are := flag.Value.(pflag.SliceValue); are {
			values = several.GetSlice()
		}
		for _, value := range values {
			add(flag.Name, value)
		}
	})
	return flags
}

// Existing is how to reach a cluster by its kubeconfig alone, such as one that a provider made.
func Existing(kubeconfig, context string) []string {
	return []string{"--" + kubeconfigFlag + "=" + kubeconfig, "--" + contextFlag + "=" + context}
}

// Config reads a Connection.
func Config(connection []string) (*rest.Config, error) {
	flags := genericclioptions.NewConfigFlags(false)
	set := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	flags.AddFlags(set)
	if err := set.Parse(connection); err != nil {
		return nil, err
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " "))
	}
	return config, nil
}

package clusters

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// Flags are the flags that select clusters.
type Flags struct {
	// Kubeconfigs and Contexts select every context in every file.
	Kubeconfigs, Contexts []string
	// AllContexts selects every context of the files.
	AllContexts bool
	// InCluster selects the cluster of the pod in which this process runs.
	InCluster bool
	// overrides are --server, --token, --as and so on, which apply to every cluster.
	overrides clientcmd.ConfigOverrides
	// clusters and connection contain the flags of the fields above, and of the overrides.
	clusters, connection *pflag.FlagSet
}

// AddTo defines the flags that name clusters in one set, and those of the connection in another.
func (f *Flags) AddTo(clusters, connection *pflag.FlagSet) {
	f.clusters, f.connection = clusters, connection
	f.clusters.StringArrayVar(&f.Kubeconfigs, clientcmd.RecommendedConfigPathFlag, nil, "kubeconfig `FILE` of a cluster to run on; repeatable")
	f.clusters.StringArrayVar(&f.Contexts, clientcmd.FlagContext, nil, "`NAME` of a context of the kubeconfig; repeatable")
	f.clusters.BoolVar(&f.AllContexts, "all-contexts", false, "run on every context of the kubeconfig")
	f.clusters.BoolVar(&f.InCluster, inClusterFlag, false, "run on the cluster of the pod in which the runner runs, with the credentials of its ServiceAccount")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s" // as in kubectl
	for _, without := range []*clientcmd.FlagInfo{
		&names.CurrentContext, &names.ContextOverrideFlags.Namespace, &names.AuthOverrideFlags.Username, &names.AuthOverrideFlags.Password,
	} {
		*without = clientcmd.FlagInfo{}
	}
	clientcmd.BindOverrideFlags(&f.overrides, f.connection, names)
	f.connection.Func(userExtraFlag, "User extra to impersonate for the operation, as `KEY=VALUE`, this flag can be repeated to specify multiple values and keys.", f.addUserExtra)
}

// FirstSet returns one of the flags that were set, such as --context; empty when there is none.
func (f *Flags) FirstSet() string { return cmp.Or(FirstSet(f.clusters), FirstSet(f.connection)) }

// firstSetExcept returns one of the flags that select clusters, other than the named one; empty when there is none.
func (f *Flags) firstSetExcept(name string) string {
	given := ""
	f.clusters.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name != name {
			given = "--" + flag.Name
		}
	})
	return given
}

// FirstSet returns one of the flags of a set that were set; empty when there is none. They may have been parsed by another set.
func FirstSet(set *pflag.FlagSet) string {
	given := ""
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && given == "" {
			given = "--" + flag.Name
		}
	})
	return given
}

const userExtraFlag = "as-user-extra"

// secrets are the flags whose values are not to be printed.
var secrets = []string{clientcmd.FlagBearerToken}

// naming returns flags that name one cluster, and those of its connection that were given, quoted for a shell.
func (f *Flags) naming(flags ...string) string {
	f.connection.VisitAll(func(flag *pflag.Flag) {
		switch {
		case !flag.Changed:
		case slices.Contains(secrets, flag.Name):
			flags = append(flags, "--"+flag.Name, strings.ToUpper(flag.Name))
		case flag.Value.Type() == "bool":
			flags = append(flags, "--"+flag.Name+"="+flag.Value.String())
		default:
			for _, value := range f.valuesOf(flag) {
				flags = append(flags, "--"+flag.Name, value)
			}
		}
	})
	return shellescape.QuoteCommand(flags)
}

// valuesOf returns the values that a flag was given.
func (f *Flags) valuesOf(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	if flag.Name != userExtraFlag {
		return []string{flag.Value.String()}
	}
	var extras []string
	for _, key := range slices.Sorted(maps.Keys(f.overrides.AuthInfo.ImpersonateUserExtra)) {
		for _, value := range f.overrides.AuthInfo.ImpersonateUserExtra[key] {
			extras = append(extras, key+"="+value)
		}
	}
	return extras
}

// addUserExtra adds a value of --as-user-extra, for which clientcmd has no flag.
func (f *Flags) addUserExtra(extra string) error {
	key, value, found := strings.Cut(extra, "=")
	if !found {
		return errors.New("write it as KEY=VALUE")
	}
	user := &f.overrides.AuthInfo
	if user.ImpersonateUserExtra == nil {
		user.ImpersonateUserExtra = map[string][]string{}
	}
	user.ImpersonateUserExtra[key] = append(user.ImpersonateUserExtra[key], value)
	return nil
}

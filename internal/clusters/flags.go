package clusters

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// Flags are the flags that name clusters.
type Flags struct {
	// Kubeconfigs and Contexts name clusters: every context of every file.
	Kubeconfigs, Contexts []string
	// AllContexts names every context of the files.
	AllContexts bool
	// overrides are --server, --token, --as and so on, which apply to every cluster.
	overrides clientcmd.ConfigOverrides
	// naming and connection hold the flags of the fields above, and of the overrides.
	naming, connection *pflag.FlagSet
}

// AddTo defines the flags.
func (f *Flags) AddTo(set *pflag.FlagSet) {
	f.naming = pflag.NewFlagSet("clusters", pflag.ContinueOnError)
	f.naming.StringArrayVar(&f.Kubeconfigs, clientcmd.RecommendedConfigPathFlag, nil, "kubeconfig `FILE` of a cluster to run on; repeatable")
	f.naming.StringArrayVar(&f.Contexts, clientcmd.FlagContext, nil, "`NAME` of a context of the kubeconfig; repeatable")
	f.naming.BoolVar(&f.AllContexts, "all-contexts", false, "run on every context of the kubeconfig")
	f.connection = pflag.NewFlagSet("connection", pflag.ContinueOnError)
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s" // as kubectl has it
	for _, without := range []*clientcmd.FlagInfo{
		&names.CurrentContext, &names.ContextOverrideFlags.Namespace, &names.AuthOverrideFlags.Username, &names.AuthOverrideFlags.Password,
	} {
		*without = clientcmd.FlagInfo{}
	}
	clientcmd.BindOverrideFlags(&f.overrides, f.connection, names)
	f.connection.Func("as-user-extra", "User extra to impersonate for the operation, as `KEY=VALUE`, this flag can be repeated to specify multiple values and keys.", f.addUserExtra)
	set.AddFlagSet(f.naming)
	set.AddFlagSet(f.connection)
}

// Given is one of the flags that were given, such as --context; empty when none was.
func (f *Flags) Given() string { return cmp.Or(Given(f.naming), Given(f.connection)) }

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

// addUserExtra adds a value of --as-user-extra, which clientcmd has no flag for.
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

package clusters_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
)

// FuzzKubeconfig reads arbitrary kubeconfigs: each yields clusters, or an error on one line.
func FuzzKubeconfig(f *testing.F) {
	f.Fuzz(func(t *testing.T, content string) {
		flags, set := clusters.Flags{}, pflag.NewFlagSet("runner", pflag.ContinueOnError)
		flags.AddTo(set, pflag.NewFlagSet("connection", pflag.ContinueOnError))
		if err := set.Parse([]string{"--kubeconfig", write(t, content), "--all-contexts"}); err != nil {
			t.Fatal(err)
		}
		named, err := flags.Clusters()
		if err == nil && len(named) == 0 {
			t.Error("no cluster, and no reason")
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Errorf("want one line that a terminal only shows, got %q", err)
		}
	})
}

package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/provider"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: a, cluster: {server: "https://127.0.0.1:1"}}
- {name: b, cluster: {server: "https://127.0.0.1:2"}}
contexts:
- {name: one, context: {cluster: a, user: u}}
- {name: two, context: {cluster: b}}
users:
- {name: u, user: {token: secret}}
`

func TestExistingReadsAContext(t *testing.T) {
	kubeconfig := write(t, twoContexts)
	for _, test := range []struct{ context, found, host string }{
		{"", "one", "https://127.0.0.1:1"},
		{"two", "two", "https://127.0.0.1:2"},
	} {
		existing := provider.NewExisting(kubeconfig, test.context)
		path, err := existing.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if path != kubeconfig || existing.GetKubeconfig() != kubeconfig {
			t.Errorf("want the path %s, got %s and %s", kubeconfig, path, existing.GetKubeconfig())
		}
		if existing.GetKubectlContext() != test.found {
			t.Errorf("want context %q, got %q", test.found, existing.GetKubectlContext())
		}
		if host := existing.KubernetesRestConfig().Host; host != test.host {
			t.Errorf("want server %s, got %s", test.host, host)
		}
	}
}

func TestExistingSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct{ kubeconfig, context, want string }{
		"missing":         {filepath.Join(t.TempDir(), "absent"), "", "no such file"},
		"empty":           {write(t, ""), "", "has no contexts"},
		"malformed":       {write(t, "a: [b"), "", "read kubeconfig"},
		"unknown context": {write(t, twoContexts), "three", `no context "three": it has one, two`},
		"no such cluster": {write(t, strings.ReplaceAll(twoContexts, "name: b,", "name: c,")), "two", `cluster "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := provider.NewExisting(test.kubeconfig, test.context).Create(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("want %q, got: %v", test.want, err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("want one line, got: %v", err)
			}
		})
	}
}

func TestExistingSaysThatTheServerIsDead(t *testing.T) {
	existing := provider.NewExisting(write(t, twoContexts), "")
	if err := existing.WaitForControlPlane(t.Context(), nil); err == nil {
		t.Error("want an error before Create")
	}
	if _, err := existing.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := existing.WaitForControlPlane(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("want the server in the error, got: %v", err)
	}
}

func write(t *testing.T, kubeconfig string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

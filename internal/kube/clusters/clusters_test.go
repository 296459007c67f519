package clusters_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/provider"
)

// kubeconfig returns a kubeconfig whose first context is the current one.
func kubeconfig(contexts ...string) string {
	text := &strings.Builder{}
	text.WriteString("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: from-the-file}}]\n")
	if len(contexts) > 0 {
		text.WriteString("current-context: " + contexts[0] + "\nclusters:\n")
	}
	for _, name := range contexts {
		text.WriteString("- {name: " + name + ", cluster: {server: \"https://" + name + ".example\"}}\n")
	}
	if len(contexts) > 0 {
		text.WriteString("contexts:\n")
	}
	for _, name := range contexts {
		text.WriteString("- {name: " + name + ", context: {cluster: " + name + ", user: u}}\n")
	}
	return text.String()
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// named returns the clusters of a command line.
func named(t *testing.T, arguments ...string) ([]clusters.Cluster, error) {
	t.Helper()
	flags, set := clusters.Flags{}, pflag.NewFlagSet("runner", pflag.ContinueOnError)
	connection := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	flags.AddTo(set, connection)
	set.AddFlagSet(connection)
	if err := set.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return flags.Clusters()
}

// alone isolates a test from the environment of this process.
func alone(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
}

func TestClusters_None(t *testing.T) {
	alone(t)
	_, err := named(t)
	if !errors.Is(err, clusters.ErrNoCluster) {
		t.Errorf("want %v, got %v", clusters.ErrNoCluster, err)
	}
}

func TestClusters(t *testing.T) {
	alone(t)
	one, two, both := write(t, kubeconfig("one")), write(t, kubeconfig("two")), write(t, kubeconfig("one", "two"))
	for _, test := range []struct {
		name, environment string
		arguments         []string
		hosts             map[string]string
	}{
		{"a file's current context", "", []string{"--kubeconfig", one}, map[string]string{"one": "https://one.example"}},
		{"a context by its name", "", []string{"--kubeconfig", both, "--context", "two"}, map[string]string{"two": "https://two.example"}},
		{
			"two contexts", "", []string{"--kubeconfig", both, "--context", "two", "--context", "one"},
			map[string]string{"one": "https://one.example", "two": "https://two.example"},
		},
		{
			"two files", "", []string{"--kubeconfig", one, "--kubeconfig", two},
			map[string]string{"one": "https://one.example", "two": "https://two.example"},
		},
		{"the environment names a cluster, too", one, nil, map[string]string{"one": "https://one.example"}},
		{"a flag wins over the environment", one, []string{"--kubeconfig", two}, map[string]string{"two": "https://two.example"}},
		{"the environment lists files", one + string(os.PathListSeparator) + two, nil, map[string]string{"one": "https://one.example"}},
		{
			"a context of a later file in the list", one + string(os.PathListSeparator) + two, []string{"--context", "two"},
			map[string]string{"two": "https://two.example"},
		},
		{
			"a server and a token, without any file", "", []string{"--server", "https://there.example", "--token", "t"},
			map[string]string{"https://there.example": "https://there.example"},
		},
		{
			"another server for a context", "", []string{"--kubeconfig", one, "--server", "https://there.example"},
			map[string]string{"one": "https://there.example"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", test.environment)
			found, err := named(t, test.arguments...)
			g.Expect(err).NotTo(HaveOccurred())
			hosts := map[string]string{}
			for _, one := range found {
				config, err := clientcmd.RESTConfigFromKubeConfig(one.Kubeconfig)
				g.Expect(err).NotTo(HaveOccurred())
				hosts[one.Name] = config.Host
				g.Expect(one.Provider.RESTConfig().Host).To(Equal(config.Host), "workers and the runner reach the same server")
			}
			g.Expect(hosts).To(Equal(test.hosts))
		})
	}
}

func TestFlags_Connection(t *testing.T) {
	alone(t)
	g := NewWithT(t)
	found, err := named(t, "--kubeconfig", write(t, kubeconfig("one")), "--token=from a flag, with=signs",
		"--as=somebody", "--as-group=first,group", "--as-group=second", "--as-user-extra=scopes=a", "--as-user-extra=scopes=b",
		"--insecure-skip-tls-verify", "--request-timeout=7s")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveLen(1))
	ofWorkers, err := clientcmd.RESTConfigFromKubeConfig(found[0].Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())

	for _, config := range []*rest.Config{found[0].Provider.RESTConfig(), ofWorkers} {
		g.Expect(config.BearerToken).To(Equal("from a flag, with=signs"))
		g.Expect(config.Impersonate.UserName).To(Equal("somebody"))
		g.Expect(config.Impersonate.Groups).To(Equal([]string{"first,group", "second"}))
		g.Expect(config.Impersonate.Extra).To(Equal(map[string][]string{"scopes": {"a", "b"}}))
		g.Expect(config.Insecure).To(BeTrue())
	}
	g.Expect(found[0].Provider.RESTConfig().Timeout.Seconds()).To(BeEquivalentTo(7))
}

func TestClusters_OneContext(t *testing.T) {
	alone(t)
	g := NewWithT(t)
	found, err := named(t, "--kubeconfig", write(t, kubeconfig("one", "two")), "--context", "two")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(found[0].Kubeconfig)).To(ContainSubstring("from-the-file"))
	g.Expect(string(found[0].Kubeconfig)).NotTo(ContainSubstring("https://one.example"))
}

func TestClusters_CredentialFiles(t *testing.T) {
	alone(t)
	g := NewWithT(t)
	file := write(t, strings.Replace(kubeconfig("one"), "token: from-the-file", "tokenFile: token", 1))
	token := filepath.Join(filepath.Dir(file), "token")
	g.Expect(os.WriteFile(token, []byte("rotated"), 0o600)).To(Succeed())
	t.Chdir(filepath.Dir(file))

	found, err := named(t, "--kubeconfig", filepath.Base(file))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(found[0].Kubeconfig)).NotTo(ContainSubstring("rotated"))
	config, err := clientcmd.RESTConfigFromKubeConfig(found[0].Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.BearerTokenFile).To(Equal(token), "the path is absolute")
}

// createdCluster is a cluster with a kubeconfig.
type createdCluster struct {
	provider.Created
	kubeconfig string
}

func (c createdCluster) Kubeconfig() string { return c.kubeconfig }
func (c createdCluster) Context() string    { return "one" }

func TestCreated(t *testing.T) {
	g := NewWithT(t)
	from := createdCluster{kubeconfig: write(t, kubeconfig("one", "two"))}

	created, err := clusters.Created("embedded", from)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(created.Name).To(Equal("embedded"))
	config, err := clientcmd.RESTConfigFromKubeConfig(created.Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal("https://one.example"))
}

func TestClusters_InvalidKubeconfigs(t *testing.T) {
	alone(t)
	one := write(t, kubeconfig("one"))
	absent := filepath.Join(t.TempDir(), "absent")
	list := func(files ...string) string { return strings.Join(files, string(os.PathListSeparator)) }
	for _, test := range []struct {
		name, environment string
		arguments         []string
		want              []string
	}{
		{"missing", "", []string{"--kubeconfig", absent}, []string{absent, "no such file"}},
		{"a folder", "", []string{"--kubeconfig", filepath.Dir(one)}, []string{filepath.Dir(one), "is a directory"}},
		{"empty", "", []string{"--kubeconfig", write(t, "")}, []string{"has no contexts"}},
		{"malformed YAML", "", []string{"--kubeconfig", write(t, "apiVersion: v1\nkind: [")}, []string{"read kubeconfig"}},
		{"no YAML at all", "", []string{"--kubeconfig", write(t, "<html>no</html>")}, []string{"read kubeconfig"}},
		{"another kind", "", []string{"--kubeconfig", write(t, "apiVersion: v1\nkind: ConfigMap\n")}, []string{"read kubeconfig"}},
		{"no contexts", "", []string{"--kubeconfig", write(t, kubeconfig())}, []string{"has no contexts"}},
		{
			"no current context", "", []string{"--kubeconfig", write(t, strings.Replace(kubeconfig("one", "two"), "current-context: one", "", 1))},
			[]string{"one, two"},
		},
		{"an unknown context", "", []string{"--kubeconfig", one, "--context", "three"}, []string{`no context "three"`, "it has one"}},
		{"a context without its cluster", "", []string{"--kubeconfig", write(t, strings.Replace(kubeconfig("one"), "clusters:\n- {name: one,", "clusters:\n- {name: other,", 1))}, []string{"one"}},
		{
			"a certificate that is missing", "",
			[]string{"--kubeconfig", write(t, strings.Replace(kubeconfig("one"), "cluster: {server", "cluster: {certificate-authority: /no/such/ca.crt, server", 1))},
			[]string{"/no/such/ca.crt"},
		},
		{
			"a certificate that cannot be parsed", "",
			[]string{"--kubeconfig", write(t, strings.Replace(kubeconfig("one"), "cluster: {server", "cluster: {certificate-authority-data: bm9uZQ==, server", 1))},
			[]string{"read context \"one\"", "root certificates"},
		},
		{"a server that is no URL", "", []string{"--server", "https://there:port"}, []string{"--server", "port"}},
		{"the environment names a missing file", absent, nil, []string{absent, "no such file"}},
		{"the environment lists a missing file", list(one, absent), nil, []string{absent, "no such file"}},
		{"the environment lists a malformed file", list(one, write(t, "kind: [")), nil, []string{"read kubeconfig"}},
		{"the environment lists only empty files", list(write(t, ""), write(t, "")), nil, []string{"has no contexts"}},
		{"an unknown context of several files", list(one, write(t, kubeconfig("two"))), []string{"--context", "three"}, []string{`no context "three"`, "one, two"}},
		{"two contexts of one name", "", []string{"--kubeconfig", one, "--kubeconfig", write(t, kubeconfig("one"))}, []string{`two clusters have the name "one"`, "rename"}},
		{"one context twice", "", []string{"--kubeconfig", one, "--context", "one", "--context", "one"}, []string{`two clusters have the name "one"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", test.environment)
			_, err := named(t, test.arguments...)
			g.Expect(err).To(HaveOccurred())
			g.Expect(errors.Is(err, clusters.ErrNoCluster)).To(BeFalse(), "a cluster was named")
			for _, want := range test.want {
				g.Expect(err.Error()).To(ContainSubstring(want))
			}
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "one line")
			g.Expect(err.Error()).NotTo(ContainSubstring("from-the-file"), "no credentials in messages")
		})
	}
}

func TestFlags_Naming(t *testing.T) {
	alone(t)
	file := filepath.Join(t.TempDir(), "the clusters")
	if err := os.WriteFile(file, []byte(kubeconfig("one", "two")), 0o600); err != nil {
		t.Fatal(err)
	}
	quoted := "--kubeconfig '" + file + "' --context "
	for _, test := range []struct {
		name      string
		arguments []string
		want      []string
	}{
		{"the current context", []string{"--kubeconfig", file}, []string{quoted + "one"}},
		{"a context", []string{"--kubeconfig", file, "--context", "two"}, []string{quoted + "two"}},
		{"all contexts", []string{"--kubeconfig", file, "--all-contexts"}, []string{quoted + "one", quoted + "two"}},
		{"a server and a secret", []string{"--server", "https://three.example", "--token", "hunter2", "--insecure-skip-tls-verify"}, []string{
			"--insecure-skip-tls-verify=true --server https://three.example --token TOKEN",
		}},
		{"somebody else", []string{"--kubeconfig", file, "--as", "eve", "--as-group", "a", "--as-group", "b c", "--as-user-extra", "k=v"}, []string{
			quoted + "one --as eve --as-group a --as-group 'b c' --as-user-extra k=v",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			found, err := named(t, test.arguments...)
			g.Expect(err).NotTo(HaveOccurred())
			var flags []string
			for _, cluster := range found {
				flags = append(flags, cluster.Flags)
				again, err := named(t, arguments(t, cluster.Flags)...)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(again).To(HaveLen(1))
				g.Expect(again[0].Name).To(Equal(cluster.Name))
			}
			g.Expect(flags).To(Equal(test.want))
		})
	}
}

// arguments are those of a command line, as a shell reads them.
func arguments(t *testing.T, line string) []string {
	t.Helper()
	printed, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+line).Output()
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(printed), "\n"), "\n")
}

package redact

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
)

// Scope is what a redactor replaces besides the credentials of clusters.
type Scope struct {
	// Names also replaces the names of contexts, clusters, users, namespaces and servers, and all addresses.
	Names bool
	// Namespace is the namespace to which the user restricted the run; it may be empty.
	Namespace string
	// Files are the paths of files that the run uses.
	Files []string
}

// For returns a redactor for clusters: for their credentials, and the paths of files that they use. It replaces their providers, so that it
// sees the credentials of plugins and of files that change when they are sent.
func For(named []clusters.Cluster, scope Scope) (*Redactor, error) {
	redactor := &Redactor{folders: folders(), standIns: map[string]string{}}
	files := scope.Files
	for i, cluster := range named { // first, because names of clusters must stay unique
		redactor.standIns[cluster.Name] = fmt.Sprintf("cluster-%d", i+1)
	}
	for i, cluster := range named {
		kubeconfig, err := clientcmd.Load(cluster.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read the credentials of %q, to keep them out of reports: %w", cluster.Name, err)
		}
		for _, user := range kubeconfig.AuthInfos {
			redactor.add(secretsOf(user)...)
			files = append(files, user.TokenFile, user.ClientCertificate, user.ClientKey)
			if user.Exec != nil {
				files = append(files, user.Exec.Command)
			}
		}
		for _, server := range kubeconfig.Clusters {
			redactor.add(passwordIn(server.Server), passwordIn(server.ProxyURL))
			files = append(files, server.CertificateAuthority)
		}
		redactor.name(kubeconfig, i+1)
		named[i].Provider = watched{cluster.Provider, redactor.Note}
	}
	redactor.add(inEnvironment()...)
	redactor.paths = shortened(files)
	if scope.Names {
		redactor.standIn(scope.Namespace, "namespace-1")
		redactor.names = anyOf(redactor.standIns)
	}
	return redactor, nil
}

// shortestValue is the minimum length of a value that is probably not a credential, to be replaced like one.
const shortestValue = 8

// telling matches the names of variables and arguments whose values are credentials.
var telling = regexp.MustCompile(`(?i)pass|secret|token|key|credential|auth`)

// secretsOf returns the credentials of a user.
func secretsOf(user *clientcmdapi.AuthInfo) []string {
	secrets := []string{user.Token, user.Password, contentOf(user.TokenFile)}
	for _, data := range []string{string(user.ClientKeyData), string(user.ClientCertificateData), contentOf(user.ClientKey)} {
		secrets = append(secrets, data)
		for line := range strings.Lines(data) {
			if !strings.HasPrefix(line, "-----") {
				secrets = append(secrets, line)
			}
		}
	}
	if user.AuthProvider != nil {
		for name, value := range user.AuthProvider.Config {
			secrets = append(secrets, valueOf(name, value))
		}
	}
	if user.Exec != nil {
		for _, variable := range user.Exec.Env {
			secrets = append(secrets, valueOf(variable.Name, variable.Value))
		}
		secrets = append(secrets, valuesOf(user.Exec.Args)...)
	}
	return secrets
}

// contentOf returns the content of a file; empty if it cannot be read, because it is not used then either.
func contentOf(file string) string {
	content, _ := os.ReadFile(file)
	return string(content)
}

// valueOf returns a value that may be a credential; empty otherwise.
func valueOf(name, value string) string {
	if !telling.MatchString(name) && (len(value) < shortestValue || isCommon(value)) {
		return ""
	}
	return value
}

// valuesOf returns what may be credentials in the arguments of a command: --name=value, --name value and value.
func valuesOf(arguments []string) []string {
	var values []string
	flag := ""
	for _, argument := range arguments {
		name, value, assigned := strings.Cut(argument, "=")
		switch {
		case strings.HasPrefix(argument, "-") && !assigned:
			flag = argument
			continue
		case assigned && strings.HasPrefix(argument, "-"):
			values = append(values, valueOf(name, value))
		default: // or NAME=VALUE, as of env
			values = append(values, valueOf(flag, argument), valueOf(name, value))
		}
		flag = ""
	}
	return values
}

// inEnvironment returns the credentials in the variables that clients of this process read.
func inEnvironment() []string {
	var secrets []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		secrets = append(secrets, passwordIn(os.Getenv(name)))
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for header := range strings.SplitSeq(os.Getenv(name), ",") {
			_, value, _ := strings.Cut(header, "=")
			decoded, _ := url.PathUnescape(value)
			secrets = append(secrets, value, decoded)
		}
	}
	return secrets
}

// passwordIn returns the password in a URL, if any.
func passwordIn(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	password, _ := parsed.User.Password()
	return password
}

// shortened replaces the paths of files by their names.
func shortened(files []string) *strings.Replacer {
	var pairs []string
	for _, file := range distinct(files) {
		if filepath.IsAbs(file) {
			pairs = append(pairs, file, filepath.Base(file))
		}
	}
	return strings.NewReplacer(pairs...)
}

// folders returns the directories of this machine with which paths in errors begin, and their replacements.
func folders() []substitute {
	working, _ := os.Getwd() // an unknown directory is in no path
	home, _ := os.UserHomeDir()
	executable, _ := os.Executable()
	known := map[string]string{
		filepath.Clean(os.TempDir()): "$$TMPDIR", home: "~", filepath.Dir(executable): "$$RUNNER", working: ".",
	}
	var paths []string
	for path := range known {
		if filepath.IsAbs(path) && path != "/" {
			paths = append(paths, path)
		}
	}
	var found []substitute
	for _, path := range distinct(paths) {
		found = append(found, substitute{
			only:    []string{strings.ToLower(path)},
			pattern: regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(path) + `(/|\b)`), by: "${1}" + known[path] + "$2",
		})
	}
	return found
}

// everywhere are names that many clusters have and that have other meanings. They do not identify a cluster.
var everywhere = []string{
	"default", "kubernetes", "admin", "embedded", "local", "cluster", "user", "localhost", "in-cluster", "deletion-conformance",
	"kube-system", "kube-public", "kube-node-lease",
}

// isCommon reports whether a name identifies no cluster, as those of Kubernetes' own users and groups.
func isCommon(name string) bool {
	return strings.HasPrefix(name, "system:") || slices.Contains(everywhere, strings.ToLower(name))
}

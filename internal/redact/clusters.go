package redact

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
)

// For returns a redactor for a run on clusters: for their credentials, and the paths of files that they and the run use. With names, also
// for the names of contexts, clusters and users, and all addresses.
func For(named []clusters.Cluster, names bool, files ...string) (*Redactor, error) {
	var secrets []string
	standIns := map[string]string{}
	for i, cluster := range named { // first, because names of clusters must stay unique
		standIns[cluster.Name] = fmt.Sprintf("cluster-%d", i+1)
	}
	for i, cluster := range named {
		kubeconfig, err := clientcmd.Load(cluster.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read the credentials of %q, to keep them out of reports: %w", cluster.Name, err)
		}
		for _, user := range kubeconfig.AuthInfos {
			secrets = append(secrets, secretsOf(user)...)
			files = append(files, user.TokenFile, user.ClientCertificate, user.ClientKey)
			if user.Exec != nil {
				files = append(files, user.Exec.Command)
			}
		}
		for _, server := range kubeconfig.Clusters {
			secrets = append(secrets, passwordIn(server.Server), passwordIn(server.ProxyURL))
			files = append(files, server.CertificateAuthority)
		}
		name(standIns, kubeconfig, i+1)
	}
	redactor := &Redactor{folders: folders(), standIns: standIns, known: replacer(secrets, files)}
	if names {
		redactor.names = anyOf(standIns)
	}
	return redactor, nil
}

const (
	// shortestSecret is the minimum length of credentials that are replaced, in characters: shorter ones would match in every word.
	shortestSecret = 4
	// shortestValue is the same for a value that is probably not a credential.
	shortestValue = 8
)

// telling matches the names of variables whose values are credentials.
var telling = regexp.MustCompile(`(?i)pass|secret|token|key|credential`)

// secretsOf returns the credentials of a user, in every encoding.
func secretsOf(user *clientcmdapi.AuthInfo) []string {
	secrets := []string{user.Token, user.Password}
	if user.TokenFile != "" {
		content, _ := os.ReadFile(user.TokenFile) // a file that cannot be read is not used either
		secrets = append(secrets, strings.TrimSpace(string(content)))
	}
	for _, data := range [][]byte{user.ClientKeyData, user.ClientCertificateData} {
		secrets = append(secrets, base64.StdEncoding.EncodeToString(data), strings.TrimSpace(string(data)))
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
	}
	return secrets
}

// valueOf returns a value that may be a credential; empty otherwise.
func valueOf(name, value string) string {
	if !telling.MatchString(name) && len(value) < shortestValue {
		return ""
	}
	return value
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

// replacer replaces credentials, and the directories of files.
func replacer(secrets, files []string) *strings.Replacer {
	var pairs []string
	for _, secret := range distinct(secrets) {
		if len(secret) >= shortestSecret {
			pairs = append(pairs, secret, removed)
		}
	}
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
var everywhere = []string{"default", "kubernetes", "admin", "embedded", "local", "cluster", "user", "localhost"}

// name adds replacements for the names in a kubeconfig.
func name(standIns map[string]string, kubeconfig *clientcmdapi.Config, number int) {
	add := func(name, kind string) {
		if _, known := standIns[name]; name != "" && !known {
			standIns[name] = fmt.Sprintf("%s-%d", kind, number)
		}
	}
	for context := range kubeconfig.Contexts {
		add(context, "cluster")
	}
	for entry, server := range kubeconfig.Clusters {
		add(hostOf(server.Server), "server")
		add(server.TLSServerName, "server")
		add(hostOf(server.ProxyURL), "proxy")
		add(entry, "cluster")
	}
	for entry, user := range kubeconfig.AuthInfos {
		add(entry, "user")
		add(user.Username, "user")
		add(user.Impersonate, "user")
	}
}

func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// anyOf returns a pattern for the replaced names, and for users in the API server's refusals.
func anyOf(standIns map[string]string) *regexp.Regexp {
	var names []string
	for name := range standIns {
		if !slices.Contains(everywhere, name) {
			names = append(names, name)
		}
	}
	patterns := []string{`$.`} // which never matches
	for _, name := range distinct(names) {
		patterns = append(patterns, bounded(name))
	}
	return regexp.MustCompile(strings.Join(patterns, "|"))
}

// bounded returns a pattern for a name that is not part of a word.
func bounded(name string) string {
	pattern := regexp.QuoteMeta(name)
	if regexp.MustCompile(`^\w`).MatchString(name) {
		pattern = `\b` + pattern
	}
	if regexp.MustCompile(`\w$`).MatchString(name) {
		pattern += `\b`
	}
	return pattern
}

var (
	// addresses matches IP addresses as Go and Kubernetes write them.
	addresses = regexp.MustCompile(`\b(\d{1,3}\.){3}\d{1,3}\b|\[[0-9a-fA-F:.]{2,}(%\w+)?\]`)
	// users matches the user in a refusal of an API server.
	users = regexp.MustCompile(`\b([Uu]ser) "[^"]*"`)
	// lookups matches the name of a DNS lookup.
	lookups = regexp.MustCompile(`\blookup \S+`)
)

// withoutAddresses removes network details: addresses and users.
func withoutAddresses(text string) string {
	text = addresses.ReplaceAllStringFunc(text, func(found string) string {
		if address, err := netip.ParseAddr(strings.Trim(found, "[]")); err != nil || address.IsLoopback() {
			return found
		}
		return "address"
	})
	text = lookups.ReplaceAllString(text, "lookup server")
	return users.ReplaceAllString(text, `$1 "user"`)
}

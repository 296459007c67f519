// Package lab is what the surveys share: it starts clusters and programs next to them, runs the built runner on them, and writes documents and
// claims of what came out.
package lab

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/util/cert"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
)

// Bin is where make puts the runner, Kubernetes and other programs, and Runner is the built runner.
const Bin, Runner = "bin", "bin/runner"

// Survey declares its flags, and returns what runs it with the other arguments, which are flags of the runner.
type Survey func(flags *flag.FlagSet) func(ctx context.Context, arguments []string) error

// UsageError is an error in the command line.
type UsageError struct{ error }

// Choose returns those with the names, separated by commas, or all.
func Choose[T any](all []T, nameOf func(T) string, names string) ([]T, error) {
	if names == "" {
		return all, nil
	}
	var chosen []T
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(one T) bool { return nameOf(one) == name })
		if i < 0 {
			var known []string
			for _, one := range all {
				known = append(known, nameOf(one))
			}
			return nil, UsageError{fmt.Errorf("there is no %q: -only takes %s", name, strings.Join(known, ", "))}
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// Binaries returns the directory of the built Kubernetes.
func Binaries() (string, error) { return binaries.Find(filepath.Join(Bin, "kubernetes"), "") }

// Kubectl returns the kubectl of the built Kubernetes, which it builds if necessary.
func Kubectl(ctx context.Context) (string, error) {
	dir, err := Binaries()
	if err != nil {
		return "", err
	}
	return binaries.Kubectl(ctx, dir, os.Stderr)
}

// Start starts a cluster of the built Kubernetes.
func Start(ctx context.Context, options ...embedded.Option) (*embedded.Cluster, error) {
	binaries, err := Binaries()
	if err != nil {
		return nil, err
	}
	cluster := embedded.New(binaries, options...)
	return cluster, cluster.Create(ctx)
}

// Run runs the built runner, with the report in a directory. Failed behaviors are results, not errors.
func Run(ctx context.Context, folder string, arguments ...string) (v1alpha1.Report, error) {
	return runnertest.Run(ctx, Runner, folder, arguments...)
}

// WriteDocument writes a generated document.
func WriteDocument(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Println("wrote", file)
	return nil
}

// Cell escapes text for the cell of a table in Markdown.
func Cell(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "|", `\|`) }

// WriteCertificate writes tls.crt and tls.key for a server on a host into a directory, and returns the certificate.
func WriteCertificate(folder, host string) ([]byte, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600); err != nil {
		return nil, err
	}
	return certificate, os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)
}

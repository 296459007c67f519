package environments

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
)

// installKyverno is a part that runs Kyverno's admission controller outside the cluster, with its webhooks on loopback.
func installKyverno(ctx context.Context, site *site) error {
	err := site.createDefinitions(ctx, "kyverno", "github.com/kyverno/kyverno", "config/crds/*/*.yaml")
	if err != nil {
		return err
	}
	if err := site.apply(ctx, "kyverno", nil); err != nil {
		return err
	}
	kubeconfig, err := site.cluster.AddUser("kyverno", "system:masters")
	if err != nil {
		return err
	}
	address, port, err := lab.FreePort()
	if err != nil {
		return err
	}
	return site.startProgram(ctx, lab.Program{
		Binary: filepath.Join(lab.Bin, "kyverno"),
		Arguments: []string{
			"--kubeconfig=" + kubeconfig,
			"--serverIP=" + address,
			"--webhookServerHost=127.0.0.1",
			"--webhookServerPort=" + strconv.Itoa(port),
			"--caSecretName=kyverno-ca",
			"--tlsSecretName=kyverno-tls",
			"--tlsKeyAlgorithm=ECDSA",
			"--disableMetrics",
			"--controllerRuntimeMetricsAddress=0",
			"--admissionReports=false",
			"--enableConfigMapCaching=false",
			"--omitEvents=PolicyViolation,PolicyApplied,PolicyError,PolicySkipped",
		},
		Environment: []string{
			"KYVERNO_NAMESPACE=kyverno", "KYVERNO_SERVICEACCOUNT_NAME=kyverno", "KYVERNO_DEPLOYMENT=kyverno",
			"KYVERNO_POD_NAME=kyverno", "INIT_CONFIG=kyverno", "METRICS_CONFIG=kyverno-metrics",
		},
		Ready: "https://" + address + "/health/readiness",
	})
}

// startProgram runs a program until the cluster is removed.
func (s *site) startProgram(ctx context.Context, beside lab.Program) error {
	folder, err := os.MkdirTemp(s.folder, "program-")
	if err != nil {
		return err
	}
	beside.Folder = folder
	stop, err := beside.Start(ctx)
	if err != nil {
		return err
	}
	s.onStop(stop)
	return nil
}

// createDefinitions creates the CustomResourceDefinitions in files of a module, in the version of the tool's go.mod.
func (s *site) createDefinitions(ctx context.Context, tool, module, pattern string) error {
	command := exec.CommandContext(ctx, "go", "list", "-modfile=tools/"+tool+"/go.mod", "-m", "-f", "{{.Dir}}", module)
	command.Env = append(os.Environ(), "GOWORK=off")
	command.Stderr = os.Stderr
	folder, err := command.Output()
	if err != nil {
		return fmt.Errorf("find the module %s: %w", module, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), filepath.FromSlash(pattern)))
	if err != nil {
		return fmt.Errorf("find %s in the module %s: %w", pattern, module, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("the module %s has no files %s: download it with go mod download -modfile=tools/%s/go.mod", module, pattern, tool)
	}
	slices.Sort(files)
	for _, file := range files {
		if err := s.createFile(ctx, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// createFile creates the objects of a file.
func (s *site) createFile(ctx context.Context, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return s.create(ctx, file)
}

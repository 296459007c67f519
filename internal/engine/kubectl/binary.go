// Package kubectl runs kubectl for specs, with an isolated HOME and through a proxy. The proxy records every request and keeps the
// credentials of the run to itself.
package kubectl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Binary is an executable kubectl.
type Binary struct {
	// Path is the path of the executable; empty when there is none.
	Path string `json:"path,omitempty"`
	// Version is its gitVersion ("v1.36.3").
	Version string `json:"version,omitempty"`
	// Absent is the reason why there is none.
	Absent string `json:"absent,omitempty"`
}

// answers limits how long `kubectl version` may take. It needs about 50 ms.
const answers = 20 * time.Second

// Find returns the kubectl at a path or, when that is empty, in PATH, with its version. It fails when there is none, or when it cannot be
// run.
func Find(ctx context.Context, file string) (Binary, error) {
	if file == "" {
		found, err := exec.LookPath("kubectl")
		if err != nil {
			return Binary{}, errors.New("kubectl is not in PATH: install it, or set --kubectl FILE")
		}
		file = found
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return Binary{}, fmt.Errorf("find kubectl %s: %w", file, err)
	}
	version, err := versionOf(ctx, path)
	if err != nil {
		return Binary{}, fmt.Errorf("run kubectl %s: %w", file, err)
	}
	return Binary{Path: path, Version: version}, nil
}

func versionOf(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	command := exec.CommandContext(ctx, path, "version", "--client", "--output", "json")
	command.Env = environment(os.DevNull, os.DevNull)
	command.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		if output, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n"); output != "" {
			return "", fmt.Errorf("%w: %s", err, output)
		}
		return "", err
	}
	var output struct {
		ClientVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal(stdout.Bytes(), &output); err != nil || output.ClientVersion.GitVersion == "" {
		return "", errors.New("it prints no version, so it is not kubectl")
	}
	return output.ClientVersion.GitVersion, nil
}

// environment is the complete environment of kubectl. It excludes the user's kubeconfig, preferences (kuberc), plugins and cache.
func environment(home, kubeconfig string) []string {
	return []string{
		"HOME=" + home,
		"TMPDIR=" + home,
		"KUBECACHEDIR=" + filepath.Join(home, "cache"),
		"KUBECONFIG=" + kubeconfig,
		"KUBERC=off",
		"GOGC=400", // it ends before there is much garbage
	}
}

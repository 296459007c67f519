// Package kubectl runs kubectl for specs: as its user would, but with a home of its own, and through a proxy that notes
// every request it makes and keeps the credentials of the run to itself.
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

// Binary is a kubectl that can be run.
type Binary struct {
	// Path is where it is; empty where there is none.
	Path string `json:"path,omitempty"`
	// Version is its gitVersion ("v1.36.3").
	Version string `json:"version,omitempty"`
	// Absent says why there is none.
	Absent string `json:"absent,omitempty"`
}

// answers bounds how long a kubectl may take to say its version. It needs some 50 ms.
const answers = 20 * time.Second

// Find finds a kubectl, by its path or, when that is empty, in PATH, and asks it for its version. It fails when there is none,
// or when it cannot be run.
func Find(ctx context.Context, file string) (Binary, error) {
	if file == "" {
		found, err := exec.LookPath("kubectl")
		if err != nil {
			return Binary{}, errors.New("there is no kubectl in PATH: install it, or name one with --kubectl FILE")
		}
		file = found
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return Binary{}, fmt.Errorf("find the kubectl %s: %w", file, err)
	}
	version, err := versionOf(ctx, path)
	if err != nil {
		return Binary{}, fmt.Errorf("run the kubectl %s: %w", file, err)
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
		if said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n"); said != "" {
			return "", fmt.Errorf("%w: %s", err, said)
		}
		return "", err
	}
	var said struct {
		ClientVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal(stdout.Bytes(), &said); err != nil || said.ClientVersion.GitVersion == "" {
		return "", errors.New("it does not say its version, so it is no kubectl")
	}
	return said.ClientVersion.GitVersion, nil
}

// environment is all that kubectl gets to see of the environment: nothing of its user's, neither kubeconfig, preferences
// (kuberc), plugins nor cache.
func environment(home, kubeconfig string) []string {
	return []string{
		"HOME=" + home,
		"TMPDIR=" + home,
		"KUBECACHEDIR=" + filepath.Join(home, "cache"),
		"KUBECONFIG=" + kubeconfig,
		"KUBERC=off",
	}
}

package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestVulnerabilities(t *testing.T) {
	for _, test := range []struct {
		name, where, scan string // what a fake govulncheck does in a directory
		code              int
		said              string
	}{
		{"nothing is vulnerable", "nowhere", "exit 0", 0, "^$"},
		{"the runner calls vulnerable code", "cmd/runner", "echo GO-1; exit 3", 1, "GO-1"},
		{"Kubernetes calls vulnerable code", "kubernetes", "echo GO-1; exit 3", 1, "GO-1"},
		{"a module of the runner is vulnerable and not called", "cmd/runner", `case "$*" in *"-scan module"*) exit 3;; esac`, 0, "^$"},
		{"a tool is vulnerable", "tools/sonobuoy", "echo GO-1; exit 3", 0, "tools/sonobuoy.*\nGO-1"},
		{"no database", "cmd/runner", "echo 'govulncheck: fetching vulnerabilities: x: no such host'; exit 1", 3, "not checked.*no such host"},
		{"a tool that fails", "kubernetes", "echo broken; exit 2", 1, "broken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			fake := filepath.Join(t.TempDir(), "govulncheck")
			g.Expect(os.WriteFile(fake, []byte("#!/bin/sh\ncase \"$*\" in *'-C "+test.where+" '*) "+test.scan+";; esac\n"), 0o700)).To(Succeed())
			command := exec.CommandContext(t.Context(), ".ci/vulnerabilities", "https://vulnerabilities.invalid", fake)
			command.Dir = root

			said, err := command.CombinedOutput()

			g.Expect(command.ProcessState).NotTo(BeNil(), "%v", err)
			g.Expect(command.ProcessState.ExitCode()).To(Equal(test.code), string(said))
			g.Expect(string(said)).To(MatchRegexp(test.said))
		})
	}
}

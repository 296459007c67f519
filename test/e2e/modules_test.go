package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// operatorTest is a test of a project with an operator.
const operatorTest = `package operator

import (
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"

	_ "` + runnerModule + `/conformance"
)
`

// A project's go.mod gets the highest version of a module that any dependency requires. The package must not raise the versions of the
// Kubernetes modules, and must build with the project's versions.
func TestConformance_ModuleVersions(t *testing.T) {
	t.Parallel()
	for _, project := range []struct{ kubernetes, controllerRuntime string }{{"v0.35.3", "v0.23.3"}, {"v0.36.3", "v0.24.1"}, {"v0.37.2", "v0.25.2"}} {
		t.Run(project.kubernetes, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(dir, "operator.go"), []byte(operatorTest), 0o600)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(dir, "go.mod"), fmt.Appendf(nil, `module example.com/operator

go 1.26.0

require (
	k8s.io/api %[1]s
	k8s.io/apimachinery %[1]s
	k8s.io/client-go %[1]s
	sigs.k8s.io/controller-runtime %[2]s
	%[3]s v0.0.0
)

replace %[3]s => %[4]s
`, project.kubernetes, project.controllerRuntime, runnerModule, root(t)), 0o600)).To(Succeed())
			inProject := func(arguments ...string) string {
				command := exec.CommandContext(t.Context(), "go", arguments...)
				command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off")
				out, err := command.CombinedOutput()
				g.Expect(err).NotTo(HaveOccurred(), string(out))
				return strings.TrimSpace(string(out))
			}

			inProject("list", "-mod=mod", "-deps", "./...") // completes go.mod and go.sum

			versions := inProject("list", "-mod=mod", "-m", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime")
			g.Expect(strings.Split(versions, "\n")).To(Equal([]string{
				"k8s.io/api " + project.kubernetes, "k8s.io/apimachinery " + project.kubernetes, "k8s.io/client-go " + project.kubernetes,
				"sigs.k8s.io/controller-runtime " + project.controllerRuntime,
			}))
			t.Run("and builds", func(t *testing.T) {
				clustertest.Long(t)
				inProject("build", "-mod=mod", "./...")
			})
		})
	}
}

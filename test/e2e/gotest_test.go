package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
)

// goTest runs a suite as Ginkgo users do, and returns its output and whether it succeeded.
func goTest(t *testing.T, kubeconfig string, arguments ...string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	command := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-v", "./suites/graceful"}, arguments...)...)
	command.Dir = root(t)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	t.Logf("%s\n%s", command, out.String())
	return out.String(), err == nil
}

func TestGoTest(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "gopher"

	said, well := goTest(t, c.admin(t, user), "-ginkgo.no-color", "-ginkgo.label-filter", "graceful.immediate-grace-zero || graceful.repeat-with-shorter-grace")

	g.Expect(well).To(BeTrue())
	g.Expect(said).To(MatchRegexp(`Ran 2 of \d+ Specs`))
	g.Expect(said).To(ContainSubstring("2 Passed | 0 Failed"))
	for _, namespace := range c.namespacesMade(t, user) {
		g.Expect(c.mentioning(t, namespace)).To(BeEmpty())
	}

	said, well = goTest(t, "")
	g.Expect(well).To(BeTrue())
	g.Expect(said).To(ContainSubstring("KUBECONFIG is not set"))
	g.Expect(said).To(ContainSubstring("SKIP"))
}

func TestGoTest_Deadline(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "late-gopher"

	// The behaviors wait for more than two minutes. The deadline leaves 20 seconds to delete objects, even while other runs do the same.
	said, well := goTest(t, c.admin(t, user), "-ginkgo.no-color", "-ginkgo.label-filter", "slow", "-timeout", "150s")

	g.Expect(well).To(BeFalse())
	g.Expect(said).To(And(ContainSubstring("Suite Timeout Elapsed"), Not(ContainSubstring("panic: test timed out"))))
	for _, namespace := range c.namespacesMade(t, user) {
		g.Expect(c.mentioning(t, namespace)).To(BeEmpty())
	}
}

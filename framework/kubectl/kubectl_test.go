package kubectl

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestKubectlThatTakesAllIsTold(t *testing.T) {
	g := NewWithT(t)
	g.Expect(takesAll([]string{"delete", "pods", "--all"})).To(BeTrue())
	g.Expect(takesAll([]string{"delete", "pods", "--all", "-l", "a=b"})).To(BeFalse())
	g.Expect(takesAll([]string{"delete", "pod", "a"})).To(BeFalse())
}

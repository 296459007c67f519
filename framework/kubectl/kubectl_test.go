package kubectl

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestSelectsAll(t *testing.T) {
	g := NewWithT(t)
	g.Expect(selectsAll([]string{"delete", "pods", "--all"})).To(BeTrue())
	g.Expect(selectsAll([]string{"delete", "pods", "--all", "-l", "a=b"})).To(BeFalse())
	g.Expect(selectsAll([]string{"delete", "pod", "a"})).To(BeFalse())
}

package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestParseShard(t *testing.T) {
	g := NewWithT(t)
	number, of, err := v1alpha1.ParseShard("2/5")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int{number, of}).To(Equal([]int{2, 5}))
	for _, invalid := range []string{"", "2", "/", "2/", "/5", "0/5", "6/5", "-1/5", "02/5", "+2/5", "2/5/7", "2/5 ", "two/five", "1/10001"} {
		_, _, err := v1alpha1.ParseShard(invalid)
		g.Expect(err).To(MatchError(ContainSubstring("the second of five")), invalid)
	}
}

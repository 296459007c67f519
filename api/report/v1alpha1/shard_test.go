package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestShardsAreANumberOfANumber(t *testing.T) {
	g := NewWithT(t)
	number, of, err := v1alpha1.ParseShard("2/5")
	g.Expect([]int{number, of}, err).To(Equal([]int{2, 5}))
	for _, shard := range []string{"", "2", "2/", "/5", "0/5", "6/5", "-1/5", "+2/5", "02/5", " 2/5", "2/5 ", "2/5/7", "a/b", "1/10001"} {
		_, _, err := v1alpha1.ParseShard(shard)
		g.Expect(err).To(MatchError(ContainSubstring("write it as 2/5, the second of five")), shard)
	}
}

package injob

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestPod_Shard(t *testing.T) {
	for _, test := range []struct{ index, shard, want, refused string }{
		{"0", "job/3", "1/3", ""},
		{"2", "job/3", "3/3", ""},
		{"2", "1/3", "1/3", ""},
		{"", "", "", ""},
		{"", "job/3", "", "JOB_COMPLETION_INDEX is not set"},
		{"3", "job/3", "", "the index of this pod is 3: set completions of the Job to 3, or use --shard job/4"},
		{"x", "job/3", "", `JOB_COMPLETION_INDEX is "x"`},
		{"0", "job/", "", "write the number of shards after job/"},
		{"0", "job/0", "", "write the number of shards after job/"},
		{"0", "job/20000", "", "invalid shard"},
	} {
		t.Run(test.index+" "+test.shard, func(t *testing.T) {
			g := NewWithT(t)
			shard, err := Pod{Index: test.index}.Shard(test.shard)
			if test.refused != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.refused)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(shard).To(Equal(test.want))
		})
	}
}

func TestPod_Seed(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(UIDVariable, "u")
	t.Setenv(IndexVariable, "1")
	t.Setenv(PodVariable, "first")
	first := Current().Seed()
	t.Setenv(PodVariable, "second")
	g.Expect(Current().Seed()).To(Equal(first))
	t.Setenv(IndexVariable, "2")
	g.Expect(Current().Seed()).NotTo(Equal(first))
	t.Setenv(UIDVariable, "")
	g.Expect(Current().Seed()).To(BeEmpty(), "outside of a Job")
}

package claim

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestReadFile_OnlyRegularFilesOfLimitedSize(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	regular, link, large := filepath.Join(dir, "regular.json"), filepath.Join(dir, "link.json"), filepath.Join(dir, "large.json")
	g.Expect(os.WriteFile(regular, []byte("{}"), 0o600)).To(Succeed())
	g.Expect(os.Symlink("/dev/zero", link)).To(Succeed())
	g.Expect(os.WriteFile(large, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(large, 1<<40)).To(Succeed())

	content, err := ReadFile(regular)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(Equal("{}"))
	for file, want := range map[string]string{
		link: "not a regular file", "/dev/zero": "not a regular file", dir: "not a regular file", large: "larger than 4 MiB",
		filepath.Join(dir, "missing.json"): "no such file",
	} {
		_, err := ReadFile(file)
		g.Expect(err).To(MatchError(And(HavePrefix("read claim "+file+": "), ContainSubstring(want))))
	}
}

// allocated returns how many bytes a function allocates in all.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestVerify_Bombs verifies claims of a few kilobytes whose content is large. They may cost a few times of what the claim of a whole run
// costs, whose report has 10 MB.
func TestVerify_Bombs(t *testing.T) {
	honest, err := os.ReadFile("../../docs/results/embedded-kubernetes-with-nodes-1.37.2.json")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	most := allocated(func() { _, err = Verify(honest, nil) })
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	header := fmt.Sprintf(`{"apiVersion": %q, "kind": %q, `, v1alpha1.APIVersion, v1alpha1.Kind)
	list := func(element string, count int) string {
		return "[" + strings.Repeat(element+",", count-1) + element + "]"
	}
	for name, test := range map[string]struct{ report, want string }{
		"results":            {header + `"clusters": [{"name": "c", "results": ` + list("{}", 3_000_000) + `}]}`, "more than 50000 elements"},
		"results of numbers": {header + `"clusters": [{"name": "c", "results": ` + list("0", 1_000_000) + `}]}`, "more than 50000 elements"},
		"clusters":           {header + `"clusters": ` + list("{}", 1_000_000) + `}`, "more than 50000 elements"},
		"spread out":         {header + `"clusters": ` + list(`{"results": `+list("{}", 1000)+`}`, 1000) + `}`, "more than 50000 elements"},
		"unknown":            {header + `"x": ` + list("[]", 1_000_000) + `}`, "more than 50000 elements"},
		"quoted brackets":    {header + `"x": "\"]}", "clusters": ` + list("{}", 1_000_000) + `}`, "more than 50000 elements"},
		"deep":               {header + `"x": ` + strings.Repeat("[", 40_000) + strings.Repeat("]", 40_000) + `}`, "exceeded max depth"},
		"fewer results":      {header + `"clusters": [{"name": "c", "results": ` + list("{}", 49_000) + `}]}`, "more than 2000 results"},
		"fewer requests":     {header + `"clusters": [{"name": "c", "results": [{"id": "a.b", "outcome": "passed", "timeline": {"requests": ` + list("{}", 49_000) + `}}]}]}`, "the report does not name the run"},
		"fewer events":       {header + `"clusters": [{"name": "c", "results": [{"id": "a.b", "outcome": "passed", "timeline": {"events": ` + list(`{"uid": "u", "type": "DELETED"}`, 49_000) + `}}]}]}`, "the report does not name the run"},
		"zeros":              {strings.Repeat("\x00", 64<<20), "larger than 32 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var packed bytes.Buffer
			writer := gzip.NewWriter(&packed)
			_, err := writer.Write([]byte(test.report))
			g.Expect(errors.Join(err, writer.Close())).To(Succeed())
			evidence := v1alpha1.ClaimEvidence{SHA256: digest([]byte(test.report)), Report: packed.Bytes()}
			content := encoded(t, v1alpha1.ConformanceReport{
				APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ClaimKind, Implementation: example, Evidence: evidence,
				Environment: v1alpha1.ClaimEnvironment{Cluster: "c"},
			})
			of := Verification{}
			cost := allocated(func() { of, err = Verify(content, nil) })
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(slices.ContainsFunc(of.Problems, func(found Problem) bool { return strings.Contains(found.String(), test.want) })).To(BeTrue(), "%v", of.Problems)
			t.Logf("%d KiB allocate %d MiB, a claim of a whole run %d MiB", len(content)>>10, cost>>20, most>>20)
			g.Expect(cost).To(BeNumerically("<", 6*most))
		})
	}
}

func TestVerify_BombsInTheClaim(t *testing.T) {
	header := fmt.Sprintf(`{"apiVersion": %q, "kind": %q, `, v1alpha1.APIVersion, v1alpha1.ClaimKind)
	for name, content := range map[string][]byte{
		"profiles": []byte(header + `"profiles": [` + strings.Repeat("{},", 1_000_000) + "{}]}"),
		"kind":     []byte(`{"kind": [` + strings.Repeat("0,", 1_000_000) + "0]}"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var err error
			cost := allocated(func() { _, err = Verify(content, nil) })
			g.Expect(err).To(MatchError("its lists have more than 50000 elements"))
			g.Expect(cost).To(BeNumerically("<", 1<<20))
		})
	}
	_, err := Verify(make([]byte, maxClaim+1), nil)
	NewWithT(t).Expect(err).To(MatchError("the claim is larger than 4 MiB"))
}

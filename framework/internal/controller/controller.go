// Package controller names the controller of the resource that is tested, by the Deployment that runs it, and stops and starts
// it: a Deployment that was scaled to 0 says so itself, in labels, so that whatever becomes of the run it can be scaled back.
package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// Controller names the controller of the resource under test; the zero value names none.
type Controller struct {
	// Namespace and Name are those of the Deployment that runs it.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Socket is the path of the Unix socket of the Server that runs it, if no Deployment does.
	Socket string `json:"socket,omitempty"`
}

// typeNames are what kubectl calls Deployments.
var typeNames = []string{"deploy", "deployment", "deployments", "deployment.apps", "deployments.apps"}

// Parse reads a Deployment as kubectl takes it, deploy/NAME, in a namespace.
func Parse(typeAndName, namespace string) (Controller, error) {
	kind, name, is := strings.Cut(typeAndName, "/")
	switch {
	case !is:
		return Controller{}, fmt.Errorf("controller %q has no type: write deploy/%s", typeAndName, typeAndName)
	case !slices.Contains(typeNames, kind):
		return Controller{}, fmt.Errorf("controller %q is of a type that cannot be stopped here: it is a Deployment, written deploy/NAME", typeAndName)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return Controller{}, fmt.Errorf("controller %q names no Deployment: write deploy/NAME", typeAndName)
	case namespace == "":
		return Controller{}, fmt.Errorf("controller %q is in a namespace: name that, too", typeAndName)
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return Controller{}, fmt.Errorf("controller %q cannot be in namespace %q: no namespace has such a name", typeAndName, namespace)
	}
	return Controller{Namespace: namespace, Name: name}, nil
}

// IsNamed reports whether there is one.
func (c Controller) IsNamed() bool { return c.IsDeployment() || c.Socket != "" }

// IsDeployment reports whether a Deployment runs it.
func (c Controller) IsDeployment() bool { return c.Name != "" }

// String is the controller in a message.
func (c Controller) String() string {
	if !c.IsDeployment() {
		return "the controller"
	}
	return fmt.Sprintf("Deployment %q in namespace %q", c.Name, c.Namespace)
}

// Object is the Deployment as an object without content, to ask for.
func (c Controller) Object() *client.Object {
	object := &client.Object{}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	object.SetNamespace(c.Namespace)
	object.SetName(c.Name)
	return object
}

// Deployments are those of a namespace.
func Deployments(namespace string) client.Collection {
	return client.Collection{Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Namespace: namespace}
}

// ErrIdle says that a Deployment runs nothing that could act.
var ErrIdle = errors.New("no controller is at work")

// AtWork says, as an error, why a Deployment that was read runs no controller now; it is nil where it does.
func AtWork(read *client.Object) error {
	deployment := decode(read)
	named := Controller{Namespace: deployment.Namespace, Name: deployment.Name}
	by := deployment.Labels[StoppedByLabel]
	switch {
	case replicasOf(deployment) == 0 && by != "":
		return fmt.Errorf("%w: %s was stopped by run %s, which has not started it again: `runner cleanup --run %s` does", ErrIdle, named, by, by)
	case replicasOf(deployment) == 0:
		return fmt.Errorf("%w: %s has 0 replicas: `kubectl scale` it up", ErrIdle, named)
	case deployment.Status.AvailableReplicas == 0:
		return fmt.Errorf("%w: no pod of %s is available: `kubectl describe` its pods", ErrIdle, named)
	}
	return nil
}

// Pods is the label selector of a Deployment's pods.
func Pods(read *client.Object) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(decode(read).Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("read the selector of Deployment %q: %w", read.GetName(), err)
	}
	return selector.String(), nil
}

// decode reads an object as a Deployment. What does not fit reads as an empty one.
func decode(object *client.Object) appsv1.Deployment {
	deployment := appsv1.Deployment{}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment)
	return deployment
}

// replicasOf is how many pods a Deployment is to have.
func replicasOf(deployment appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1 // the API server's default
	}
	return *deployment.Spec.Replicas
}

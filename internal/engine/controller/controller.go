// Package controller stops and starts the controller of the resource under test, which a Deployment or a process runs. A Deployment that
// was scaled to 0 carries labels with its former size, so that it can be scaled back even if the run is killed.
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

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Controller references the controller of the resource under test; the zero value references none.
type Controller struct {
	// Namespace and Name are those of the Deployment that runs it.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Socket is the path of the Unix socket of the Server that runs it, if no Deployment does.
	Socket string `json:"socket,omitempty"`
}

// typeNames are kubectl's names for Deployments.
var typeNames = []string{"deploy", "deployment", "deployments", "deployment.apps", "deployments.apps"}

// Parse parses a Deployment in kubectl's notation, deploy/NAME, in a namespace.
func Parse(typeAndName, namespace string) (Controller, error) {
	kind, name, ok := strings.Cut(typeAndName, "/")
	switch {
	case !ok:
		return Controller{}, fmt.Errorf("controller %q has no type: write deploy/%s", typeAndName, typeAndName)
	case !slices.Contains(typeNames, kind):
		return Controller{}, fmt.Errorf("controller %q has an unsupported type: only Deployments are supported, as deploy/NAME", typeAndName)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return Controller{}, fmt.Errorf("controller %q names no Deployment: write deploy/NAME", typeAndName)
	case namespace == "":
		return Controller{}, fmt.Errorf("controller %q has no namespace: set --controller-namespace", typeAndName)
	case len(validation.IsDNS1123Label(namespace)) > 0:
		return Controller{}, fmt.Errorf("controller %q is in namespace %q, which is not a valid name", typeAndName, namespace)
	}
	return Controller{Namespace: namespace, Name: name}, nil
}

// IsNamed reports whether a controller is set.
func (c Controller) IsNamed() bool { return c.IsDeployment() || c.Socket != "" }

// IsDeployment reports whether a Deployment runs it.
func (c Controller) IsDeployment() bool { return c.Name != "" }

// String describes the controller in messages.
func (c Controller) String() string {
	if !c.IsDeployment() {
		return "the controller"
	}
	return fmt.Sprintf("Deployment %q in namespace %q", c.Name, c.Namespace)
}

// Object returns the Deployment as an object without content, for requests.
func (c Controller) Object() *client.Object {
	object := &client.Object{}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	object.SetNamespace(c.Namespace)
	object.SetName(c.Name)
	return object
}

// Deployments returns the Deployments of a namespace.
func Deployments(namespace string) client.Collection {
	return client.Collection{Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Namespace: namespace}
}

// ErrIdle is the error for a Deployment without running controllers.
var ErrIdle = errors.New("no controller is running")

// AtWork returns why a Deployment currently runs no controller; nil when it runs one.
func AtWork(read *client.Object) error {
	deployment := decode(read)
	named := Controller{Namespace: deployment.Namespace, Name: deployment.Name}
	by := deployment.Labels[StoppedByLabel]
	switch {
	case replicasOf(deployment) == 0 && by != "":
		return fmt.Errorf("%w: %s was stopped by run %s, which has not started it again: run `runner cleanup --run %s --controller deploy/%s --controller-namespace %s`",
			ErrIdle, named, by, by, named.Name, named.Namespace)
	case replicasOf(deployment) == 0:
		return fmt.Errorf("%w: %s has 0 replicas: scale it up with `kubectl scale`", ErrIdle, named)
	case deployment.Status.AvailableReplicas == 0:
		return fmt.Errorf("%w: no pod of %s is available: inspect its pods with `kubectl describe`", ErrIdle, named)
	}
	return nil
}

// Pods returns the label selector of a Deployment's pods.
func Pods(read *client.Object) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(decode(read).Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("read the selector of Deployment %q: %w", read.GetName(), err)
	}
	return selector.String(), nil
}

// decode converts an object to a Deployment. An object that does not fit becomes an empty one.
func decode(object *client.Object) appsv1.Deployment {
	deployment := appsv1.Deployment{}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment)
	return deployment
}

// replicasOf returns the desired number of pods.
func replicasOf(deployment appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1 // the API server's default
	}
	return *deployment.Spec.Replicas
}

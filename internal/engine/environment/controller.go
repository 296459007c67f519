package environment

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// With --controller, specs stop the Deployment of the resource's controller for a while. Setup checks that it exists, and teardown starts
// it again. `runner cleanup` does the same for the Deployment that its user names. The lease contains the name as a hint to that user.

// controllerAnnotation contains the controller as namespace/name, on the run's lease.
const controllerAnnotation = client.Domain + "/controller"

const controllerUnnamed = "no controller was named: set --controller, with --resource"

// controllerOf returns the controller that a lease names, if it is a valid one.
func controllerOf(lease *client.Object) session.Controller {
	namespace, name, _ := strings.Cut(lease.GetAnnotations()[controllerAnnotation], "/")
	named, _ := controller.Parse("deploy/"+name, namespace)
	return named
}

// annotateLease adds the controller to a lease, if there is one.
func (e *Environment) annotateLease(lease *client.Object) {
	if which := e.options.Controller; which.IsDeployment() {
		lease.SetAnnotations(map[string]string{controllerAnnotation: which.Namespace + "/" + which.Name})
	}
}

// findController fails when the Deployment does not exist.
func (e *Environment) findController(ctx context.Context) error {
	which := e.options.Controller
	if !which.IsDeployment() {
		return nil
	}
	if response := e.client.Get(ctx, which.Object()); apierrors.IsNotFound(response.Err) {
		return fmt.Errorf("there is no %s: `kubectl get deploy -A` lists the available ones", which)
	}
	return nil // the probe reports other problems
}

// probeController checks whether the controller runs.
func (e *Environment) probeController(ctx context.Context) error {
	if !e.options.Controller.IsNamed() {
		return unmet(controllerUnnamed)
	}
	if e.lease == nil {
		return unmet("the run could not create a Lease, which `runner cleanup` needs to start a stopped controller again")
	}
	if !e.options.Controller.IsDeployment() {
		return nil // it runs as long as the run does
	}
	response := e.client.Get(ctx, e.options.Controller.Object())
	if response.Err != nil {
		return fmt.Errorf("read %s: %w", e.options.Controller, response.Err)
	}
	if err := controller.AtWork(response.Object); err != nil {
		return unmet(err.Error())
	}
	return nil
}

package environment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/controller"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/crd"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// A run may be told which Deployment runs the controller of the resource that is tested (--controller). Specs stop it for a
// while. Here it is looked for before the run, and started again after it, whatever became of the spec, or of the run: the lease
// names it.

// controllerAnnotation is where the run's lease names the controller, as namespace/name.
const controllerAnnotation = client.Domain + "/controller"

const controllerUnnamed = "no controller was named (--controller, with --resource)"

// controllerOf is the controller that a lease names, if any.
func controllerOf(lease *client.Object) session.Controller {
	namespace, name, _ := strings.Cut(lease.GetAnnotations()[controllerAnnotation], "/")
	return session.Controller{Namespace: namespace, Name: name}
}

// annotateLease has a lease name the controller, if there is one.
func (e *Environment) annotateLease(lease *client.Object) {
	if which := e.options.Controller; which.IsDeployment() {
		lease.SetAnnotations(map[string]string{controllerAnnotation: which.Namespace + "/" + which.Name})
	}
}

// findController fails where the Deployment that was named is not there.
func (e *Environment) findController(ctx context.Context) error {
	which := e.options.Controller
	if !which.IsDeployment() {
		return nil
	}
	if response := e.client.Get(ctx, which.Object()); apierrors.IsNotFound(response.Err) {
		return fmt.Errorf("there is no %s: `kubectl get deploy -A` lists those there are", which)
	}
	return nil // what else there may be to say is for the probe
}

// probeController looks whether the controller that was named is at work.
func (e *Environment) probeController(ctx context.Context) error {
	if !e.options.Controller.IsNamed() {
		return unmet(controllerUnnamed)
	}
	if e.lease == nil {
		return unmet("the run could not make a lease, by which `runner cleanup` finds a controller that is to be started again")
	}
	if !e.options.Controller.IsDeployment() {
		return nil // it runs as long as the run does
	}
	response := e.client.Get(ctx, e.options.Controller.Object())
	if response.Err != nil {
		return fmt.Errorf("look at %s: %w", e.options.Controller, response.Err)
	}
	if err := controller.AtWork(response.Object); err != nil {
		return unmet(err.Error())
	}
	return nil
}

// startController starts the controller again where a spec of the run has stopped it.
func (e *Environment) startController(ctx context.Context) error {
	which := e.options.Controller
	if !which.IsDeployment() {
		return nil
	}
	response := controller.Start(ctx, e.client, which, e.options.Run)
	if apierrors.IsForbidden(response.Err) {
		return nil // who may not write it has not stopped it
	}
	return response.Err
}

// restoreDefinitions defines the resource again where a spec of the run has deleted its definition.
func (e *Environment) restoreDefinitions(ctx context.Context) error {
	if e.inSharedNamespace() {
		return nil
	}
	var failures []error
	for _, namespace := range e.namespaces {
		failures = append(failures, crd.RestoreAll(ctx, e.client, namespace.GetName(), e.options.Run))
	}
	return errors.Join(failures...)
}

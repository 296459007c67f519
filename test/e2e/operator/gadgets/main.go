// Gadgets is a typical operator, for the test of the parent directory: for each Gadget it creates a ConfigMap, which the garbage collector
// deletes with the Gadget, and a Secret without an owner, which it deletes itself before it removes its finalizer. With -mistake it makes a
// typical mistake of operators.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	group := flag.String("group", "gadgets.example.com", "API `GROUP` of the Gadgets")
	mistake := flag.String("mistake", "", "the `MISTAKE` to make")
	flag.Parse()
	go endWithInput()
	if err := operate(*group, *mistake); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// endWithInput ends the program with its input, because the test that started it is then gone.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// operate runs the operator for the Gadgets of a group until the program is terminated.
func operate(group, mistake string) error {
	if !isMistake(mistake) {
		return fmt.Errorf("-mistake %q: they are %v", mistake, mistakes)
	}
	config, err := ctrl.GetConfig() // from -kubeconfig, which controller-runtime defines
	if err != nil {
		return err
	}
	log.SetLogger(klog.Background())
	reconciler := &reconciler{kind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}, mistake: mistake}
	if err := reconciler.run(ctrl.SetupSignalHandler(), config); err != nil {
		return fmt.Errorf("take care of the Gadgets of %s: %w", group, err)
	}
	return nil
}

// run reconciles until the context ends.
func (r *reconciler) run(ctx context.Context, config *rest.Config) error {
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}) // no metrics
	if err != nil {
		return err
	}
	r.Client, r.uncached = manager.GetClient(), manager.GetAPIReader()
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(r.kind)
	if err := ctrl.NewControllerManagedBy(manager).Named(r.kind.Group).For(gadget).Owns(&corev1.ConfigMap{}).Complete(r); err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return err
	}
	return r.end(config)
}

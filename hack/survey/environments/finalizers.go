package environments

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addsFinalizer is a part that waits until the policy adds its finalizer to new ConfigMaps.
func addsFinalizer(ctx context.Context, site *site) error {
	return site.await(ctx, "the policy is not in force", func(ctx context.Context) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: metav1.NamespaceDefault}}
		if err := site.client.Create(ctx, object, client.DryRunAll); err != nil {
			return err
		}
		if !slices.Contains(object.Finalizers, configMapFinalizer) {
			return errors.New("a new ConfigMap has no finalizer")
		}
		return nil
	})
}

// guardConfigMaps is a part for a cluster on which no controller removes the finalizers of ConfigMaps. It records a removed finalizer as
// harm.
func guardConfigMaps(ctx context.Context, site *site) error {
	changes, err := site.client.Watch(ctx, &corev1.ConfigMapList{})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for change := range changes.ResultChan() {
			site.noteLoss(change)
		}
	}()
	site.onStop(func() error {
		changes.Stop()
		<-ended
		return nil
	})
	return nil
}

// noteLoss records a deleted ConfigMap without the finalizer.
func (s *site) noteLoss(change watch.Event) {
	object, ok := change.Object.(*corev1.ConfigMap)
	if !ok || object.DeletionTimestamp.IsZero() && change.Type != watch.Deleted {
		return
	}
	if !slices.Contains(object.Finalizers, configMapFinalizer) {
		s.harm.add(fmt.Sprintf("ConfigMap %s/%s lost the finalizer %s", object.Namespace, object.Name, configMapFinalizer))
	}
}

package environments

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

const (
	// othersNamespaces is the number of namespaces that others delete before the run, and deleting the interval at which they delete another.
	othersNamespaces = 200
	deleting         = 3 * time.Second
)

// busyControllers lets each controller do one thing at a time, with few requests a second.
func busyControllers(string) ([]embedded.Option, error) {
	flags := []string{"--kube-api-qps=10", "--kube-api-burst=20"}
	for _, controller := range []string{
		"cron-job", "daemonset", "deployment", "endpoint", "ephemeralvolume", "gc", "job", "namespace", "rc", "replicaset", "resource-quota",
		"service-endpoint", "serviceaccount-token", "statefulset", "ttl-after-finished",
	} {
		flags = append(flags, "--concurrent-"+controller+"-syncs=1")
	}
	return []embedded.Option{embedded.WithControllerManagerFlags(flags...)}, nil
}

// deleteNamespaces is a part in which others delete hundreds of namespaces, and go on during the run.
func deleteNamespaces(ctx context.Context, site *site) error {
	remove := func(ctx context.Context, number int) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("preview-%d", number)}}
		content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content", Namespace: namespace.Name}}
		for _, object := range []client.Object{namespace, content} {
			if err := site.client.Create(ctx, object); err != nil {
				return err
			}
		}
		return site.client.Delete(ctx, namespace)
	}
	var first errgroup.Group
	first.SetLimit(16)
	for number := range othersNamespaces {
		first.Go(func() error { return remove(ctx, number) })
	}
	if err := first.Wait(); err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		number := othersNamespaces
		wait.UntilWithContext(running, func(ctx context.Context) {
			_ = remove(ctx, number) // the cluster may be going away
			number++
		}, deleting)
	}()
	site.onStop(func() error {
		cancel()
		<-ended
		return nil
	})
	return nil
}

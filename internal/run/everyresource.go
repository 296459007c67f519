package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// errNoResource says that there is nothing to test where all was to be.
var errNoResource = errors.New("the cluster serves no resource that can be tested; the report lists the reasons")

// findColumns finds what is tested on each cluster, on all of them at the same time.
func (c *conductor) findColumns(ctx context.Context) {
	columns, leftOut := make([][]*clusterRun, len(c.Options.clusters)), make([][]v1alpha1.LeftOut, len(c.Options.clusters))
	var finding sync.WaitGroup
	for i, cluster := range c.Options.clusters {
		finding.Go(func() { columns[i], leftOut[i] = c.columns(ctx, cluster) })
	}
	finding.Wait()
	c.clusters, c.leftOut = slices.Concat(columns...), slices.Concat(leftOut...)
}

// columns are the runs on one cluster: one a resource. Where it is for the server to say which there are, it is asked;
// where it cannot be, there is one that says why. What cannot be tested is left out, with the reason.
func (c *conductor) columns(ctx context.Context, cluster clusters.Cluster) (columns []*clusterRun, leftOut []v1alpha1.LeftOut) {
	if !c.Resources.All {
		return newClusterRuns(cluster, c.Resources), nil
	}
	first := newClusterRuns(cluster, Resources{})[0]
	err := crash.Caught("find the resources", func() (err error) {
		columns, leftOut, err = c.everyResource(ctx, first)
		return err
	})
	if err == nil {
		return columns, leftOut
	}
	first.shared.once.Do(func() {}) // nothing is made any more
	first.shared.err = err
	return []*clusterRun{first}, leftOut
}

// everyResource sets a cluster up, and finds an object of everything that it serves, or the reason why there is none.
func (c *conductor) everyResource(ctx context.Context, first *clusterRun) ([]*clusterRun, []v1alpha1.LeftOut, error) {
	c.notify(func(p progress.Progress) { p.SettingUp(first.Name) })
	finder, err := newResourceFinder(first.Provider.RESTConfig(), c.Resources, c.Settings.Overlay())
	if err != nil {
		return nil, nil, err
	}
	left, err := finder.addServed()
	if err != nil {
		return nil, nil, err
	}
	shared := first.shared
	shared.once.Do(func() { shared.made, shared.err = first.makeEnvironmentFor(ctx, c.Options, finder) })
	if shared.err != nil {
		return nil, nil, shared.err
	}
	shared.finder = finder
	objects := finder.objects(ctx, shared.made.Session(1).Namespace, c.Resources.Names, left)
	releases := finder.releases(ctx, shared.made, objects, c.Resources.Names, left)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	var leftOut []v1alpha1.LeftOut
	for _, name := range slices.Sorted(maps.Keys(left)) {
		leftOut = append(leftOut, v1alpha1.LeftOut{Cluster: first.Name, Resource: name, Reason: left[name]})
	}
	if len(objects) == 0 {
		return nil, leftOut, errNoResource
	}
	columns := newClusterRuns(first.Cluster, Resources{Names: slices.Sorted(maps.Keys(objects))})
	for _, column := range columns {
		column.shared, column.object = shared, objects[column.resource]
		column.release, column.tried = releases[column.resource]
	}
	return columns, leftOut, nil
}

// objects are one of each resource that the server would take. Why there is none is noted in what is left out, but for resources
// that were asked for: they have none here, and say why when they are set up.
func (f *resourceFinder) objects(ctx context.Context, namespace string, asked []string, left map[string]string) map[string]*unstructured.Unstructured {
	objects := map[string]*unstructured.Unstructured{}
	for _, name := range f.Names {
		object, err := f.object(ctx, name, namespace)
		switch {
		case err == nil:
			objects[name] = object
		case slices.Contains(asked, name):
			objects[name] = nil
		default:
			left[name] = report.Joined(err.Error())
		}
	}
	return objects
}

// triedAtATime is how many resources are tried at the same time.
const triedAtATime = 16

// releases are how long others hold the objects when they are deleted. What does not stay is taken from the objects and noted in what
// is left out, but for resources that were asked for: those are tried again when they are set up, and say why.
func (f *resourceFinder) releases(ctx context.Context, made *environment.Environment, objects map[string]*unstructured.Unstructured, asked []string, left map[string]string) map[string]time.Duration {
	releases := map[string]time.Duration{}
	var mu sync.Mutex
	var trying errgroup.Group
	trying.SetLimit(triedAtATime)
	for name, object := range maps.Clone(objects) {
		if object == nil || slices.Contains(asked, name) {
			continue
		}
		trying.Go(func() error {
			release, err := made.ReleaseTime(ctx, object, func() {})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				left[name] = report.Joined(err.Error())
				delete(objects, name)
				return nil
			}
			releases[name] = release
			return nil
		})
	}
	_ = trying.Wait() // nothing fails: what does not stay is left out
	return releases
}

// addServed adds what the server ignores created and deleted to the resources that are named. It returns of the others,
// by name, why they are left out.
func (f *resourceFinder) addServed() (map[string]string, error) {
	left := map[string]string{}
	served, err := f.Served()
	if unknown := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &unknown) {
		for group, why := range unknown.Groups {
			left["*."+group.Group] = fmt.Sprintf("discovery of group %s failed: %v", group, why)
		}
	} else if err != nil {
		return nil, err
	}
	for _, mapping := range served {
		resource := mapping.Resource.GroupResource()
		if f.isNamed(resource) {
			continue
		}
		reason := protected[resource]
		if reason == "" {
			reason = f.unusable(mapping)
		}
		if reason != "" {
			left[resource.String()] = reason
			continue
		}
		f.Names = append(f.Names, resource.String())
		f.mappings[resource.String()] = mapping
	}
	return left, nil
}

// isNamed says whether a resource was asked for by its name.
func (f *resourceFinder) isNamed(resource schema.GroupResource) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(f.mappings)), func(mapping *meta.RESTMapping) bool {
		return mapping.Resource.GroupResource() == resource
	})
}

// unusable says why nothing of a resource can be tested; it is empty where something can.
func (f *resourceFinder) unusable(mapping *meta.RESTMapping) string {
	lacking, err := f.Lacks(mapping, mustOffer...)
	switch {
	case err != nil:
		return report.Joined(err.Error())
	case len(lacking) > 0:
		return "does not support " + strings.Join(lacking, ", ")
	}
	return ""
}

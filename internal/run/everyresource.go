package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// errNoResource is the error of a run of all resources when none can be tested.
var errNoResource = errors.New("the cluster serves no resource that can be tested; the report lists the reasons")

// findColumns finds the resources to test on each cluster, in parallel.
func (c *conductor) findColumns(ctx context.Context) {
	columns, leftOut := make([][]*clusterRun, len(c.Options.clusters)), make([][]v1alpha1.LeftOut, len(c.Options.clusters))
	var finding sync.WaitGroup
	for i, cluster := range c.Options.clusters {
		finding.Go(func() { columns[i], leftOut[i] = c.columns(ctx, cluster) })
	}
	finding.Wait()
	c.clusters, c.leftOut = slices.Concat(columns...), slices.Concat(leftOut...)
}

// columns returns the runs on one cluster: one for each resource. For all resources, it discovers them; if that fails, there is one run
// with the error. Resources that cannot be tested are left out, with the reason.
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
	first.shared.once.Do(func() {}) // nothing is created anymore
	first.shared.err = err
	return []*clusterRun{first}, leftOut
}

// everyResource sets up a cluster, and finds an object of every served resource, or the reason why there is none.
func (c *conductor) everyResource(ctx context.Context, first *clusterRun) ([]*clusterRun, []v1alpha1.LeftOut, error) {
	c.notify(func(p progress.Progress) { p.SettingUp(first.Name) })
	finder, err := newResourceFinder(ctx, first.Cluster, c.Options)
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

// objects returns an object of each resource that the server would accept. It records the reasons of others as left out, except for
// requested resources, whose setup reports the reason.
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

// withoutUntested leaves out the resources of which nothing was tested where all resources were to be: all selected behaviors were skipped,
// such as those about namespaces for a cluster-scoped resource. Resources that were named stay. If nothing was tested at all, it changes
// nothing.
func (c *conductor) withoutUntested(whole v1alpha1.Report) v1alpha1.Report {
	if !c.Resources.All {
		return whole
	}
	var tested []v1alpha1.Cluster
	leftOut := slices.Clone(whole.LeftOut)
	for _, cluster := range whole.Clusters {
		if !isSkipped(cluster) || slices.Contains(c.Resources.Names, cluster.Resource) {
			tested = append(tested, cluster)
			continue
		}
		reason := report.ByReason(cluster.Results, v1alpha1.Skipped)[0].Reason
		leftOut = append(leftOut, v1alpha1.LeftOut{
			Cluster: strings.TrimSuffix(cluster.Name, " "+cluster.Resource), Resource: cluster.Resource, Reason: "all selected behaviors were skipped: " + reason,
		})
	}
	if len(tested) > 0 {
		whole.Clusters, whole.LeftOut = tested, leftOut
	}
	return whole
}

// isSkipped reports whether everything that was selected was skipped on a cluster, and there is nothing else to report about it.
func isSkipped(cluster v1alpha1.Cluster) bool {
	count := v1alpha1.Count(cluster.Results)
	return cluster.Problem == "" && cluster.LeftBehind == "" && count[v1alpha1.Skipped] > 0 &&
		count[v1alpha1.Skipped]+count[v1alpha1.Filtered] == len(cluster.Results)
}

// maxParallelTries is the number of resources that are tried in parallel.
const maxParallelTries = 16

// releases measures how long controllers hold deleted objects. Objects that are deleted immediately are removed and recorded as left out,
// except for requested resources, whose setup tries them again and reports the reason.
func (f *resourceFinder) releases(ctx context.Context, made *environment.Environment, objects map[string]*unstructured.Unstructured, asked []string, left map[string]string) map[string]environment.Release {
	releases := map[string]environment.Release{}
	var mu sync.Mutex
	var trying errgroup.Group
	trying.SetLimit(maxParallelTries)
	for name, object := range maps.Clone(objects) {
		if object == nil || slices.Contains(asked, name) {
			continue
		}
		trying.Go(func() error {
			release, err := made.TryRelease(ctx, object, func() {})
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
	_ = trying.Wait() // errors are recorded as left out
	return releases
}

// addServed adds the resources of the server that can be created and deleted without consequences. It returns the reasons for leaving out
// others, by name.
func (f *resourceFinder) addServed() (map[string]string, error) {
	left := map[string]string{}
	served, err := f.Served()
	if unknown := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &unknown) {
		for group, reason := range unknown.Groups {
			left["*."+group.Group] = fmt.Sprintf("discovery of group %s failed: %v", group, reason)
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

// isNamed reports whether a resource was requested by name.
func (f *resourceFinder) isNamed(resource schema.GroupResource) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(f.mappings)), func(mapping *meta.RESTMapping) bool {
		return mapping.Resource.GroupResource() == resource
	})
}

// unusable returns why a resource cannot be tested; empty when it can.
func (f *resourceFinder) unusable(mapping *meta.RESTMapping) string {
	lacking, err := f.MissingVerbs(mapping, mustOffer...)
	switch {
	case err != nil:
		return report.Joined(err.Error())
	case len(lacking) > 0:
		return "does not support " + strings.Join(lacking, ", ")
	}
	return ""
}

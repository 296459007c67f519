package injection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// part is what a restart stops and starts.
type part struct {
	name string
	// interrupts reports that nothing responds until it is started again.
	interrupts bool
	// restart stops and starts it. It starts it again also where the context has ended meanwhile.
	restart func(context.Context) error
}

// restarted are the components that are stopped together, in this order. With the API server the scheduler is, which may end when pods were replaced
// while its watch was interrupted (docs/explore.md).
var restarted = [][]component.Component{
	{component.ControllerManager},
	{component.Scheduler},
	{component.Scheduler, component.APIServer},
}

// findParts finds what can be restarted: the components of a cluster that was created for the run, and the controller of the resource.
func findParts(ctx context.Context, i *Injector) error {
	settings := i.cluster.Settings
	notOwn := settings.Unsupported[v1alpha1.OwnCluster]
	if notOwn == "" {
		for _, components := range restarted {
			if i.canRestart(ctx, components) {
				i.parts = append(i.parts, i.partOf(components))
			}
		}
	}
	if settings.Controller.IsNamed() && (settings.Disruptive || !settings.Controller.IsDeployment()) {
		i.parts = append(i.parts, part{name: settings.Controller.String(), restart: func(ctx context.Context) error {
			return controller.Restart(ctx, i.cluster.Client, settings.Controller, settings.Run, settings.AtLeast(restartTime))
		}})
	}
	if len(i.parts) > 0 {
		return nil
	}
	if notOwn != "" {
		return errors.New(notOwn)
	}
	return fmt.Errorf("restarting the control plane is %w", component.ErrUnsupported)
}

// restartTime is how long a controller may take to stop, and to start, including pulling an image, on a fast cluster.
const restartTime = 2 * time.Minute

// canRestart reports whether components can be stopped and started. Starting those that run has no effect.
func (i *Injector) canRestart(ctx context.Context, components []component.Component) bool {
	return !slices.ContainsFunc(components, func(which component.Component) bool {
		return component.Start(ctx, i.cluster.Settings.Components, which) != nil
	})
}

func (i *Injector) partOf(components []component.Component) part {
	var names []string
	for _, which := range components {
		names = append(names, string(which))
	}
	return part{
		name: strings.Join(names, " and "), interrupts: slices.Contains(components, component.APIServer),
		restart: func(ctx context.Context) error { return i.restartComponents(ctx, components) },
	}
}

// restartComponents stops components and starts them in the reverse order.
func (i *Injector) restartComponents(ctx context.Context, components []component.Component) error {
	ctx = context.WithoutCancel(ctx)
	for _, which := range components {
		if err := component.Stop(ctx, i.cluster.Settings.Components, which); err != nil {
			return err
		}
	}
	for _, which := range slices.Backward(components) {
		if err := component.Start(ctx, i.cluster.Settings.Components, which); err != nil {
			return err
		}
	}
	return nil
}

// restart restarts one of the parts.
func restart(ctx context.Context, i *Injector, _ *clients.Actor, intent generate.Intent) error {
	i.restarting.Lock()
	defer i.restarting.Unlock()
	chosen := i.parts[intent.Object%len(i.parts)]
	if chosen.interrupts {
		i.outage.Lock()
		defer i.outage.Unlock()
		i.mu.Lock()
		i.interrupted = time.Now()
		i.mu.Unlock()
	}
	i.note("restart", chosen.name+" restarted")
	if err := chosen.restart(ctx); err != nil {
		return fmt.Errorf("restart %s as an injected fault: %w", chosen.name, err)
	}
	return nil
}

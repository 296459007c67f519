package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// A controller that does not act within a timeout may be busy with the objects of others. So a barrier decides on a wait that timed out:
// it fails only when the controllers have meanwhile done work that they received later. How long that takes follows what they do at the time.

const (
	// turns is how often the controllers must do later work before a wait fails. What a wait is for may take several passes of a controller,
	// each behind its whole queue, such as one for each level of a cascade.
	turns = 5
	// stalled is how long a controller may take for one piece of work before it counts as one that does not work. On two processors with
	// several runs at a time, the namespace controller was nine minutes behind.
	stalled = 15 * time.Minute
	// turnPolling is the interval for checking whether work is done. The run's watches do not show it to the spec.
	turnPolling = 100 * time.Millisecond
)

// overdue is a wait that has not come true so far.
type overdue struct {
	// message is the failure message of its matcher.
	message string
	// check reports whether the wait succeeds now.
	check func() bool
}

// work reports whether a controller has done what it must do.
type work func(context.Context) (done bool)

// Awaited is a matcher for values that are polled with Eventually. A wait with it is checked again as one for a history is.
func Awaited[T any](c *Cluster, poll func() (T, error), matcher types.GomegaMatcher) types.GomegaMatcher {
	return &awaited{GomegaMatcher: matcher, cluster: c, matches: func() bool {
		value, err := poll()
		if err != nil {
			return false
		}
		matches, err := matcher.Match(value)
		return matches && err == nil
	}}
}

type awaited struct {
	types.GomegaMatcher
	cluster *Cluster
	matches func() bool
}

// MatchMayChangeInTheFuture reports whether the matcher can still match.
func (a *awaited) MatchMayChangeInTheFuture(actual any) bool {
	return types.MatchMayChangeInTheFuture(a.GomegaMatcher, actual)
}

// FailureMessage is that of the matcher.
func (a *awaited) FailureMessage(actual any) string {
	message := a.GomegaMatcher.FailureMessage(actual)
	a.cluster.overdue.Store(&overdue{message, a.matches})
	return message
}

// recovers reports whether the wait that has failed with a message comes true while the controllers do later work.
func (c *Cluster) recovers(ctx context.Context, message string) bool {
	last := c.overdue.Swap(nil)
	if last == nil || !strings.HasPrefix(message, "Timed out ") || !strings.Contains(message, last.message) {
		return false
	}
	began := time.Now()
	came := last.recovers(ctx, c.session.SettlingTime(), c.giveWork)
	c.session.Stalled = c.session.Stalled || !came && time.Since(began) >= stalled // later waits need not find out again
	return came
}

// recovers gives the controllers later work, and returns when the wait comes true, or when they have done enough work or do none. A watch
// may lag behind them for the settling time.
func (o *overdue) recovers(ctx context.Context, settle time.Duration, give func(context.Context) []work) bool {
	for range turns {
		given := give(ctx)
		if len(given) == 0 {
			return false
		}
		var came bool
		err := wait.PollUntilContextTimeout(ctx, turnPolling, stalled, true, func(ctx context.Context) (bool, error) {
			came = o.check()
			given = slices.DeleteFunc(given, func(done work) bool { return done(ctx) })
			return came || len(given) == 0, nil
		})
		if came || err != nil {
			return came
		}
		if wait.PollUntilContextTimeout(ctx, session.MemoryPolling, settle, true, func(context.Context) (bool, error) { return o.check(), nil }) == nil {
			return true
		}
	}
	return false
}

// giveWork gives work to the garbage collector, and to the namespace controller if the spec needs it. There is none where the user chose how
// long to wait.
func (c *Cluster) giveWork(ctx context.Context) []work {
	if c.session.WaitTimeout != 0 || c.session.Stalled || c.session.Unreleased != "" || c.session.LostGarbageCollector != "" {
		return nil
	}
	var given []work
	if _, absent := c.session.Unsupported[v1alpha1.GC]; !absent {
		given = append(given, c.giveCollector(ctx)...)
	}
	if slices.Contains(c.features, v1alpha1.KCM) && slices.Contains(c.features, v1alpha1.Namespace) {
		given = append(given, c.giveNamespaceController(ctx)...)
	}
	return given
}

// giveCollector deletes the owner of a new object, which the garbage collector must delete. It is part of the controller manager, and so shows
// how busy the other controllers are.
func (c *Cluster) giveCollector(ctx context.Context) []work {
	harness := c.session.Harness
	owner := harness.Create(ctx, c.turn(fixtures.ConfigMap("turn")))
	if owner.Err != nil {
		return nil
	}
	dependent := c.turn(fixtures.ConfigMap("turn-dependent"))
	dependent.SetOwnerReferences([]metav1.OwnerReference{ReferenceTo(owner.Object)})
	created := harness.Create(ctx, dependent)
	if deleted := harness.Delete(ctx, owner.Object, metav1.DeleteOptions{}); created.Err != nil || deleted.Err != nil {
		return nil
	}
	return []work{c.isGone(created.Object)}
}

// giveNamespaceController deletes a new namespace.
func (c *Cluster) giveNamespaceController(ctx context.Context) []work {
	harness := c.session.Harness
	created := harness.Create(ctx, c.turn(fixtures.Namespace("turn")))
	if created.Err != nil || harness.Delete(ctx, created.Object, metav1.DeleteOptions{}).Err != nil {
		return nil
	}
	return []work{c.isGone(created.Object)}
}

// turn completes the manifest of an object with which a controller shows that it works. It does not carry the label of the spec, whose
// lists must not contain it.
func (c *Cluster) turn(manifest *Object) *Object {
	if manifest.GetKind() != "Namespace" {
		manifest.SetNamespace(c.session.Namespace)
	}
	manifest.SetName(fmt.Sprintf("%s-%s-%s", manifest.GetName(), c.session.Run, rand.String(6)))
	manifest.SetLabels(labels.Merge(c.session.Labels(), labels.Set{client.CanaryLabel: "true"}))
	return manifest
}

// isGone reports whether an object is gone.
func (c *Cluster) isGone(object *Object) work {
	return func(ctx context.Context) bool { return apierrors.IsNotFound(c.session.Harness.Get(ctx, object).Err) }
}

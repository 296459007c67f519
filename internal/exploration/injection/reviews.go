package injection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/webhookserver"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	// reviewTimeout is how long the API server waits for a response, in seconds. Then it permits the write.
	reviewTimeout = 5
	// reachTime is how long the API server may take to call a new webhook, on a fast cluster.
	reachTime = 10 * time.Second
	// ofEachKind is how many writes of each kind a fault meets that waits for each kind. With two, a second code path cannot do what the first one failed to.
	ofEachKind = 2
	// reachPolling is the interval for checking that.
	reachPolling = 50 * time.Millisecond
)

// reviewer is the webhook of the faults that concern the writes of controllers. It allows all other writes.
type reviewer struct {
	// self is the user of the run, and called reports that the API server has called the webhook.
	self   string
	called atomic.Bool
	// opened and failure are whether and why not it could be set up.
	opened  bool
	failure error

	arming sync.Mutex
	// armed are the faults that wait for a write. reacting are those that have met one.
	armed    []*Fault
	reacting sync.WaitGroup
	// each is the fault that meets the next writes of each kind; nil if there is none. It has met as many as kinds has.
	each  *Fault
	kinds map[string]int
	// writer is a client of the round that writes objects, and written how often it did.
	writing sync.Mutex
	writer  *clients.Actor
	written int
}

// listen registers the webhook, once, and waits until the API server calls it.
func listen(ctx context.Context, i *Injector) error {
	if !i.opened {
		i.opened, i.failure = true, i.open(ctx)
	}
	return i.failure
}

// open registers the webhook. Only objects in namespaces of the run, or with its labels, are reviewed, and a review that fails is as if there were none.
func (i *Injector) open(ctx context.Context) (err error) {
	with, settings := i.cluster.Client, i.cluster.Settings
	if i.self, err = with.WhoAmI(ctx); err != nil {
		return fmt.Errorf("the user of the run is not known: %w", err)
	}
	receiver, err := webhookserver.Open(ctx, with, settings, &admission.Webhook{Handler: admission.HandlerFunc(i.review)})
	if err != nil {
		return err
	}
	ending := context.WithoutCancel(ctx)
	i.closing = append(i.closing, func() { receiver.Close(ending) })
	configuration, err := configurationOf(settings, receiver.ClientConfig(), i.self)
	if err != nil {
		return err
	}
	i.closing = append(i.closing, func() { with.Delete(ending, configuration, metav1.DeleteOptions{}) }) // what remains is deleted by teardown
	if created := with.Create(ctx, configuration); created.Err != nil {
		return fmt.Errorf("create %s: %w", client.Title(configuration), created.Err)
	}
	return i.awaitCall(ctx, receiver.Place())
}

// configurationOf is the configuration of the webhook. The run's own writes are not reviewed, which would slow it down, except dry-runs.
func configurationOf(settings session.Config, receiver registrationv1.WebhookClientConfig, self string) (*client.Object, error) {
	own := map[string]string{client.RunLabel: settings.Run}
	webhook := webhookserver.Webhook("faults", receiver, webhookserver.Selected{Namespaces: own, Objects: own}, reviewTimeout, registrationv1.RuleWithOperations{
		Operations: []registrationv1.OperationType{registrationv1.Create, registrationv1.Update, registrationv1.Delete},
		Rule:       registrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
	})
	webhook.MatchConditions = []registrationv1.MatchCondition{{
		Name: "others", Expression: "request.userInfo.username != " + strconv.Quote(self) + " || has(request.dryRun) && request.dryRun",
	}}
	object, err := webhookserver.Configuration(webhookserver.ValidatingConfiguration, settings.Run+"-faults", webhook)
	if err == nil {
		object.SetLabels(settings.Labels())
	}
	return object, err
}

// awaitCall waits until the API server calls the webhook for a dry-run of the run.
func (i *Injector) awaitCall(ctx context.Context, place string) error {
	patience := i.cluster.Settings.Slowed(reachTime)
	err := wait.PollUntilContextTimeout(ctx, reachPolling, patience, true, func(context.Context) (bool, error) {
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{client.Domain + "/reviewed": "no"}}}
		i.cluster.Client.Do(ctx, i.cluster.Quiet, client.Request{
			Method: http.MethodPatch, Body: patch, ContentType: string(types.MergePatchType), Query: client.DryRun(),
		})
		return i.called.Load(), nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("the API server cannot reach a webhook at %s within %s: set --webhook-host to an address that it can reach, or run in a Job", place, patience)
	}
	return err
}

// arm makes a fault wait for a write that it applies to.
func (r *reviewer) arm(fault *Fault) {
	r.arming.Lock()
	defer r.arming.Unlock()
	r.armed = append(r.armed, fault)
}

// armForEach makes a fault wait for the next writes of each kind that it applies to.
func (r *reviewer) armForEach(fault *Fault) {
	r.arming.Lock()
	defer r.arming.Unlock()
	r.each, r.kinds = fault, map[string]int{}
}

// disarm makes no fault wait any longer, waits for the reactions that go on, replaces the writer, and returns the requests of the former one.
func (r *reviewer) disarm(next *clients.Actor) []history.Request {
	r.arming.Lock()
	r.armed, r.each = nil, nil
	r.arming.Unlock()
	r.reacting.Wait()
	r.writing.Lock()
	defer r.writing.Unlock()
	former := r.writer
	if r.writer = next; former == nil {
		return nil
	}
	return former.Requests
}

// met takes the first fault that waits for such a write; nil if there is none. Its reaction is over after r.reacting.Done.
func (r *reviewer) met(review webhookserver.Review) *Fault {
	r.arming.Lock()
	defer r.arming.Unlock()
	at := slices.IndexFunc(r.armed, func(fault *Fault) bool { return fault.applies(review) })
	kind, fault := kindOf(review), r.each
	switch {
	case at >= 0:
		fault = r.armed[at]
		r.armed = slices.Delete(r.armed, at, at+1)
	case fault == nil || r.kinds[kind] == ofEachKind || !fault.applies(review):
		return nil
	default:
		r.kinds[kind]++
	}
	r.reacting.Add(1)
	return fault
}

// review responds to a review.
func (i *Injector) review(ctx context.Context, request admission.Request) admission.Response {
	if request.UserInfo.Username == i.self {
		i.called.Store(true)
	}
	if !i.concerns(request.AdmissionRequest) {
		return admission.Allowed("")
	}
	fault := i.met(request.AdmissionRequest)
	if fault == nil {
		return admission.Allowed("")
	}
	defer i.reacting.Done()
	return fault.react(ctx, i, request.AdmissionRequest)
}

// controllerManager is the user of a controller manager without service accounts for its controllers.
const controllerManager = "system:kube-controller-manager"

// concerns reports whether a review is that of a controller's write to an object of the run. Labels prove nothing, because tools copy them.
func (i *Injector) concerns(review webhookserver.Review) bool {
	user, named := review.UserInfo.Username, webhookserver.NameOf(review)
	isController := strings.HasPrefix(user, "system:serviceaccount:") || user == controllerManager
	run := i.cluster.Settings.Run
	isOwn := client.NamedBy(run, named.Namespace) || client.NamedBy(run, named.Name)
	isDryRun := review.DryRun != nil && *review.DryRun
	return isController && user != i.self && isOwn && !isDryRun
}

func anyWrite(webhookserver.Review) bool { return true }

// writesExisting reports whether a write is one of an object that exists, and not of a subresource that is another kind.
func writesExisting(review webhookserver.Review) bool {
	return review.Operation != "CREATE" && webhookserver.NameOf(review).Name != ""
}

// refuse refuses a write.
func refuse(_ context.Context, i *Injector, review webhookserver.Review) admission.Response {
	i.noteOn(writeOf(review), Refuse, "refused "+describe(review))
	return admission.Denied("an injected fault refuses one write: try again")
}

// delay delays a write.
func delay(ctx context.Context, i *Injector, review webhookserver.Review) admission.Response {
	i.noteOn(writeOf(review), "delay", "delayed "+describe(review)+" by "+delayed.String())
	client.Wait(ctx, delayed)
	return admission.Allowed("")
}

// conflict writes the object of a write before that takes effect. Where the write requires what the controller has read, it is refused with 409.
func conflict(ctx context.Context, i *Injector, review webhookserver.Review) admission.Response {
	if i.overtake(ctx, review) == nil {
		i.noteOn(writeOf(review), "conflict", "wrote before "+describe(review))
	}
	return admission.Allowed("")
}

var errNotWritten = errors.New("the object was not written")

// overtake changes an annotation of the object of a review, as a request of the round.
func (i *Injector) overtake(ctx context.Context, review webhookserver.Review) error {
	i.writing.Lock()
	defer i.writing.Unlock()
	named, kind := webhookserver.NameOf(review), i.cluster.Client.KindOf(schema.GroupVersionResource(review.Resource))
	if i.writer == nil || kind.Kind == "" {
		return errNotWritten
	}
	object := &client.Object{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(named.Namespace)
	object.SetName(named.Name)
	name := named.Name
	if kind.Kind != i.writer.Manifest.GetKind() {
		name = review.Resource.Resource + "/" + name
	}
	i.written++
	change := model.Change{Value: new(fmt.Sprintf("conflict.%d", i.written))}
	before := len(i.writer.Requests)
	if err := i.writer.Send(ctx, clients.About(name, object, model.Operation{Verb: model.Patch, Change: change})); err != nil {
		return err
	}
	if sent := i.writer.Requests[before:]; len(sent) == 0 || !sent[0].Outcome.Succeeded() {
		return errNotWritten
	}
	return nil
}

// describe describes a write: DELETE of configmaps r1-a by USER.
func describe(review webhookserver.Review) string {
	return fmt.Sprintf("%s of %s %s by %s", review.Operation, resourceOf(review), webhookserver.NameOf(review).Name, review.UserInfo.Username)
}

// writeOf is a write as the faults of a history have it.
func writeOf(review webhookserver.Review) string {
	return fmt.Sprintf("%s %s/%s", review.Operation, resourceOf(review), webhookserver.NameOf(review).Name)
}

// kindOf is the kind of a write: its operation, resource and user.
func kindOf(review webhookserver.Review) string {
	return fmt.Sprintf("%s of %s by %s", review.Operation, resourceOf(review), review.UserInfo.Username)
}

// resourceOf is the resource of a review, with its subresource.
func resourceOf(review webhookserver.Review) string {
	if review.SubResource == "" {
		return review.Resource.Resource
	}
	return review.Resource.Resource + "/" + review.SubResource
}

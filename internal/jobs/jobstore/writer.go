package jobstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Pod is the pod that stores a report.
type Pod struct {
	Namespace, Name string
	// Job and JobUID are the name and the uid of its Job, and Index its index; 0 in a Job that is not indexed.
	Job, JobUID string
	Index       int
}

// Writer stores the progress and the report of a pod. Its methods are not safe for concurrent use.
type Writer struct {
	client   *client.Client
	pod      Pod
	progress Progress
}

const (
	// writeTimeout limits one write. The next one makes up for it.
	writeTimeout = 30 * time.Second
	// deletionTimeout is how long Kubernetes may take to delete the ConfigMaps of an earlier Job with the same name, and deletionPolling the
	// interval for checking that.
	deletionTimeout, deletionPolling = 30 * time.Second, 200 * time.Millisecond
)

// NewWriter stores that the pod has started. It fails when the credentials do not permit storing anything, and when another owner has a
// ConfigMap with a name that it needs.
func NewWriter(ctx context.Context, config *rest.Config, pod Pod) (*Writer, error) {
	connected, err := client.New(config, client.NewGuard(""))
	if err != nil {
		return nil, err
	}
	w := &Writer{client: connected, pod: pod, progress: Progress{Index: pod.Index, Attempt: pod.Name}}
	before, err := w.earlier(ctx)
	if err != nil {
		return nil, err
	}
	w.progress.Report.Generation = before.Report.Generation
	if err := w.PutProgress(ctx, nil, 0); err != nil {
		return nil, err
	}
	return w, w.remove(ctx, before.Report)
}

// earlier returns the progress of an earlier attempt; the zero value for none.
func (w *Writer) earlier(ctx context.Context) (Progress, error) {
	found, err := w.find(ctx, progressName(w.pod.Job, w.pod.Index))
	if err != nil || found == nil {
		return Progress{}, err
	}
	return progressOf(found, w.pod.Index)
}

// find returns a ConfigMap that the Job owns; nil for none. Labels prove nothing, and an owner reference to the Job asks
// Kubernetes to delete the ConfigMap with it. find waits while Kubernetes deletes the ConfigMap of an earlier Job with the same name. It fails
// when another owner has the ConfigMap.
func (w *Writer) find(ctx context.Context, name string) (found *client.Object, err error) {
	foreign := fmt.Errorf("ConfigMap %q in namespace %q exists, and Job %q with the uid %s does not own it: delete the ConfigMap, or rename the Job",
		name, w.pod.Namespace, w.pod.Job, w.pod.JobUID)
	err = wait.PollUntilContextTimeout(ctx, deletionPolling, deletionTimeout, true, func(ctx context.Context) (bool, error) {
		response := w.client.Get(ctx, newConfigMap(w.pod.Namespace, name))
		if apierrors.IsNotFound(response.Err) {
			return true, nil
		}
		if response.Err != nil {
			return false, w.failed(response)
		}
		owners := response.Object.GetOwnerReferences()
		if slices.ContainsFunc(owners, ownedBy(w.pod.Job, w.pod.JobUID)) {
			found = response.Object
			return true, w.client.Except(found)
		}
		if !slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return ownedBy(w.pod.Job, string(owner.UID))(owner) }) {
			return false, foreign
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = foreign
	}
	return found, err
}

// failed returns the error of a request.
func (w *Writer) failed(response client.Response) error {
	if apierrors.IsForbidden(response.Err) {
		return fmt.Errorf("missing permission: create, get, update and delete configmaps in namespace %q: %w; apply the roles of deploy/job",
			w.pod.Namespace, response.Err)
	}
	return fmt.Errorf("store the report in namespace %q: %w", w.pod.Namespace, response.Err)
}

// PutProgress stores the log of the runner, from which the given number of bytes was dropped at the start.
func (w *Writer) PutProgress(ctx context.Context, log []byte, skipped int) error {
	w.progress.Skipped = skipped
	encoded, err := json.Marshal(w.progress)
	if err != nil {
		return err
	}
	compressed, err := Compress(log)
	if err != nil {
		return err
	}
	object := newConfigMap(w.pod.Namespace, progressName(w.pod.Job, w.pod.Index))
	if err := unstructured.SetNestedField(object.Object, string(encoded), "data", progressKey); err != nil {
		return err
	}
	if err := setBinary(object, logKey, compressed); err != nil {
		return err
	}
	return w.put(ctx, object, progressContent)
}

// End notes how the runner ended; PutProgress stores it.
func (w *Writer) End(exitCode int, err error) {
	w.progress.Ended, w.progress.ExitCode = true, exitCode
	if err != nil {
		w.progress.Error = err.Error()
	}
}

// PutReport stores a report that Compress has returned, in place of an earlier one; PutProgress makes it visible. It fails when it is larger
// than MaxReport.
func (w *Writer) PutReport(ctx context.Context, compressed []byte) (replaced func(context.Context) error, err error) {
	if len(compressed) > MaxReport {
		return nil, fmt.Errorf("the compressed report has %d bytes, more than the %d that are stored", len(compressed), MaxReport)
	}
	before := w.progress.Report
	digest := sha256.Sum256(compressed)
	stored := Stored{Generation: before.Generation + 1, Digest: hex.EncodeToString(digest[:])}
	for len(compressed) > 0 {
		part := compressed[:min(partSize, len(compressed))]
		compressed = compressed[len(part):]
		object := newConfigMap(w.pod.Namespace, partName(w.pod.Job, w.pod.Index, stored.Generation, stored.Parts))
		if err := setBinary(object, partKey, part); err != nil {
			return nil, err
		}
		if err := w.put(ctx, object, reportContent); err != nil {
			return nil, err
		}
		stored.Parts++
	}
	w.progress.Report = stored
	return func(ctx context.Context) error { return w.remove(ctx, before) }, nil
}

// remove deletes the parts of an earlier report.
func (w *Writer) remove(ctx context.Context, stored Stored) error {
	var failures []error
	for part := range stored.Parts {
		found, err := w.find(ctx, partName(w.pod.Job, w.pod.Index, stored.Generation, part))
		if err != nil || found == nil {
			failures = append(failures, err)
			continue
		}
		only := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.GetUID()))}
		if response := w.client.Delete(ctx, found, only); response.Err != nil && !apierrors.IsNotFound(response.Err) {
			failures = append(failures, w.failed(response))
		}
	}
	return errors.Join(failures...)
}

// put creates a ConfigMap, or replaces one that the Job owns.
func (w *Writer) put(ctx context.Context, object *client.Object, content string) error {
	object.SetLabels(map[string]string{JobLabel: w.pod.Job, contentLabel: content, indexLabel: strconv.Itoa(w.pod.Index)})
	object.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "batch/v1", Kind: "Job", Name: w.pod.Job, UID: types.UID(w.pod.JobUID)},
	})
	found, err := w.find(ctx, object.GetName())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var response client.Response
	if found == nil {
		response = w.client.CreateNamed(ctx, object)
	} else {
		object.SetUID(found.GetUID()) // a precondition
		response = w.client.Update(ctx, object, "")
	}
	if response.Err != nil {
		return w.failed(response)
	}
	return nil
}

package jobstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// ErrNoJob means that the Job does not exist, and ErrIndexes that it has more indexes than a run has parts.
var (
	ErrNoJob   = errors.New("no such Job")
	ErrIndexes = errors.New("invalid number of indexes")
)

// Reader reads what the pods of a Job have stored. It changes nothing.
type Reader struct {
	client         *client.Client
	namespace, job string
}

// NewReader returns a reader of a Job. It sends no request.
func NewReader(config *rest.Config, namespace, job string) (*Reader, error) {
	connected, err := client.New(config, client.NewGuard(""))
	return &Reader{client: connected, namespace: namespace, job: job}, err
}

// State is the state of a Job.
type State struct {
	// UID is its uid.
	UID string
	// Indexes is the number of its indexes; 1 if it is not indexed.
	Indexes int
	// Ended is how it ended: "Complete", or "Failed" with the reason and the message; empty while it runs.
	Ended string
}

// Job returns the state of the Job. It fails with ErrNoJob or ErrIndexes.
func (r *Reader) Job(ctx context.Context) (State, error) {
	object := &client.Object{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
	object.SetNamespace(r.namespace)
	object.SetName(r.job)
	response := r.client.Get(ctx, object)
	if apierrors.IsNotFound(response.Err) {
		return State{}, fmt.Errorf("%w: %q in namespace %q", ErrNoJob, r.job, r.namespace)
	}
	if response.Err != nil {
		return State{}, fmt.Errorf("read Job %q in namespace %q: %w", r.job, r.namespace, response.Err)
	}
	state := State{UID: string(response.Object.GetUID()), Indexes: 1}
	if mode, _, _ := unstructured.NestedString(response.Object.Object, "spec", "completionMode"); mode == "Indexed" {
		completions, _, _ := unstructured.NestedInt64(response.Object.Object, "spec", "completions")
		if completions < 1 || completions > v1alpha1.MaxShards {
			return State{}, fmt.Errorf("%w: Job %q in namespace %q has %d; a run has 1 to %d shards or clusters",
				ErrIndexes, r.job, r.namespace, completions, v1alpha1.MaxShards)
		}
		state.Indexes = int(completions)
	}
	conditions, _, _ := unstructured.NestedSlice(response.Object.Object, "status", "conditions")
	for _, condition := range conditions {
		state.Ended = cmp.Or(state.Ended, endIn(condition))
	}
	return state, nil
}

// endIn returns how a Job ended according to a condition; empty for other conditions.
func endIn(condition any) string {
	fields, _ := condition.(map[string]any)
	switch {
	case fields["status"] != "True":
		return ""
	case fields["type"] == "Complete":
		return "Complete"
	case fields["type"] == "Failed":
		return fmt.Sprintf("Failed (%v: %v)", fields["reason"], fields["message"])
	}
	return ""
}

// Progress returns the progress of the indexes that have started, by index. It leaves out ConfigMaps that the Job does not own, such as those
// of an earlier Job with the same name, and those that are not named after an index.
func (r *Reader) Progress(ctx context.Context, of State) ([]Progress, error) {
	configMaps := client.Collection{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespace: r.namespace}
	objects, response := r.client.List(ctx, configMaps, JobLabel+"="+r.job+","+contentLabel+"="+progressContent)
	if response.Err != nil {
		return nil, fmt.Errorf("list the ConfigMaps of Job %q in namespace %q: %w", r.job, r.namespace, response.Err)
	}
	var all []Progress
	for _, object := range objects {
		index, ok := indexIn(object.GetName(), r.job)
		if !ok || index >= of.Indexes || !slices.ContainsFunc(object.GetOwnerReferences(), ownedBy(r.job, of.UID)) {
			continue
		}
		progress, err := progressOf(object, index)
		if err != nil {
			return nil, err
		}
		all = append(all, progress)
	}
	slices.SortFunc(all, func(a, b Progress) int { return cmp.Compare(a.Index, b.Index) })
	return all, nil
}

// Report returns the report that a progress refers to, uncompressed. It fails when the report was replaced meanwhile: the progress is then
// out of date.
func (r *Reader) Report(ctx context.Context, of Progress) ([]byte, error) {
	var compressed []byte
	for part := range of.Report.Parts {
		name := partName(r.job, of.Index, of.Report.Generation, part)
		response := r.client.Get(ctx, newConfigMap(r.namespace, name))
		if response.Err != nil {
			return nil, fmt.Errorf("read ConfigMap %q in namespace %q: %w", name, r.namespace, response.Err)
		}
		content, err := binary(response.Object, partKey)
		if err != nil {
			return nil, fmt.Errorf("read ConfigMap %q in namespace %q: %w", name, r.namespace, err)
		}
		if len(content) > partSize {
			return nil, fmt.Errorf("read ConfigMap %q in namespace %q: a part of a report has at most %d KiB", name, r.namespace, partSize>>10)
		}
		compressed = append(compressed, content...)
	}
	digest := sha256.Sum256(compressed)
	if hex.EncodeToString(digest[:]) != of.Report.Digest {
		return nil, fmt.Errorf("the report of index %d of Job %q was changed after it was stored", of.Index, r.job)
	}
	content, err := Expand(compressed)
	if err != nil {
		return nil, fmt.Errorf("read the report of index %d of Job %q: %w", of.Index, r.job, err)
	}
	return content, nil
}

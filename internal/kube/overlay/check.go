package overlay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Names are the names of the parts of an overlay in errors: flags or options.
type Names struct{ Labels, Annotations, NamespaceLabels, Pod string }

// Check rejects an overlay that the API server would reject, that uses keys of the given domain or of Kubernetes' own controllers, or that
// changes what behaviors test. The error is one line.
func (o Overlay) Check(domain string, names Names) error {
	for _, part := range []struct {
		name   string
		values map[string]string
		check  func(map[string]string, *field.Path) field.ErrorList
	}{
		{names.Labels, o.Labels, metav1validation.ValidateLabels},
		{names.Annotations, o.Annotations, apivalidation.ValidateAnnotations},
		{names.NamespaceLabels, o.NamespaceLabels, metav1validation.ValidateLabels},
	} {
		if err := checkMap(part.values, part.check, part.name, domain); err != nil {
			return err
		}
	}
	if err := o.checkPod(domain); err != nil {
		return fmt.Errorf("%s: %w", names.Pod, err)
	}
	return nil
}

// checkMap rejects labels or annotations that are invalid or reserved.
func checkMap(values map[string]string, check func(map[string]string, *field.Path) field.ErrorList, name, domain string) error {
	if errs := check(values, field.NewPath(name)); len(errs) > 0 {
		return errs[0]
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := checkKey(key, domain); err != nil {
			return fmt.Errorf("%s %s: %w", name, key, err)
		}
	}
	return nil
}

// takenKeys are the labels and annotations by which Kubernetes' own components recognize objects.
var takenKeys = []string{
	"pod-template-hash", "controller-revision-hash", "controller-uid", "job-name", "kubernetes.io/metadata.name",
	"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "statefulset.kubernetes.io/pod-name",
	"controller.kubernetes.io/pod-deletion-cost", corev1.MirrorPodAnnotationKey, corev1.ServiceAccountNameKey,
}

func checkKey(key, domain string) error {
	prefix, _, _ := strings.Cut(key, "/")
	switch {
	case strings.Contains(key, "/") && (prefix == domain || strings.HasSuffix(prefix, "."+domain)):
		return fmt.Errorf("the domain %s is the runner's own: use another key", domain)
	case slices.Contains(takenKeys, key):
		return errors.New("Kubernetes' own components use it: use another key") //nolint:staticcheck // a proper name
	}
	return nil
}

// ReadPod reads a pod patch from a file of YAML or JSON.
func ReadPod(file string) (map[string]any, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return DecodePod(content)
}

// DecodePod reads a pod patch from YAML or JSON.
func DecodePod(content []byte) (map[string]any, error) {
	var patch map[string]any
	for document := range bytes.SplitSeq(append([]byte("\n"), content...), []byte("\n---")) {
		encoded, err := yaml.YAMLToJSONStrict(document)
		switch {
		case err != nil:
			return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
		case string(encoded) == "null": // comments, or nothing
			continue
		case patch != nil:
			return nil, errors.New("it contains several documents: a pod overlay is one patch")
		}
		if err := utiljson.Unmarshal(encoded, &patch); err != nil {
			return nil, errors.New("it is not an object: " + example)
		}
	}
	if len(patch) == 0 {
		return nil, errors.New("it is empty: " + example)
	}
	return patch, nil
}

// example is an example of a pod overlay.
const example = "write a patch of a pod, such as {spec: {nodeSelector: {pool: tests}}}"

// checkPod rejects a patch that is not a pod patch, and one that changes what behaviors test.
func (o Overlay) checkPod(domain string) error {
	if len(o.Pod) == 0 {
		return nil
	}
	if err := checkSchema(o.Pod); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(o.Pod)) {
		switch value := o.Pod[key]; {
		case key == "apiVersion" && value != "v1" || key == "kind" && value != "Pod":
			return fmt.Errorf("%s %v: a pod overlay is a patch of a Pod (v1)", key, value)
		case key == "status":
			return errors.New("status: a pod overlay may set metadata.labels, metadata.annotations and fields of spec")
		}
	}
	if err := checkMetadata(o.Pod["metadata"], domain); err != nil {
		return err
	}
	spec, _ := o.Pod["spec"].(map[string]any)
	return checkSpec(spec, domain)
}

// checkSchema rejects unknown fields, values of another type, and patch directives.
func checkSchema(patch map[string]any) error {
	if directive := directiveIn(patch); directive != "" {
		return fmt.Errorf("%s: a pod overlay adds and changes fields; patch directives are not supported", directive)
	}
	if path := nullIn(patch, nil); path != "" {
		return fmt.Errorf("%s: null removes a field, and tests depend on it; only fields of securityContext may be null", path)
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(encoded, &corev1.Pod{})
	if err = cmp.Or(err, errors.Join(unknown...)); err != nil {
		return fmt.Errorf("it is not a patch of a pod: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}

// nullIn returns the path of a null outside of security contexts; empty without one.
func nullIn(value any, path []string) string {
	switch value := value.(type) {
	case nil:
		return strings.Join(path, ".")
	case []any:
		for i, element := range value {
			if found := nullIn(element, append(slices.Clone(path), strconv.Itoa(i))); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if name == "securityContext" {
				continue
			}
			if found := nullIn(value[name], append(slices.Clone(path), name)); found != "" {
				return found
			}
		}
	}
	return ""
}

// directiveIn returns the first directive of a strategic merge patch in a value, such as "$patch"; empty without one.
func directiveIn(value any) string {
	var elements []any
	switch value := value.(type) {
	case []any:
		elements = value
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if strings.HasPrefix(name, "$") {
				return name
			}
			elements = append(elements, value[name])
		}
	}
	for _, element := range elements {
		if found := directiveIn(element); found != "" {
			return found
		}
	}
	return ""
}

func checkMetadata(value any, domain string) error {
	metadata, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		check, ok := map[string]func(map[string]string, *field.Path) field.ErrorList{
			"labels": metav1validation.ValidateLabels, "annotations": apivalidation.ValidateAnnotations,
		}[name]
		if !ok {
			return fmt.Errorf("metadata.%s: behaviors depend on it; a pod overlay may set metadata.labels and metadata.annotations", name)
		}
		values, _, err := unstructured.NestedStringMap(metadata, name)
		if err == nil {
			err = checkMap(values, check, "metadata."+name, domain)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fixedFields maps fields of a pod's spec to the reason why a patch may not set them.
var fixedFields = map[string]string{
	"terminationGracePeriodSeconds": "grace periods are tested",
	"activeDeadlineSeconds":         "pods would fail before the tests end",
	"restartPolicy":                 "tests depend on when containers restart",
	"nodeName":                      "tests choose the node; use nodeSelector",
	"schedulerName":                 "tests depend on which pods are scheduled",
	"schedulingGates":               "tests depend on which pods are scheduled",
	"readinessGates":                "no pod would become ready",
	"serviceAccountName":            "the run creates its own service account",
	"serviceAccount":                "the run creates its own service account",
	"volumes":                       "tests depend on the volumes of pods",
	"resourceClaims":                "tests depend on the resource claims of pods",
	"ephemeralContainers":           "the API accepts them only in pods that exist",
}

// patchedFields are the fields of a container that a patch may set.
var patchedFields = []string{"name", "securityContext", "resources", "imagePullPolicy", "env"}

func checkSpec(spec map[string]any, domain string) error {
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		if reason, fixed := fixedFields[name]; fixed {
			return fmt.Errorf("spec.%s: a pod overlay may not set it: %s", name, reason)
		}
	}
	for _, list := range containerLists {
		if err := checkContainers(spec, list); err != nil {
			return err
		}
	}
	if _, required, _ := unstructured.NestedFieldNoCopy(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"); required {
		return errors.New("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: simulated nodes would not match it; use nodeSelector")
	}
	selector, _, _ := unstructured.NestedStringMap(spec, "nodeSelector")
	if err := checkMap(selector, metav1validation.ValidateLabels, "spec.nodeSelector", domain); err != nil {
		return err
	}
	return checkTolerations(spec, domain)
}

func checkContainers(spec map[string]any, list string) error {
	value, given := spec[list]
	if !given {
		return nil
	}
	containers, _ := value.([]any)
	if len(containers) == 0 {
		return fmt.Errorf("spec.%s: a pod overlay may not remove containers: tests depend on them", list)
	}
	for i, element := range containers {
		container, _ := element.(map[string]any)
		if name, _ := container["name"].(string); name == "" {
			return fmt.Errorf("spec.%s[%d]: it has no name: set the name of a container, or %q for all containers", list, i, everyContainer)
		}
		for _, name := range slices.Sorted(maps.Keys(container)) {
			if !slices.Contains(patchedFields, name) {
				return fmt.Errorf("spec.%s[%d].%s: tests depend on it; a pod overlay may set %s of a container", list, i, name,
					strings.Join(patchedFields[1:], ", "))
			}
		}
	}
	return nil
}

// checkTolerations rejects tolerations of taints with which tests evict pods.
func checkTolerations(spec map[string]any, domain string) error {
	tolerations, _ := spec["tolerations"].([]any)
	for i, element := range tolerations {
		toleration, _ := element.(map[string]any)
		key, _ := toleration["key"].(string)
		if prefix, _, _ := strings.Cut(key, "/"); prefix == domain {
			return fmt.Errorf("spec.tolerations[%d].key %s: the domain %s is the runner's own", i, key, domain)
		}
		if effect := toleration["effect"]; key == "" && effect != string(corev1.TaintEffectNoSchedule) && effect != string(corev1.TaintEffectPreferNoSchedule) {
			return fmt.Errorf("spec.tolerations[%d]: it tolerates every NoExecute taint, with which tests evict pods: set key or effect", i)
		}
	}
	return nil
}

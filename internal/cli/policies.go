package cli

import (
	"fmt"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/overlay"
)

// policyFlags are the flags with which a run satisfies the policies of a cluster.
type policyFlags struct {
	labels, annotations, namespaceLabels []string
	podOverlay                           string
}

// The names of the flags.
const (
	labelFlag          = "label"
	annotationFlag     = "annotation"
	namespaceLabelFlag = "namespace-label"
	podOverlayFlag     = "pod-overlay"
)

func (f *policyFlags) addTo(groups *cliflag.NamedFlagSets) {
	set := groups.FlagSet(objectGroup)
	set.StringArrayVar(&f.labels, labelFlag, nil, "label `KEY=VALUE` for all objects that the run creates, including pod templates; repeatable")
	set.StringArrayVar(&f.annotations, annotationFlag, nil, "annotation `KEY=VALUE` for all objects that the run creates, including pod templates; repeatable")
	set.StringArrayVar(&f.namespaceLabels, namespaceLabelFlag, nil, "label `KEY=VALUE` for the namespaces that the run creates, such as pod-security.kubernetes.io/enforce=restricted; repeatable")
	set.StringVar(&f.podOverlay, podOverlayFlag, "", "`FILE` with a strategic merge patch, as kubectl patch takes it, for every pod and pod template: tolerations, nodeSelector, securityContext, runtimeClassName, imagePullSecrets")
}

// fill sets the additions of the flags to every object that a run creates.
func (f *policyFlags) fill(added *session.Additions) (err error) {
	for _, part := range []struct {
		flag  string
		given []string
		into  *map[string]string
	}{
		{labelFlag, f.labels, &added.Labels},
		{annotationFlag, f.annotations, &added.Annotations},
		{namespaceLabelFlag, f.namespaceLabels, &added.NamespaceLabels},
	} {
		if *part.into, err = keysAndValues(part.given); err != nil {
			return fmt.Errorf("--%s %w", part.flag, err)
		}
	}
	if f.podOverlay != "" {
		if added.PodOverlay, err = overlay.ReadPod(f.podOverlay); err != nil {
			return fmt.Errorf("read --%s %s: %w", podOverlayFlag, f.podOverlay, err)
		}
	}
	return nil
}

// keysAndValues parses labels or annotations.
func keysAndValues(given []string) (map[string]string, error) {
	var values map[string]string
	for _, text := range given {
		key, value, ok := strings.Cut(text, "=")
		before, twice := values[key]
		switch {
		case !ok || key == "":
			return nil, fmt.Errorf("%q: expected KEY=VALUE", text)
		case twice && before != value:
			return nil, fmt.Errorf("%s is specified with different values, %q and %q", key, before, value)
		case values == nil:
			values = map[string]string{}
		}
		values[key] = value
	}
	return values, nil
}

package framework

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

const (
	// Core behaviours are promised by every Kubernetes cluster.
	Core = v1alpha1.Core
	// Extended behaviours are promised where a feature is on, and skipped elsewhere.
	Extended = v1alpha1.Extended
	// Observed behaviours are what upstream is seen to do without a written promise.
	Observed = v1alpha1.Observed
)

// Requirement is what Behavior takes beside the id and the level: what the cluster or the credentials must offer, the
// first version that has it, or that it is slow.
type Requirement struct{ decorator any }

// What a behaviour may need beyond an API server.
var (
	// GC is the garbage collector.
	GC = needs(v1alpha1.GC)
	// KCM stands for the other built-in controllers of kube-controller-manager.
	KCM = needs(v1alpha1.KCM)
	// CRD is the permission to create custom resource definitions.
	CRD = needs(v1alpha1.CRD)
	// Admin is the permission to write cluster-scoped objects.
	Admin = needs(v1alpha1.Admin)
	// Hook is an API server that can reach a webhook of the runner's.
	Hook = needs(v1alpha1.Hook)
	// Node is a real kubelet with a real container runtime.
	Node = needs(v1alpha1.Node)
)

func needs(need v1alpha1.Need) Requirement {
	return Requirement{ginkgo.Label(needLabel + string(need))}
}

// Since names the first minor version of Kubernetes that has the behaviour ("1.30"). It becomes Ginkgo's
// SemVerConstraint, so Ginkgo's own --sem-ver-filter works on it too.
func Since(minor string) Requirement {
	return Requirement{ginkgo.SemVerConstraint(sinceConstraint + minor + patchOfAnyMinor)}
}

// Slow marks a behaviour that waits a minute or so for the cluster's own clock. A run takes it only when asked to.
var Slow = Requirement{ginkgo.Label(slowLabel)}

const (
	slowLabel        = "slow"
	needLabel        = "needs:"
	sinceConstraint  = ">="
	patchOfAnyMinor  = ".0"
	behaviorIDFormat = `^[a-z]+(\.[a-zA-Z0-9-]+)+$`
)

var behaviorID = regexp.MustCompile(behaviorIDFormat)

// Behavior decorates a spec with its row of the catalogue: the id, the level and what it needs. It is the one place
// where these are said; the spec's own text is the statement. Everything becomes Ginkgo labels, so that
// --label-filter selects by id (`cascade.foreground.circle`), by level (`core`) and by need (`needs: containsAny gc`).
func Behavior(id string, level v1alpha1.Level, requirements ...Requirement) []any {
	if !behaviorID.MatchString(id) {
		panic(fmt.Sprintf("behaviour id %q must look like suite.topic.name (%s)", id, behaviorIDFormat))
	}
	decorators := []any{ginkgo.Label(id, string(level))}
	for _, requirement := range requirements {
		decorators = append(decorators, requirement.decorator)
	}
	return decorators
}

// BehaviorOf reads the catalogue row back from Ginkgo's report of a spec. It is false for specs that are no behaviour.
func BehaviorOf(spec types.SpecReport) (v1alpha1.Behavior, bool) {
	behavior := v1alpha1.Behavior{
		Needs:     []v1alpha1.Need{},
		Statement: spec.LeafNodeText,
		File:      RepositoryPath(spec.LeafNodeLocation.FileName),
		Line:      spec.LeafNodeLocation.LineNumber,
	}
	for _, label := range spec.LeafNodeLabels {
		need, isNeed := strings.CutPrefix(label, needLabel)
		switch {
		case isNeed:
			behavior.Needs = append(behavior.Needs, v1alpha1.Need(strings.TrimSpace(need)))
		case label == slowLabel:
			behavior.Slow = true
		case slices.Contains(v1alpha1.Levels, v1alpha1.Level(label)):
			behavior.Level = v1alpha1.Level(label)
		case behaviorID.MatchString(label):
			behavior.ID = label
		}
	}
	for _, constraint := range spec.LeafNodeSemVerConstraints {
		behavior.Since = strings.TrimSuffix(strings.TrimPrefix(constraint, sinceConstraint), patchOfAnyMinor)
	}
	slices.SortFunc(behavior.Needs, func(a, b v1alpha1.Need) int { return slices.Index(v1alpha1.Needs, a) - slices.Index(v1alpha1.Needs, b) })
	return behavior, behavior.ID != ""
}

// RepositoryPath shortens a path of the machine that compiled the binary to the part below the repository's root, for
// files of specs and of what they call.
func RepositoryPath(file string) string {
	for _, folder := range []string{"/suites/", "/framework/", "/fixtures/"} {
		if i := strings.LastIndex(file, folder); i >= 0 {
			return file[i+1:]
		}
	}
	return file
}

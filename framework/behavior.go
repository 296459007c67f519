package framework

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// Level says how binding a behaviour is.
type Level string

const (
	// Core behaviours are promised by every Kubernetes cluster.
	Core Level = "core"
	// Extended behaviours are promised where a feature is on, and skipped elsewhere.
	Extended Level = "extended"
	// Observed behaviours are what upstream is seen to do without a written promise. A deviation is reported and does
	// not fail a run unless it is strict.
	Observed Level = "observed"
)

// Levels are all levels, the most binding first.
var Levels = []Level{Core, Extended, Observed}

// Need is something a cluster, or the credentials for it, must offer before a behaviour can be judged.
type Need string

const (
	// API is an API server alone: no controllers, no nodes. Every behaviour needs it.
	API Need = "api"
	// GC is the garbage collector.
	GC Need = "gc"
	// KCM stands for the other built-in controllers of kube-controller-manager.
	KCM Need = "kcm"
	// CRD is the permission to create custom resource definitions.
	CRD Need = "crd"
	// Admin is the permission to write cluster-scoped objects.
	Admin Need = "admin"
	// Hook is an API server that can reach a webhook of the runner's.
	Hook Need = "hook"
	// Node is a real kubelet with a real container runtime.
	Node Need = "node"
)

// Needs are all needs, in the order in which they are named everywhere.
var Needs = []Need{API, GC, KCM, CRD, Admin, Hook, Node}

// Contract is one behaviour of the catalogue: what a cluster must do when something is deleted.
type Contract struct {
	// ID is the behaviour's stable name, its suite first: cascade.background.owner-goes-first.
	ID string `json:"id"`
	// Statement is the promise, in one sentence.
	Statement string `json:"statement"`
	Level     Level  `json:"level"`
	Needs     []Need `json:"needs"`
	// Since is the first minor version that has the behaviour ("1.30"); empty means every supported version.
	Since string `json:"since,omitempty"`
	// Slow behaviours wait a minute or so for the cluster's own clock.
	Slow bool `json:"slow,omitempty"`
	// File and Line say where the spec stands, the file relative to the repository's root.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Suite is the suite the behaviour belongs to: the first part of its id.
func (c Contract) Suite() string {
	suite, _, _ := strings.Cut(c.ID, ".")
	return suite
}

// Topic is what the behaviour is about within its suite: its id without the suite and the last part.
func (c Contract) Topic() string {
	parts := strings.Split(c.ID, ".")
	if len(parts) < 3 {
		return ""
	}
	return strings.Join(parts[1:len(parts)-1], ".")
}

// Requirement is what Behavior takes beside the id and the level: a Need, or Since.
type Requirement interface{ decorators() []any }

func (n Need) decorators() []any { return []any{ginkgo.Label(needLabel + string(n))} }

type since string

func (s since) decorators() []any {
	return []any{ginkgo.SemVerConstraint(sinceConstraint + string(s) + patchOfAnyMinor)}
}

// Since names the first minor version of Kubernetes that has the behaviour ("1.30"). It becomes Ginkgo's
// SemVerConstraint, so Ginkgo's own --sem-ver-filter works on it too.
func Since(minor string) Requirement { return since(minor) }

type slow struct{}

func (slow) decorators() []any { return []any{ginkgo.Label(slowLabel)} }

// Slow marks a behaviour that waits a minute or so for the cluster's own clock. A run takes it only when asked to.
var Slow Requirement = slow{}

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
func Behavior(id string, level Level, requirements ...Requirement) []any {
	if !behaviorID.MatchString(id) {
		panic(fmt.Sprintf("behaviour id %q must look like suite.topic.name (%s)", id, behaviorIDFormat))
	}
	decorators := []any{ginkgo.Label(id, string(level))}
	for _, requirement := range requirements {
		decorators = append(decorators, requirement.decorators()...)
	}
	return decorators
}

// ContractOf reads the catalogue row back from Ginkgo's report of a spec. It is false for specs that are no behaviour.
func ContractOf(spec types.SpecReport) (Contract, bool) {
	contract := Contract{
		Statement: spec.LeafNodeText,
		File:      RepositoryPath(spec.LeafNodeLocation.FileName),
		Line:      spec.LeafNodeLocation.LineNumber,
	}
	for _, label := range spec.LeafNodeLabels {
		need, isNeed := strings.CutPrefix(label, needLabel)
		switch {
		case isNeed:
			contract.Needs = append(contract.Needs, Need(strings.TrimSpace(need)))
		case label == slowLabel:
			contract.Slow = true
		case slices.Contains(Levels, Level(label)):
			contract.Level = Level(label)
		case behaviorID.MatchString(label):
			contract.ID = label
		}
	}
	for _, constraint := range spec.LeafNodeSemVerConstraints {
		contract.Since = strings.TrimSuffix(strings.TrimPrefix(constraint, sinceConstraint), patchOfAnyMinor)
	}
	slices.SortFunc(contract.Needs, func(a, b Need) int { return slices.Index(Needs, a) - slices.Index(Needs, b) })
	return contract, contract.ID != ""
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

// Package plan selects the behaviors of a run. The catalog is Ginkgo's tree of specs, read without running it; the selection is Ginkgo's
// too.
package plan

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/suggest"
)

// Selection selects behaviors as in Ginkgo.
type Selection struct {
	// Suites are the suites to include; none means all.
	Suites []string
	// Focus and Skip are regular expressions for the heading and the statement of a behavior.
	Focus, Skip []string
	// LabelFilter is a Ginkgo label filter for id, level and features.
	LabelFilter string
	// Slow includes slow behaviors.
	Slow bool
	// AnyResource includes only behaviors of every resource.
	AnyResource bool
	// NoCreate includes only behaviors that create nothing.
	NoCreate bool
	// Controller includes behaviors of a resource's controller, which the run must be given.
	Controller bool
	// Shard is the part of the selection to include, "2/5": every fifth behavior, starting with the second. Empty includes all.
	Shard string
}

// Behavior is one behavior of the catalog, with its scheduling constraints.
type Behavior struct {
	v1alpha1.Behavior
	// Files are the files with the containers of its spec, as Ginkgo records them; none if it is in none. See specs.BuildOnly.
	Files []string
	// Serial behaviors do not run in parallel with behaviors that they disturb: those with all features of an element of Disturbs, or all
	// behaviors if it is empty.
	Serial   bool
	Disturbs [][]v1alpha1.Feature
	// Stops is the component that a Serial behavior stops. Those that stop the same one may run in parallel. It is empty for others.
	Stops string
	// OnSpareNode behaviors have a node for themselves: they disturb only each other.
	OnSpareNode bool
	// SharedKind behaviors use a custom kind which the run defines when it starts, and which the garbage collector discovers after up to 30
	// s.
	SharedKind bool
	// Skipped behaviors will be skipped on a cluster, so that they take no time and disturb nothing.
	Skipped bool
}

// Conflicts reports whether two behaviors must not run in parallel.
func (b Behavior) Conflicts(other Behavior) bool { return b.disturbs(other) || other.disturbs(b) }

func (b Behavior) disturbs(other Behavior) bool {
	if b.Skipped || other.Skipped || b.OnSpareNode && !other.OnSpareNode {
		return false
	}
	if b.Stops != "" && b.Stops == other.Stops {
		return false
	}
	return b.Serial && (len(b.Disturbs) == 0 || slices.ContainsFunc(b.Disturbs, other.requires))
}

func (b Behavior) requires(features []v1alpha1.Feature) bool {
	return !slices.ContainsFunc(features, func(feature v1alpha1.Feature) bool { return !slices.Contains(b.Features, feature) })
}

// AwaitsCollector reports whether the behavior waits until the garbage collector discovers a custom kind.
func (b Behavior) AwaitsCollector() bool {
	return b.requires([]v1alpha1.Feature{v1alpha1.CRD, v1alpha1.GC})
}

// Plan is the whole catalog and the selection of a run.
type Plan struct {
	// Catalog contains every behavior, sorted by id.
	Catalog []Behavior
	// LeftOut maps behaviors that are not selected to the reasons, by id.
	LeftOut map[string]string
	// Required are features that the run requires besides those of its behaviors.
	Required []v1alpha1.Feature
	// shard and shards are the number of the shard, from 1, and of all shards. Plans of resources take their part; see For.
	shard, shards int
}

// For returns the plan of a resource. In a shard, it takes another part for each resource, so that no shard has a slow behavior of all
// resources.
func (p Plan) For(resource string) Plan {
	if p.shards == 0 {
		return p
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(resource))                 // never fails
	return p.part(int(hash.Sum32() % uint32(p.shards))) //nolint:gosec // at most 1000
}

// part returns the plan without the behaviors of other shards. Neighbors, which are similar, go to different shards.
func (p Plan) part(shift int) Plan {
	leftOut := maps.Clone(p.LeftOut)
	for i, behavior := range p.Chosen() {
		if (i+shift)%p.shards != p.shard-1 {
			leftOut[behavior.ID] = inOtherShard
		}
	}
	p.LeftOut, p.shards = leftOut, 0
	return p
}

// Filtered returns why a behavior is not selected; empty for selected ones.
func (p Plan) Filtered(id string) string { return p.LeftOut[id] }

const (
	notSelected  = "not selected"
	ofOwnKind    = "not selected: it does not apply to every resource (--resource)"
	creates      = "not selected: it creates objects (--no-create)"
	ofController = "not selected: it requires --controller"
	slow         = "not selected: it is slow and requires --slow"
	inOtherShard = "not selected: it belongs to another shard"
)

// Behavior returns the behavior with an id; the zero value when there is none.
func (p Plan) Behavior(id string) v1alpha1.Behavior {
	at := slices.IndexFunc(p.Catalog, func(behavior Behavior) bool { return behavior.ID == id })
	if at < 0 {
		return v1alpha1.Behavior{}
	}
	return p.Catalog[at].Behavior
}

// IDs returns the ids of the catalog, sorted.
func (p Plan) IDs() []string {
	ids := make([]string, len(p.Catalog))
	for i, behavior := range p.Catalog {
		ids[i] = behavior.ID
	}
	return ids
}

// Chosen returns the selected behaviors, sorted by id.
func (p Plan) Chosen() []Behavior {
	return slices.DeleteFunc(slices.Clone(p.Catalog), func(b Behavior) bool { return p.Filtered(b.ID) != "" })
}

// Requires reports whether the run requires a feature, or a selected behavior.
func (p Plan) Requires(feature v1alpha1.Feature) bool {
	return slices.Contains(p.Required, feature) || slices.ContainsFunc(p.Chosen(), func(b Behavior) bool { return slices.Contains(b.Features, feature) })
}

// Suites returns the names of the suites, sorted.
func (p Plan) Suites() []string {
	var suites []string
	for _, behavior := range p.Catalog {
		if !slices.Contains(suites, behavior.Suite()) {
			suites = append(suites, behavior.Suite())
		}
	}
	return suites
}

// Make applies a selection to the specs that are linked into the program. It fails when the selection is invalid, names an unknown suite
// or label, or selects nothing.
func Make(selection Selection) (Plan, error) {
	if err := selection.check(); err != nil {
		return Plan{}, err
	}
	config, _ := ginkgo.GinkgoConfiguration()
	config.FocusStrings, config.SkipStrings, config.LabelFilter = selection.Focus, selection.Skip, selection.LabelFilter
	plan, known := Plan{LeftOut: map[string]string{}}, labels{}
	for _, spec := range ginkgo.PreviewSpecs("deletion conformance", config).SpecReports {
		plan.add(spec, selection)
		known.add(spec)
	}
	slices.SortFunc(plan.Catalog, func(a, b Behavior) int { return strings.Compare(a.ID, b.ID) })
	suites := plan.Suites()
	for _, suite := range selection.Suites {
		if !slices.Contains(suites, suite) {
			return plan, fmt.Errorf("unknown suite %q; the suites are %s%s", suite, strings.Join(suites, ", "), suggest.Hint(suite, suites))
		}
	}
	if err := known.check(selection.LabelFilter, suites); err != nil {
		return plan, err
	}
	if selection.Shard != "" {
		var err error
		if plan.shard, plan.shards, err = v1alpha1.ParseShard(selection.Shard); err != nil {
			return plan, fmt.Errorf("--shard: %w", err)
		}
		if !selection.AnyResource {
			plan = plan.part(0)
		}
	}
	return plan, plan.checkNotEmpty(selection)
}

// add adds a spec to the catalog if it is a behavior.
func (p *Plan) add(spec types.SpecReport, selection Selection) {
	behavior, ok := specs.BehaviorOf(spec)
	if !ok {
		return
	}
	p.Catalog = append(p.Catalog, Behavior{
		Behavior: behavior, Files: specs.FilesOf(spec), Serial: spec.IsSerial, Disturbs: specs.Disturbed(spec), Stops: specs.Stopped(spec), SharedKind: specs.UsesSharedKind(spec),
	})
	ofSuite := len(selection.Suites) == 0 || slices.Contains(selection.Suites, behavior.Suite())
	switch {
	case !ofSuite || spec.State.Is(types.SpecStateSkipped):
		p.LeftOut[behavior.ID] = notSelected
	case selection.AnyResource && !behavior.AnyResource:
		p.LeftOut[behavior.ID] = ofOwnKind
	case selection.NoCreate && !specs.IsCreatingNothing(spec):
		p.LeftOut[behavior.ID] = creates
	case selection.AnyResource && !selection.Controller && slices.Contains(behavior.Features, v1alpha1.Controller):
		p.LeftOut[behavior.ID] = ofController
	case behavior.Slow && !selection.Slow:
		p.LeftOut[behavior.ID] = slow
	}
}

// checkNotEmpty returns the error and the remedy for an empty selection.
func (p Plan) checkNotEmpty(selection Selection) error {
	if len(p.Chosen()) > 0 {
		return nil
	}
	hint := ""
	switch {
	case slices.ContainsFunc(p.Catalog, func(b Behavior) bool { return p.Filtered(b.ID) == slow }):
		hint = "; slow behaviors require --slow"
	case slices.ContainsFunc(p.Catalog, func(b Behavior) bool { return p.Filtered(b.ID) == creates }):
		hint = "; --no-create selects only behaviors with the label creates-nothing"
	case slices.ContainsFunc(p.Catalog, func(b Behavior) bool { return p.Filtered(b.ID) == ofController }):
		hint = "; behaviors of a controller require --controller"
	case slices.ContainsFunc(p.Catalog, func(b Behavior) bool { return p.Filtered(b.ID) == ofOwnKind }):
		hint = "; --resource selects only behaviors with the label any-resource"
	}
	return fmt.Errorf("the selection (%s) matches none of the %d behaviors; see `runner list`%s", selection, len(p.Catalog), hint)
}

// check returns errors for which Ginkgo would exit.
func (s Selection) check() error {
	for flag, expressions := range map[string][]string{"--focus": s.Focus, "--skip": s.Skip} {
		for _, expression := range expressions {
			if _, err := regexp.Compile(expression); err != nil {
				return fmt.Errorf("%s %q is not a regular expression: %w", flag, expression, err)
			}
		}
	}
	if _, err := types.ParseLabelFilter(s.LabelFilter); err != nil {
		return fmt.Errorf("--label-filter %q is not a label filter: %s", s.LabelFilter, plain(err))
	}
	return nil
}

// plain returns the message of an error of Ginkgo, without colors and hints.
func plain(err error) string {
	said := types.GinkgoError{}
	if !errors.As(err, &said) {
		return err.Error()
	}
	return strings.Join(strings.Fields(formatter.NewWithNoColorBool(true).F(said.Message)), " ")
}

// String returns the selection as flags.
func (s Selection) String() string {
	var flags []string
	add := func(flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				flags = append(flags, fmt.Sprintf("%s %q", flag, value))
			}
		}
	}
	add("--suite", s.Suites...)
	add("--focus", s.Focus...)
	add("--skip", s.Skip...)
	add("--label-filter", s.LabelFilter)
	add("--shard", s.Shard)
	if len(flags) == 0 {
		return "everything"
	}
	return strings.Join(flags, " ")
}

// LabelFilter returns a Ginkgo label filter that matches exactly these behaviors.
func LabelFilter(ids []string) string {
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = regexp.QuoteMeta(id)
	}
	return "/^(" + strings.Join(quoted, "|") + ")$/"
}

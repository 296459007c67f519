// Package plan says what there is to run and what a run takes of it. The catalogue is Ginkgo's own tree of specs, looked
// at without running it; the selection is Ginkgo's too.
package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/specs"
)

// Selection chooses behaviors, as Ginkgo users know it.
type Selection struct {
	// Suites are the suites to take; none means all.
	Suites []string
	// Focus and Skip are regular expressions on the heading and the statement of a behavior.
	Focus, Skip []string
	// LabelFilter is a Ginkgo label filter on id, level and needs.
	LabelFilter string
	// Slow takes slow behaviors, too.
	Slow bool
	// AnyResource takes only what every kind promises.
	AnyResource bool
	// NoCreate takes only what shows without creating anything.
	NoCreate bool
	// Controller takes also what is promised of a controller of that kind, which the run is told of.
	Controller bool
	// Shard is the part to take of what is left, "2/5": every fifth behavior, from the second on. Empty takes all.
	Shard string
}

// Behavior is one behavior of the catalogue, and whether it may run beside others.
type Behavior struct {
	v1alpha1.Behavior
	// Serial behaviors run while nothing does that they disturb: behaviors with all needs of an element of Disturbs, and
	// all behaviors if it is empty.
	Serial   bool
	Disturbs [][]v1alpha1.Feature
	// SharedKind behaviors are tested on a custom kind which the run defines at its beginning, and of which the garbage
	// collector learns after up to 30 s.
	SharedKind bool
}

// Conflicts says whether the two may not run at the same time.
func (b Behavior) Conflicts(other Behavior) bool { return b.disturbs(other) || other.disturbs(b) }

func (b Behavior) disturbs(other Behavior) bool {
	return b.Serial && (len(b.Disturbs) == 0 || slices.ContainsFunc(b.Disturbs, other.needs))
}

func (b Behavior) needs(all []v1alpha1.Feature) bool {
	return !slices.ContainsFunc(all, func(need v1alpha1.Feature) bool { return !slices.Contains(b.Features, need) })
}

// AwaitsCollector says whether the behavior waits until the garbage collector learns of a custom kind.
func (b Behavior) AwaitsCollector() bool {
	return b.needs([]v1alpha1.Feature{v1alpha1.CRD, v1alpha1.GC})
}

// AwaitsNamespace says whether the behavior may wait for the end of a namespace: built-in controllers act on one.
func (b Behavior) AwaitsNamespace() bool {
	return b.needs([]v1alpha1.Feature{v1alpha1.KCM, v1alpha1.Namespace})
}

// Plan is the whole catalogue and what a run takes of it.
type Plan struct {
	// Catalogue holds every behavior, sorted by id.
	Catalogue []Behavior
	// LeftOut says of each behavior that the run leaves out why, by id.
	LeftOut map[string]string
}

// Filtered says why the run leaves a behavior out; it is empty for those it takes.
func (p Plan) Filtered(id string) string { return p.LeftOut[id] }

const (
	notSelected  = "not selected"
	ofOwnKind    = "not selected: it does not apply to every resource (--resource)"
	creates      = "not selected: it creates objects (--no-create)"
	ofController = "not selected: it requires --controller"
	slow         = "not selected: it is slow and requires --slow"
	inOtherShard = "not selected: it belongs to another shard"
)

// Behavior is the behavior of an id; the zero value where there is none.
func (p Plan) Behavior(id string) v1alpha1.Behavior {
	at := slices.IndexFunc(p.Catalogue, func(behavior Behavior) bool { return behavior.ID == id })
	if at < 0 {
		return v1alpha1.Behavior{}
	}
	return p.Catalogue[at].Behavior
}

// Chosen are the behaviors that the run takes, sorted by id.
func (p Plan) Chosen() []Behavior {
	return slices.DeleteFunc(slices.Clone(p.Catalogue), func(b Behavior) bool { return p.Filtered(b.ID) != "" })
}

// Wants says whether something that was chosen has a need.
func (p Plan) Wants(need v1alpha1.Feature) bool {
	return slices.ContainsFunc(p.Chosen(), func(b Behavior) bool { return slices.Contains(b.Features, need) })
}

// Suites are the names of the suites, sorted.
func (p Plan) Suites() []string {
	var suites []string
	for _, behavior := range p.Catalogue {
		if !slices.Contains(suites, behavior.Suite()) {
			suites = append(suites, behavior.Suite())
		}
	}
	return suites
}

// Make looks at the specs that are linked into the program and applies a selection. It fails when the selection cannot
// be read, names a suite that does not exist, or leaves nothing.
func Make(selection Selection) (Plan, error) {
	if err := selection.check(); err != nil {
		return Plan{}, err
	}
	config, _ := ginkgo.GinkgoConfiguration()
	config.FocusStrings, config.SkipStrings, config.LabelFilter = selection.Focus, selection.Skip, selection.LabelFilter
	plan := Plan{LeftOut: map[string]string{}}
	for _, spec := range ginkgo.PreviewSpecs("deletion conformance", config).SpecReports {
		plan.add(spec, selection)
	}
	slices.SortFunc(plan.Catalogue, func(a, b Behavior) int { return strings.Compare(a.ID, b.ID) })
	for _, suite := range selection.Suites {
		if !slices.Contains(plan.Suites(), suite) {
			return plan, fmt.Errorf("unknown suite %q; the suites are %s", suite, strings.Join(plan.Suites(), ", "))
		}
	}
	if err := plan.shard(selection.Shard); err != nil {
		return plan, err
	}
	return plan, plan.checkNotEmpty(selection)
}

// add adds a spec to the catalogue if it is a behavior.
func (p *Plan) add(spec types.SpecReport, selection Selection) {
	behavior, is := specs.BehaviorOf(spec)
	if !is {
		return
	}
	p.Catalogue = append(p.Catalogue, Behavior{
		Behavior: behavior, Serial: spec.IsSerial, Disturbs: specs.Disturbed(spec), SharedKind: specs.UsesSharedKind(spec),
	})
	ofSuite := len(selection.Suites) == 0 || slices.Contains(selection.Suites, behavior.Suite())
	switch {
	case !ofSuite || spec.State.Is(types.SpecStateSkipped):
		p.LeftOut[behavior.ID] = notSelected
	case selection.AnyResource && !specs.IsOfAnyResource(spec):
		p.LeftOut[behavior.ID] = ofOwnKind
	case selection.NoCreate && !specs.IsCreatingNothing(spec):
		p.LeftOut[behavior.ID] = creates
	case selection.AnyResource && !selection.Controller && slices.Contains(behavior.Features, v1alpha1.Controller):
		p.LeftOut[behavior.ID] = ofController
	case behavior.Slow && !selection.Slow:
		p.LeftOut[behavior.ID] = slow
	}
}

// checkNotEmpty says what to do about a selection that takes nothing.
func (p Plan) checkNotEmpty(selection Selection) error {
	if len(p.Chosen()) > 0 {
		return nil
	}
	hint := ""
	switch {
	case slices.ContainsFunc(p.Catalogue, func(b Behavior) bool { return p.Filtered(b.ID) == slow }):
		hint = "; slow behaviors require --slow"
	case slices.ContainsFunc(p.Catalogue, func(b Behavior) bool { return p.Filtered(b.ID) == creates }):
		hint = "; --no-create selects only behaviors with the label creates-nothing"
	case slices.ContainsFunc(p.Catalogue, func(b Behavior) bool { return p.Filtered(b.ID) == ofController }):
		hint = "; behaviors of a controller require --controller"
	case slices.ContainsFunc(p.Catalogue, func(b Behavior) bool { return p.Filtered(b.ID) == ofOwnKind }):
		hint = "; --resource selects only behaviors with the label any-resource"
	}
	return fmt.Errorf("the selection (%s) matches none of the %d behaviors; see `runner list`%s", selection, len(p.Catalogue), hint)
}

// shard leaves all but every n-th of the chosen behaviors to others. Neighbours, which are alike, go to different shards.
func (p Plan) shard(shard string) error {
	if shard == "" {
		return nil
	}
	number, of, err := v1alpha1.ParseShard(shard)
	if err != nil {
		return fmt.Errorf("--shard: %w", err)
	}
	for i, behavior := range p.Chosen() {
		if i%of != number-1 {
			p.LeftOut[behavior.ID] = inOtherShard
		}
	}
	return nil
}

// check finds what Ginkgo would end the program for.
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

// plain is what Ginkgo says is wrong, without its colours and its advice.
func plain(err error) string {
	said := types.GinkgoError{}
	if !errors.As(err, &said) {
		return err.Error()
	}
	return strings.Join(strings.Fields(formatter.NewWithNoColorBool(true).F(said.Message)), " ")
}

// String is the selection as flags.
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

// LabelFilter is a Ginkgo label filter that matches exactly these behaviors.
func LabelFilter(ids []string) string {
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = regexp.QuoteMeta(id)
	}
	return "/^(" + strings.Join(quoted, "|") + ")$/"
}

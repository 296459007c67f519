package cli

import (
	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// selectionFlags choose behaviours.
type selectionFlags struct{ plan.Selection }

func (f *selectionFlags) addTo(set *pflag.FlagSet) {
	set.StringSliceVar(&f.Suites, "suite", nil, "`SUITE` to take, such as cascade, the first part of ids; may be given several times")
	set.StringArrayVar(&f.Focus, "focus", nil, "take behaviours whose text matches this regular `EXPRESSION`; may be given several times")
	set.StringArrayVar(&f.Skip, "skip", nil, "leave out behaviours whose text matches this regular `EXPRESSION`; may be given several times")
	set.StringVar(&f.LabelFilter, "label-filter", "", "take behaviours whose labels match this Ginkgo `FILTER`: an id, a level, or 'needs: containsAny gc'")
	set.BoolVar(&f.Slow, "slow", false, "take slow behaviours, too: they wait a minute or so for the cluster's own clock")
}

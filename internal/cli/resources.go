package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/internal/manifest"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

// resourceFlags are the flags for judging resources of the user's own.
type resourceFlags struct {
	names    []string
	all      bool
	fixtures []string
}

func (f *resourceFlags) addTo(set *pflag.FlagSet) {
	set.StringSliceVar(&f.names, "resource", nil, "`RESOURCE` to judge in the place of ConfigMaps, as widgets.example.com or widgets.example.com/v1; repeatable: each is a column of the reports")
	set.BoolVar(&f.all, "all-resources", false, "judge every resource of which objects can be made and deleted, and say why others are left out, such as those that rule over a cluster: name these with --resource")
	set.StringSliceVar(&f.fixtures, "fixture", nil, "`FILE` with a manifest of the resource, and of what must exist before it; otherwise one is derived (see `runner fixture`)")
}

// given says whether something is to be judged in the place of ConfigMaps.
func (f *resourceFlags) given() bool { return f.all || len(f.names) > 0 }

// resources are what the flags name.
func (f *resourceFlags) resources() (run.Resources, error) {
	if len(f.fixtures) > 0 && !f.given() {
		return run.Resources{}, errors.New("--fixture is for a resource: name that with --resource, or give --all-resources")
	}
	for i, name := range f.names {
		switch {
		case name == "":
			return run.Resources{}, errors.New("--resource names none: `kubectl api-resources` lists those there are")
		case slices.Contains(f.names[:i], name):
			return run.Resources{}, fmt.Errorf("--resource %s is given twice", name)
		}
	}
	resources := run.Resources{Names: f.names, All: f.all}
	for _, file := range f.fixtures {
		documents, err := manifest.Documents(file)
		if err != nil {
			return run.Resources{}, fmt.Errorf("--fixture: %w", err)
		}
		resources.Fixtures = append(resources.Fixtures, documents...)
	}
	return resources, nil
}

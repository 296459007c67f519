package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/manifest"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

const resourceFlag = "resource"

var errNamesNone = errors.New("--resource names none: `kubectl api-resources` lists those there are")

// resourceFlags are the flags for judging resources of the user's own.
type resourceFlags struct {
	set      *pflag.FlagSet
	names    []string
	all      bool
	fixtures []string
	// controller is the Deployment of the resource's controller, and controllerNamespace where that is.
	controller, controllerNamespace string
}

func (f *resourceFlags) addTo(set *pflag.FlagSet) {
	f.set = set
	set.StringSliceVar(&f.names, resourceFlag, nil, "`RESOURCE` to judge in the place of ConfigMaps, as widgets.example.com or widgets.example.com/v1; repeatable: each is a column of the reports")
	set.BoolVar(&f.all, "all-resources", false, "judge every resource of which objects can be made and deleted, and say why others are left out, such as those that rule over a cluster: name these with --resource")
	set.StringSliceVar(&f.fixtures, "fixture", nil, "`FILE` with a manifest of the resource, and of what must exist before it; otherwise one is derived (see `runner fixture`)")
	set.StringVar(&f.controller, "controller", "", "`deploy/NAME` of the Deployment that runs the controller of the resource, which is judged, too: what it does about finalizers and about what it makes (with --disruptive it is scaled to 0 for a while, and the resource is undefined and defined again, unless others have objects of it)")
	set.StringVar(&f.controllerNamespace, "controller-namespace", "", "`NAMESPACE` of that Deployment")
}

// given says whether something is to be judged in the place of ConfigMaps.
func (f *resourceFlags) given() bool { return f.all || len(f.names) > 0 }

// resourceNames are the names that resources can have, with or without a group and a version.
var resourceNames = regexp.MustCompile(`^[[:alnum:]]([-.[:alnum:]]*[[:alnum:]])?(/[[:alnum:]]+)?$`)

// resources are what the flags name.
func (f *resourceFlags) resources() (run.Resources, error) {
	if len(f.fixtures) > 0 && !f.given() {
		return run.Resources{}, errors.New("--fixture is for a resource: name that with --resource, or give --all-resources")
	}
	if f.set.Changed(resourceFlag) && len(f.names) == 0 {
		return run.Resources{}, errNamesNone
	}
	for i, name := range f.names {
		switch {
		case name == "":
			return run.Resources{}, errNamesNone
		case !resourceNames.MatchString(name):
			return run.Resources{}, fmt.Errorf("--resource %q cannot be the name of one: write it as widgets.example.com or widgets.example.com/v1", name)
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

// controllerNamed is the controller that the flags name; none where they do not.
func (f *resourceFlags) controllerNamed() (session.Controller, error) {
	switch {
	case f.controller == "" && f.controllerNamespace == "":
		return session.Controller{}, nil
	case f.controller == "":
		return session.Controller{}, errors.New("--controller-namespace is that of a controller: name it with --controller deploy/NAME")
	case f.all || len(f.names) != 1:
		return session.Controller{}, errors.New("--controller is that of one resource: name it with --resource, one a run, as others cannot be judged while it is stopped")
	case f.controllerNamespace == "":
		return session.Controller{}, fmt.Errorf("--controller %s is in a namespace: name it with --controller-namespace", f.controller)
	}
	return session.ParseController(f.controller, f.controllerNamespace)
}

// Package projects tests the custom resources of well-known projects with the behaviors of every resource, and writes docs/projects.md and
// claims. If a project's controllers can be built, its resources are tested once more with running controllers. projects.yaml contains the
// projects and versions. The definitions come from the Go module proxy.
package projects

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
)

// document is the generated document.
const document = "docs/projects.md"

// Survey declares the flags of the survey.
func Survey(flags *flag.FlagSet) func(context.Context, []string) error {
	again := flags.Bool("again", false, "test nothing, and write "+document+" of the reports that there are: after an explanation was added")
	return func(ctx context.Context, arguments []string) error { return run(ctx, *again, arguments) }
}

func run(ctx context.Context, again bool, arguments []string) error {
	chosen, err := readProjects()
	if err != nil {
		return err
	}
	for i := range chosen.Projects {
		if err := chosen.Projects[i].download(ctx); err != nil {
			return err
		}
	}
	controlled, tables := chosen.withControllers(), map[bool]table{}
	for _, part := range []projects{controlled, chosen} {
		var tested v1alpha1.Report
		if again {
			tested, err = runnertest.Report(part.reportFolder())
		} else {
			tested, err = part.test(ctx, arguments)
		}
		if err != nil {
			return err
		}
		table := tableOf(tested, part)
		table.print(os.Stdout)
		tables[part.controlled] = table
	}
	problems := slices.Concat(tables[false].problems, tables[true].problems)
	if len(arguments) > 0 {
		return errors.Join(problems...)
	}
	explored, err := controlled.explored()
	if err != nil {
		return err
	}
	explored.print(os.Stdout)
	if err := lab.WriteDocument(document, markdown(tables[false], tables[true], explored)); err != nil {
		return err
	}
	return errors.Join(append(problems, explored.problems...)...)
}

// reportFolder is the directory of the reports.
func (p projects) reportFolder() string {
	if p.controlled {
		return filepath.Join(lab.Bin, "projects-controlled")
	}
	return filepath.Join(lab.Bin, "projects")
}

// test tests the resources on an embedded cluster, with controllers if required.
func (p projects) test(ctx context.Context, arguments []string) (tested v1alpha1.Report, err error) {
	cluster, err := lab.Start(ctx)
	if err != nil {
		return tested, err
	}
	kubeconfig := cluster.Kubeconfig()
	defer func() { err = errors.Join(err, cluster.Destroy()) }()
	if err := p.define(ctx, cluster.RESTConfig()); err != nil {
		return tested, err
	}
	if p.controlled {
		stop, started := p.startControllers(ctx, kubeconfig, cluster.RESTConfig())
		if started != nil {
			return tested, started
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if p.controlled && len(arguments) == 0 {
		if err := errors.Join(p.claim(ctx, kubeconfig), p.explore(ctx, kubeconfig)); err != nil {
			return tested, err
		}
	}
	where := []string{"--kubeconfig", kubeconfig, "--procs", "8", "--resource", strings.Join(p.resources(), ",")}
	return lab.Run(ctx, p.reportFolder(), append(where, arguments...)...)
}

// claim writes a claim about one resource of each project with controllers.
func (p projects) claim(ctx context.Context, kubeconfig string) error {
	for _, project := range p.Projects {
		name := strings.ToLower(strings.ReplaceAll(project.Name, " ", "-"))
		reports := filepath.Join(lab.Bin, "projects-claimed", name)
		if _, err := lab.Run(ctx, reports, "--kubeconfig", kubeconfig, "--slow", "--redact",
			"--resource", project.Controllers.Claimed); err != nil {
			return err
		}
		if err := lab.Claim(reports, name, strings.TrimPrefix(project.Version, "v"), "make projects"); err != nil {
			return err
		}
	}
	return nil
}

// exploration is how long the controllers of a resource are explored.
const exploration = "2m"

// explore explores the controllers of each project.
func (p projects) explore(ctx context.Context, kubeconfig string) error {
	for _, resource := range p.resourcesToExplore() {
		if _, err := lab.Run(ctx, exploredFolder(resource), "explore", "--kubeconfig", kubeconfig,
			"--scenario", "operator", "--resource", resource, "--for", exploration); err != nil {
			return err
		}
	}
	return nil
}

// explored returns the table of the last explorations.
func (p projects) explored() (table, error) {
	var whole table
	for _, resource := range p.resourcesToExplore() {
		tested, err := runnertest.Report(exploredFolder(resource))
		if err != nil {
			return whole, err
		}
		one := tableOf(tested, p)
		whole.rows, whole.problems, whole.took = append(whole.rows, one.rows...), append(whole.problems, one.problems...), whole.took+one.took
	}
	return whole, nil
}

// resourcesToExplore are the resources whose controllers are explored.
func (p projects) resourcesToExplore() (resources []string) {
	for _, project := range p.Projects {
		resources = append(resources, project.Controllers.Explored...)
	}
	return resources
}

// exploredFolder is the directory of the reports of an exploration.
func exploredFolder(resource string) string {
	return filepath.Join(lab.Bin, "projects-explored", resource)
}

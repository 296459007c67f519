// Command mutation shows that the suites fail when Kubernetes breaks its promises. It builds mutants into a copy of Kubernetes' source,
// runs behaviors against each one, and prints which of them failed. It ends with two lists that must be empty: behaviors that killed no
// mutant, and mutants that survived.
//
//	go run ./test/mutation                  # all of them, and a control without a mutant
//	go run ./test/mutation 'grace/*' node/grace-ignored
//	go run ./test/mutation -only-named      # run only the behaviors that must kill it
//	go run ./test/mutation -again           # go on after an interruption
//	go run ./test/mutation -faults 7        # with network faults, and this random seed
//	go run ./test/mutation -fix 141329      # those that reverse this fix of Kubernetes
//	go run ./test/mutation -list
//	go run ./test/mutation -explore 3       # explore those of histories/ with three seeds each, instead
//
// A mutant is a file below mutants/. All are built into one binary, because a build takes minutes. The binary reads the name of the
// active mutant from a file next to it, again and again, so that mutants share running clusters, one after the other.
// The results of a run are in bin/mutation/runs/NAME; the runner there runs with that mutant again.
// exempt.yaml lists the behaviors that no mutant can make fail.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// workFolder is the directory of builds and reports, below the repository's root.
const workFolder = "bin/mutation"

var errUnproved = errors.New("not every list is empty")

// options are the values of the flags.
type options struct {
	list, onlyNamed, everything, again bool
	write                              bool
	sideBySide, fix                    int
	seed                               string
	buildTime                          time.Duration
	faults                             uint64
	seeds                              int
	patterns                           []string
}

func main() {
	reexec.Init(map[string]func() error{
		workers.Command:         workers.Main,
		embedded.SandboxCommand: func() error { return embedded.Sandbox(os.Stdin, os.Stdout) },
	})
	flag, o := flag.NewFlagSet("mutation", flag.ExitOnError), options{} // Ginkgo has registered its flags on the common flag set
	flag.BoolVar(&o.list, "list", false, "list the mutants and the behaviors that none of them names, and run nothing")
	flag.IntVar(&o.fix, "fix", 0, "run the mutants that reverse the fix of this `PULL` request in kubernetes/kubernetes")
	flag.BoolVar(&o.write, "write", false, "write "+fixesOfBehaviors+" and "+trackRecord+", and run nothing")
	flag.BoolVar(&o.onlyNamed, "only-named", false, "run against each mutant exactly the behaviors that must kill it, and not their whole topics")
	flag.BoolVar(&o.everything, "everything", false, "run everything against each mutant")
	flag.BoolVar(&o.again, "again", false, "do not repeat runs that the same binaries have reported before")
	flag.IntVar(&o.sideBySide, "side-by-side", 0,
		"how many runs go on at the same time, and as many that mostly wait (default one for each core; with -explore one)")
	flag.StringVar(&o.seed, "sample", "", "run the mutants that the change touches, and a handful chosen by this random `SEED`, for two minutes with -only-named")
	flag.DurationVar(&o.buildTime, "build-within", 0, "run nothing when the build of Kubernetes takes longer; the next one goes on where it was stopped")
	flag.Uint64Var(&o.faults, "faults", 0, "inject network faults with this random `SEED`, and leave out what needs a node; 0 for none")
	flag.IntVar(&o.seeds, "explore", 0, "explore each mutant of concurrency and memory with `N` seeds, instead of running behaviors")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.Output(), "usage: go run ./test/mutation [FLAG...] [NAME|GLOB...]   in the repository's root")
		flag.PrintDefaults()
	}
	_ = flag.Parse(os.Args[1:]) // it exits on errors
	klog.SetLogger(logr.Discard())
	o.patterns = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

// scope selects the behaviors that are run against each mutant.
func (o options) scope() scope {
	switch {
	case o.everything:
		return everything
	case o.onlyNamed, o.seed != "":
		return onlyNamed
	}
	return topics
}

func (o options) run(ctx context.Context) error {
	if o.onlyNamed && o.everything || o.sideBySide < 0 {
		return errors.New("-only-named and -everything are mutually exclusive, and -side-by-side must not be negative")
	}
	if o.again && o.faults > 0 {
		return errors.New("-again and -faults are mutually exclusive")
	}
	if o.seeds > 0 {
		return o.exploreHistories(ctx)
	}
	known, err := readKnown()
	if err != nil {
		return err
	}
	if o.write {
		return known.write()
	}
	chosen, err := o.chosen(known)
	if err != nil {
		return err
	}
	if o.list {
		known.list(os.Stdout, chosen)
		return nil
	}
	folder, err := filepath.Abs(workFolder)
	if err != nil {
		return err
	}
	chosen, known.catalog = o.withoutNode(chosen, known.catalog)
	planted := known.mutants
	if o.seed != "" { // a build with all mutants takes minutes more
		chosen = o.sampled(ctx, chosen, known.catalog)
		planted = chosen
	}
	recipe, err := recipeOf(ctx, planted)
	if err != nil {
		return err
	}
	laboratory := laboratory{folder: folder, faults: o.faults}
	switch late, err := o.build(ctx, laboratory, recipe); {
	case err != nil:
		return err
	case late:
		fmt.Printf("no mutant was run: building Kubernetes with mutants takes longer than %s; the next build resumes\n", o.buildTime)
		fmt.Println("0 passed, 0 failed, 1 skipped")
		return nil
	}
	return o.test(ctx, laboratory, known, chosen)
}

// chosen returns the mutants that the patterns or the fix select.
func (o options) chosen(known known) ([]Mutant, error) {
	switch {
	case o.fix != 0 && len(o.patterns) > 0:
		return nil, errors.New("-fix and names of mutants are mutually exclusive")
	case o.fix != 0:
		return known.fixes.reversing(known.mutants, o.fix)
	}
	return choose(known.mutants, o.patterns)
}

// sampled returns the mutants that a change touches, and those that are drawn.
func (o options) sampled(ctx context.Context, mutants []Mutant, catalog []plan.Behavior) []Mutant {
	files, err := changedFiles(ctx, ".")
	if err != nil {
		fmt.Println("without the mutants that the change touches:", err)
	}
	first := touched(mutants, catalog, files)
	fmt.Printf("%d mutants that the change touches come first\n", len(first))
	isFirst := func(m Mutant) bool {
		return slices.ContainsFunc(first, func(f Mutant) bool { return f.Name == m.Name })
	}
	return append(first, slices.DeleteFunc(sample(mutants, catalog, o.seed, o.series()), isFirst)...)
}

// build builds what is missing, and reports whether it was stopped because it took too long.
func (o options) build(ctx context.Context, l laboratory, recipe recipe) (late bool, err error) {
	limited := ctx
	if o.buildTime > 0 {
		var stop context.CancelFunc
		limited, stop = context.WithTimeout(ctx, o.buildTime)
		defer stop()
	}
	if err = l.build(limited, recipe); err != nil && limited.Err() != nil && ctx.Err() == nil {
		return true, nil
	}
	return false, err
}

func (o options) series() series {
	return series{sideBySide: cmp.Or(o.sideBySide, runtime.NumCPU()), again: o.again, out: os.Stdout}
}

// test runs the chosen mutants.
func (o options) test(ctx context.Context, l laboratory, known known, chosen []Mutant) error {
	s := o.series()
	limited := ctx
	if o.seed != "" {
		fmt.Printf("a sample of %d mutants, chosen by the seed %s (-sample %s chooses the same)\n", len(chosen), o.seed, o.seed)
		var stop context.CancelFunc
		limited, stop = context.WithTimeout(ctx, sampleTime)
		defer stop()
	}
	s.experiments = experiments(chosen, known.catalog, o.scope())
	outcomes := s.test(limited, l)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d runs: -again goes on from there", len(outcomes), len(s.experiments))
	}
	expected := idsOf(known.catalog)
	if o.seed != "" || len(o.patterns) > 0 || o.fix != 0 {
		expected = namedBy(outcomes)
	}
	conclusion := conclude(outcomes, expected, known.exempt)
	conclusion.write(os.Stdout)
	passed := 0
	for _, outcome := range outcomes {
		if outcome.asExpected() {
			passed++
		}
	}
	if limited.Err() != nil {
		fmt.Printf("\nnot run, as a sample ends after %s: %s\n", sampleTime, strings.Join(notRun(s.experiments, outcomes), ", "))
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped\n", passed, len(outcomes)-passed, len(s.experiments)-len(outcomes))
	if !conclusion.holds() {
		return fmt.Errorf("%w (reports in %s)", errUnproved, l.path("runs", "NAME", "reports"))
	}
	return nil
}

// notRun returns the names of the experiments without an outcome.
func notRun(all []experiment, ended []outcome) []string {
	var names []string
	for _, e := range all {
		if !slices.ContainsFunc(ended, func(o outcome) bool { return o.mutant.Name == e.mutant.Name }) {
			names = append(names, e.mutant.Name)
		}
	}
	return names
}

// withoutNode drops mutants and behaviors that require a node, with a message, when there cannot be one.
func (o options) withoutNode(mutants []Mutant, catalog []plan.Behavior) ([]Mutant, []plan.Behavior) {
	unsupported := embedded.NodeSupported()
	if o.faults > 0 {
		unsupported = errors.New("a node does not go through the proxy that injects network faults")
	}
	if unsupported == nil {
		return mutants, catalog
	}
	fmt.Println("without what needs a node:", unsupported)
	return slices.DeleteFunc(slices.Clone(mutants), func(d Mutant) bool { return d.Node }),
		slices.DeleteFunc(slices.Clone(catalog), requiresNode)
}

// idsOf returns the behaviors' ids.
func idsOf(behaviors []plan.Behavior) []string {
	ids := make([]string, len(behaviors))
	for i, behavior := range behaviors {
		ids[i] = behavior.ID
	}
	return ids
}

// namedBy returns the behaviors that must kill the mutants that ran.
func namedBy(outcomes []outcome) []string {
	var ids []string
	for _, outcome := range outcomes {
		ids = append(ids, outcome.mutant.KilledBy...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

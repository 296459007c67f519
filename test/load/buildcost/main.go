// Command buildcost builds the runner without Go's cache and prints what each dependency costs: the processor time of its compiler, and the
// size of its symbols in the binary.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	shown := flag.Int("top", 25, "number of modules to print")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *shown)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "buildcost: %v\n", err)
		os.Exit(1)
	}
}

// cost is what a module costs.
type cost struct {
	module   string
	packages int
	compiler time.Duration
	bytes    int64
}

const program = "./cmd/runner"

func run(ctx context.Context, shown int) (err error) {
	dir, err := os.MkdirTemp("", "buildcost-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	graph, binary := filepath.Join(dir, "graph.json"), filepath.Join(dir, "runner")
	if _, err := goTool(ctx, "GOCACHE="+filepath.Join(dir, "cache"), "build", "-debug-actiongraph="+graph, "-o", binary, program); err != nil {
		return err
	}
	modules, err := modulesOf(ctx)
	if err != nil {
		return err
	}
	costs := map[string]*cost{}
	of := func(pkg string) *cost {
		module, ok := modules[pkg]
		if !ok {
			module = "the standard library"
		}
		if costs[module] == nil {
			costs[module] = &cost{module: module}
		}
		return costs[module]
	}
	if err := addCompiler(graph, of); err != nil {
		return err
	}
	if err := addSymbols(ctx, binary, modules, of); err != nil {
		return err
	}
	return printCosts(costs, shown)
}

// goTool runs a go command with a variable in its environment and returns its output.
func goTool(ctx context.Context, variable string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Env = append(os.Environ(), variable)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", arguments[0], err, &stderr)
	}
	return output, nil
}

// modulesOf returns the modules of the packages that are linked into the runner; those of the standard library are missing.
func modulesOf(ctx context.Context) (map[string]string, error) {
	listed, err := goTool(ctx, "GOFLAGS="+os.Getenv("GOFLAGS"), "list", "-deps", "-f", "{{with .Module}}{{$.ImportPath}} {{.Path}}{{end}}", program)
	if err != nil {
		return nil, err
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		if pkg, module, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			modules[pkg] = module
		}
	}
	return modules, nil
}

// addCompiler adds the processor time of compilers, from the actions of the go command.
func addCompiler(graph string, of func(pkg string) *cost) error {
	content, err := os.ReadFile(graph)
	if err != nil {
		return err
	}
	var actions []struct {
		Mode, Package   string
		CmdUser, CmdSys time.Duration
	}
	if err := json.Unmarshal(content, &actions); err != nil {
		return err
	}
	for _, action := range actions {
		if action.Mode == "build" {
			cost := of(action.Package)
			cost.packages++
			cost.compiler += action.CmdUser + action.CmdSys
		}
	}
	return nil
}

// addSymbols adds the sizes of symbols. The name of a symbol begins with its package.
func addSymbols(ctx context.Context, binary string, modules map[string]string, of func(pkg string) *cost) error {
	listed, err := goTool(ctx, "LC_ALL=C", "tool", "nm", "-size", binary)
	if err != nil {
		return err
	}
	scanner := bufio.NewScanner(bytes.NewReader(listed))
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 4 {
			continue
		}
		size, err := strconv.ParseInt(fields[len(fields)-3], 10, 64)
		if err != nil {
			continue // a symbol whose name contains spaces
		}
		of(packageOf(fields[len(fields)-1], modules)).bytes += size
	}
	return scanner.Err()
}

// packageOf returns the package of a symbol: the longest beginning that ends before a dot and is a package.
func packageOf(symbol string, modules map[string]string) string {
	symbol = strings.TrimPrefix(symbol, "type:")
	symbol = strings.TrimLeft(symbol, "*[].")
	for end := strings.LastIndexByte(symbol, '.'); end > 0; end = strings.LastIndexByte(symbol[:end], '.') {
		if _, ok := modules[symbol[:end]]; ok {
			return symbol[:end]
		}
	}
	return ""
}

// printCosts prints the modules with the most processor time.
func printCosts(costs map[string]*cost, shown int) error {
	var all []*cost
	total := &cost{module: "all"}
	for _, one := range costs {
		all = append(all, one)
		total.packages, total.compiler, total.bytes = total.packages+one.packages, total.compiler+one.compiler, total.bytes+one.bytes
	}
	slices.SortFunc(all, func(a, b *cost) int { return int(b.compiler - a.compiler) })
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "module\tpackages\tcompiler, s\tMB\t")
	for _, one := range append([]*cost{total}, all[:min(shown, len(all))]...) {
		fmt.Fprintf(out, "%s\t%d\t%.1f\t%.1f\t\n", one.module, one.packages, one.compiler.Seconds(), float64(one.bytes)/1e6)
	}
	return out.Flush()
}

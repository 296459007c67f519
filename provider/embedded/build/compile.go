package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// stopTime limits how long a stopped go command may take to clean up.
const stopTime = 10 * time.Second

// goTool is the Go toolchain.
type goTool struct {
	path string
	// settings is the output of go env for everything that affects the build.
	settings string
	// environment is added to that of every go command.
	environment []string
}

// CompilerFlags apply to every package: without paths of this machine; without debug information, which the linker drops anyway and which is a
// twelfth of the compiler's work; and without inlining, a sixth of it, which saves the suites no measurable time outside of Go's own packages.
// The Makefile uses the same flags, so that Go compiles packages of the runner and Kubernetes only once.
var CompilerFlags = []string{"-trimpath", "-gcflags=all=-dwarf=false -l", "-gcflags=std=-dwarf=false"}

// compilerMemory reduces the garbage collection of the compiler, otherwise a sixth of its work. A GOGC of the user takes precedence. The
// Makefile uses the same value.
const compilerMemory = "GOGC=400"

// withoutCompilerFlags removes these flags from GOFLAGS, because they are always given.
var withoutCompilerFlags = func() *strings.Replacer {
	var pairs []string
	for _, flag := range CompilerFlags {
		if strings.Contains(flag, " ") {
			flag = "'" + flag + "'"
		}
		pairs = append(pairs, " "+flag, "", flag+" ", "", flag, "")
	}
	return strings.NewReplacer(pairs...)
}()

// findGo finds the toolchain in PATH and reads its version and settings for the directory.
func findGo(ctx context.Context, dir string, environment ...string) (goTool, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return goTool{}, errors.New("no Go toolchain in PATH: install it from https://go.dev/dl or your distribution")
	}
	tool := goTool{path: path, environment: environment}
	settings, err := tool.output(ctx, dir, "env", "-json",
		"GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFIPS140", "GOFLAGS")
	if err != nil {
		return goTool{}, err
	}
	tool.settings = withoutCompilerFlags.Replace(string(settings))
	return tool, nil
}

// command returns a go command for the directory. It has its own process group, so that Ctrl-C in a terminal does not reach it directly;
// the end of the context interrupts it and its children.
func (t goTool) command(ctx context.Context, dir string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, t.path, arguments...)
	command.Dir = dir
	command.Env = slices.Concat([]string{compilerMemory}, os.Environ(), []string{"PWD=" + dir, "CGO_ENABLED=0", "GOWORK=off"}, t.environment)
	inOwnGroup(command)
	command.WaitDelay = stopTime
	return command
}

// output runs a go command and returns its output, even when it fails.
func (t goTool) output(ctx context.Context, dir string, arguments ...string) ([]byte, error) {
	command := t.command(ctx, dir, arguments...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return output, fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, strings.TrimSpace(stderr.String()))
	}
	return output, nil
}

// compile builds the module into the directory of the version. The binary appears under its name when it is complete.
func (b build) compile(ctx context.Context, module module, progress *progress) error {
	unfinished, err := os.MkdirTemp(b.dir, ".building-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	module.temporary = unfinished // an interrupted go command leaves its files

	needed, err := module.run(ctx, progress, "list", append(module.flags(b, nil), "-deps", b.path())...)
	if err != nil {
		return err
	}
	progress.expect(bytes.Count(needed, []byte("\n")))
	built := filepath.Join(unfinished, b.name)
	build := append(module.flags(b, module.released(ctx)), "-v", "-o", built, b.path())
	if _, err := module.run(ctx, progress, "build", build...); err != nil {
		return err
	}
	return os.Rename(built, filepath.Join(b.dir, b.name))
}

// path is the path of the target's package in the module.
func (t target) path() string { return "./" + t.folder }

// run runs a go command in the module, passes its messages to the progress and returns its standard output. The error of a failed command
// ends with its last lines.
func (m module) run(ctx context.Context, progress *progress, verb string, arguments ...string) ([]byte, error) {
	command := m.tool.command(ctx, m.dir, append([]string{verb}, arguments...)...)
	command.Env = append(command.Env, "GOTMPDIR="+m.temporary)
	var stdout bytes.Buffer
	command.Stdout = &stdout
	lines := &lineWriter{each: progress.line}
	command.Stderr = lines
	err := command.Run()
	lines.flush()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", verb, m.dir, err, progress.tail())
	}
	return stdout.Bytes(), nil
}

// flags returns the flags for go list and go build in this module.
func (m module) flags(b build, released map[string]string) []string {
	flags := buildFlags(b.version, released, b.tags...)
	if m.generated {
		flags = append(flags, "-mod=mod")
	}
	return flags
}

// buildFlags returns the flags that affect the binary. They set the version as Kubernetes' own build does; otherwise a server reports
// v0.0.0-master.
func buildFlags(version *version.Version, released map[string]string, more ...string) []string {
	tags := append([]string{"providerless"}, more...) // until 1.30: exclude the cloud providers, which are not needed
	if version.Minor() < 34 {
		tags = append(tags, "kubernetes_before_1_34")
	}
	values := map[string]string{
		"gitVersion":   tag(version),
		"gitMajor":     "1",
		"gitMinor":     fmt.Sprint(version.Minor()),
		"gitTreeState": "clean",
	}
	for name, value := range released {
		values[name] = value
	}
	linker := []string{"-s", "-w"}
	for _, holder := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, name := range sortedKeys(values) {
			linker = append(linker, fmt.Sprintf("-X %s.%s=%s", holder, name, values[name]))
		}
	}
	return slices.Concat(CompilerFlags, []string{"-tags=" + strings.Join(tags, ","), "-ldflags=" + strings.Join(linker, " ")})
}

// released returns what the module proxy knows about the release besides its version: its time and, if recorded, its commit.
func (m module) released(ctx context.Context) map[string]string {
	output, err := m.tool.output(ctx, m.dir, "list", "-m", "-json", kubernetesModule)
	if err != nil {
		return nil // only the date and the commit are missing; a module that cannot be read fails the build
	}
	var release struct {
		Time   time.Time
		Origin struct{ Hash string }
	}
	if err := json.Unmarshal(output, &release); err != nil {
		return nil
	}
	known := map[string]string{}
	if !release.Time.IsZero() {
		known["buildDate"] = release.Time.UTC().Format(time.RFC3339)
	}
	if release.Origin.Hash != "" {
		known["gitCommit"] = release.Origin.Hash
	}
	return known
}

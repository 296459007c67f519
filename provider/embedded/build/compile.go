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

// stopTime is how long a stopped go command may take to clean up after itself.
const stopTime = 10 * time.Second

// goTool is the Go toolchain that builds.
type goTool struct {
	path string
	// settings are what go env says about everything that changes what is built.
	settings string
}

// compilerFlags are how every package is compiled: without paths of this machine, and without what only a debugger reads,
// which the linker leaves out anyway and which is a twelfth of the compiler's work. The Makefile has them, too, so that
// Go compiles once what the runner and Kubernetes share.
var compilerFlags = []string{"-trimpath", "-gcflags=all=-dwarf=false"}

// compilerMemory lets the compiler have more memory before it looks what of it is garbage, which is a sixth of its work
// otherwise. Whoever sets GOGC keeps what they say. The Makefile has it, too.
const compilerMemory = "GOGC=400"

// withoutCompilerFlags leaves them out of settings, as they are always given here, whoever else wants them.
var withoutCompilerFlags = func() *strings.Replacer {
	var pairs []string
	for _, flag := range compilerFlags {
		pairs = append(pairs, " "+flag, "", flag+" ", "", flag, "")
	}
	return strings.NewReplacer(pairs...)
}()

// findGo finds the toolchain in PATH and asks it for its version and settings as they are in the directory.
func findGo(ctx context.Context, dir string) (goTool, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return goTool{}, errors.New("no Go toolchain in PATH: install it from https://go.dev/dl or your distribution")
	}
	tool := goTool{path: path}
	settings, err := tool.output(ctx, dir, "env", "-json",
		"GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFIPS140", "GOFLAGS")
	if err != nil {
		return goTool{}, err
	}
	tool.settings = withoutCompilerFlags.Replace(string(settings))
	return tool, nil
}

// command is a go command in the directory. It has a process group of its own, so that a terminal's Ctrl-C does not reach
// it behind the back of the context, whose end interrupts it and everything it has started.
func (t goTool) command(ctx context.Context, dir string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, t.path, arguments...)
	command.Dir = dir
	command.Env = slices.Concat([]string{compilerMemory}, os.Environ(), []string{"PWD=" + dir, "CGO_ENABLED=0", "GOWORK=off"})
	inOwnGroup(command)
	command.WaitDelay = stopTime
	return command
}

// output runs a go command and returns what it printed, also when it failed.
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

// compile builds the module into the directory of the version. The binary appears under its name when it is whole.
func (b build) compile(ctx context.Context, module module, progress *progress) error {
	unfinished, err := os.MkdirTemp(b.dir, ".building-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	module.temporary = unfinished // a go command that is interrupted leaves its files

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

// run runs a go command in the module, tells the progress what it says and returns its standard output. The error of
// one that fails ends with the last lines it said.
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

// flags are the flags of go list and go build in this module.
func (m module) flags(b build, released map[string]string) []string {
	flags := buildFlags(b.version, released, b.tags...)
	if m.generated {
		flags = append(flags, "-mod=mod")
	}
	return flags
}

// buildFlags are the flags that change what is built. The version is stamped in the way Kubernetes' own build does it;
// without that a server calls itself v0.0.0-master.
func buildFlags(version *version.Version, released map[string]string, more ...string) []string {
	tags := append([]string{"providerless"}, more...) // until 1.30: leave the cloud providers out, as nothing here can use them
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
	return slices.Concat(compilerFlags, []string{"-tags=" + strings.Join(tags, ","), "-ldflags=" + strings.Join(linker, " ")})
}

// released says what the module proxy knows about the release beside its version: when it was made and, where the
// proxy records it, from which commit.
func (m module) released(ctx context.Context) map[string]string {
	output, err := m.tool.output(ctx, m.dir, "list", "-m", "-json", kubernetesModule)
	if err != nil {
		return nil // only the date and the commit are lost; a module that cannot be read fails the build itself
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

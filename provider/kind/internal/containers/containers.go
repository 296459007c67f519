// Package containers calls the container runtime of this machine that kind uses, by its command line.
package containers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"
)

// ChoiceVariable is the environment variable with which users of kind select a container runtime.
const ChoiceVariable = "KIND_EXPERIMENTAL_PROVIDER"

// Runtime is a usable container runtime.
type Runtime struct {
	// Name is the name of its command, such as docker.
	Name string
	// ForKind makes kind use it.
	ForKind cluster.ProviderOption
}

// all are the runtimes that kind supports, the most common first. Finch, and nerdctl in a virtual machine, are used only when selected.
func all() []Runtime {
	return []Runtime{
		{"docker", cluster.ProviderWithDocker()},
		{"podman", cluster.ProviderWithPodman()},
		{"nerdctl", cluster.ProviderWithNerdctl("nerdctl")},
		{"finch", cluster.ProviderWithNerdctl("finch")},
		{"nerdctl.lima", cluster.ProviderWithNerdctl("nerdctl.lima")},
	}
}

// unasked is how many of them are used without being selected.
const unasked = 3

// Find returns the runtime that the user selected, or the first usable one. The error contains what to install or to start.
func Find(ctx context.Context) (Runtime, error) {
	choice := os.Getenv(ChoiceVariable)
	if choice == "" {
		return firstResponding(ctx, all()[:unasked])
	}
	runtime, err := Named(ctx, choice)
	if errors.Is(err, errUnknown) {
		err = fmt.Errorf("%s=%s: %w", ChoiceVariable, choice, err)
	}
	return runtime, err
}

// errUnknown is the error for an unknown runtime.
var errUnknown = errors.New("kind does not support it; use docker, podman or nerdctl")

// Named returns the runtime with a name, if it is usable.
func Named(ctx context.Context, name string) (Runtime, error) {
	for _, candidate := range all() {
		if candidate.Name == name {
			return firstResponding(ctx, []Runtime{candidate})
		}
	}
	return Runtime{}, errUnknown
}

func firstResponding(ctx context.Context, candidates []Runtime) (Runtime, error) {
	var silent error
	for _, candidate := range candidates {
		if _, err := exec.LookPath(candidate.Name); err != nil {
			continue
		}
		err := candidate.answers(ctx)
		if err == nil || ctx.Err() != nil {
			return candidate, ctx.Err()
		}
		silent = cmp.Or(silent, err)
	}
	return Runtime{}, cmp.Or(silent, missing(candidates))
}

func missing(candidates []Runtime) error {
	var names []string
	for _, candidate := range candidates {
		names = append(names, candidate.Name)
	}
	return fmt.Errorf("kind's nodes are containers, and no %s is in PATH: install Docker (https://docs.docker.com/engine/install)",
		strings.Join(names, ", "))
}

// answers returns nil when the runtime is usable.
func (r Runtime) answers(ctx context.Context) error {
	if err := r.run(ctx, "ps", "--quiet"); err != nil {
		return fmt.Errorf("%s cannot be used: %w; start it, and check that this user may use it", r.Name, err)
	}
	return nil
}

// Has reports whether the machine has an image.
func (r Runtime) Has(ctx context.Context, image string) bool {
	return r.run(ctx, "image", "inspect", "--format", "{{.Id}}", withoutTag(image)) == nil
}

// Pull pulls an image.
func (r Runtime) Pull(ctx context.Context, image string) error {
	return r.run(ctx, "pull", "--quiet", withoutTag(image))
}

// withoutTag removes the tag of an image that has a digest too, because podman accepts only one of them.
func withoutTag(image string) string {
	name, digest, ok := strings.Cut(image, "@")
	if !ok {
		return image
	}
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	return name + "@" + digest
}

// Save writes images to an archive.
func (r Runtime) Save(ctx context.Context, archive string, images ...string) error {
	return r.run(ctx, append([]string{"save", "--output", archive}, images...)...)
}

// Created returns when a container was created.
func (r Runtime) Created(ctx context.Context, container string) (time.Time, error) {
	output, err := r.output(ctx, "container", "inspect", "--format", "{{json .Created}}", container)
	if err != nil {
		return time.Time{}, err
	}
	var created time.Time
	if err := json.Unmarshal(output, &created); err != nil {
		return time.Time{}, fmt.Errorf("%s does not report when %s was created: %w", r.Name, container, err)
	}
	return created, nil
}

// run runs a command of the runtime.
func (r Runtime) run(ctx context.Context, arguments ...string) error {
	_, err := r.output(ctx, arguments...)
	return err
}

// output runs a command of the runtime and returns its output. The error is the last line about an error.
func (r Runtime) output(ctx context.Context, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, r.Name, arguments...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	printed, err := command.Output()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
		return printed, nil
	}
	if message := LastLine(stderr.Bytes()); message != "" {
		err = errors.New(message)
	}
	return nil, fmt.Errorf("%s %s: %w", r.Name, arguments[0], err)
}

// complaint matches how commands introduce errors, such as "error execution phase preflight: ...".
var complaint = regexp.MustCompile(`(?i)(^|\W)error( [\w-]+)*\]?: `)

// LastLine returns the last line about an error in a command's output, or else the last line that is not empty.
func LastLine(printed []byte) string {
	last, failure := "", ""
	for line := range bytes.Lines(printed) {
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "Run '") { // docker's hint about its help
			continue
		}
		last = text
		if complaint.MatchString(text) {
			failure = text
		}
	}
	return cmp.Or(failure, last)
}

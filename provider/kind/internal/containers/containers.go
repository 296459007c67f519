// Package containers is the container runtime of this machine, by its command line: the one that kind makes nodes with.
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

// ChoiceVariable names the environment variable by which users of kind say which container runtime to take.
const ChoiceVariable = "KIND_EXPERIMENTAL_PROVIDER"

// Runtime is a container runtime that answers.
type Runtime struct {
	// Name is the name of its command, such as docker.
	Name string
	// ForKind has kind take it.
	ForKind cluster.ProviderOption
}

// all are the runtimes that kind can make nodes with, those that people have first. Finch, and nerdctl in a virtual machine,
// are taken only where they are asked for.
func all() []Runtime {
	return []Runtime{
		{"docker", cluster.ProviderWithDocker()},
		{"podman", cluster.ProviderWithPodman()},
		{"nerdctl", cluster.ProviderWithNerdctl("nerdctl")},
		{"finch", cluster.ProviderWithNerdctl("finch")},
		{"nerdctl.lima", cluster.ProviderWithNerdctl("nerdctl.lima")},
	}
}

// unasked is how many of them are taken without being asked for.
const unasked = 3

// Find finds the runtime that the user chose, or the first that answers. The error says what to install or to start.
func Find(ctx context.Context) (Runtime, error) {
	choice := os.Getenv(ChoiceVariable)
	if choice == "" {
		return firstThatAnswers(ctx, all()[:unasked])
	}
	runtime, err := Named(ctx, choice)
	if errors.Is(err, errUnknown) {
		err = fmt.Errorf("%s=%s: %w", ChoiceVariable, choice, err)
	}
	return runtime, err
}

// errUnknown says that there is no such runtime.
var errUnknown = errors.New("kind does not know it; it is docker, podman or nerdctl")

// Named is the runtime of that name, if it answers.
func Named(ctx context.Context, name string) (Runtime, error) {
	for _, candidate := range all() {
		if candidate.Name == name {
			return firstThatAnswers(ctx, []Runtime{candidate})
		}
	}
	return Runtime{}, errUnknown
}

func firstThatAnswers(ctx context.Context, candidates []Runtime) (Runtime, error) {
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

// answers is nil when the runtime can be used.
func (r Runtime) answers(ctx context.Context) error {
	if err := r.run(ctx, "ps", "--quiet"); err != nil {
		return fmt.Errorf("%s is there and cannot be used: %w; start it, and see that this user may use it", r.Name, err)
	}
	return nil
}

// Has says whether the machine has an image.
func (r Runtime) Has(ctx context.Context, image string) bool {
	return r.run(ctx, "image", "inspect", "--format", "{{.Id}}", withoutTag(image)) == nil
}

// Pull gets an image.
func (r Runtime) Pull(ctx context.Context, image string) error {
	return r.run(ctx, "pull", "--quiet", withoutTag(image))
}

// withoutTag takes the tag off an image that is named by its digest, too: podman takes only one of them.
func withoutTag(image string) string {
	name, digest, is := strings.Cut(image, "@")
	if !is {
		return image
	}
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	return name + "@" + digest
}

// Save writes images that the machine has into an archive.
func (r Runtime) Save(ctx context.Context, archive string, images ...string) error {
	return r.run(ctx, append([]string{"save", "--output", archive}, images...)...)
}

// Created is when a container was made.
func (r Runtime) Created(ctx context.Context, container string) (time.Time, error) {
	said, err := r.output(ctx, "container", "inspect", "--format", "{{json .Created}}", container)
	if err != nil {
		return time.Time{}, err
	}
	var created time.Time
	if err := json.Unmarshal(said, &created); err != nil {
		return time.Time{}, fmt.Errorf("%s does not say when %s was made: %w", r.Name, container, err)
	}
	return created, nil
}

// run runs a command of the runtime.
func (r Runtime) run(ctx context.Context, arguments ...string) error {
	_, err := r.output(ctx, arguments...)
	return err
}

// output runs a command of the runtime and returns what it prints. The error is the last line of what it complains of.
func (r Runtime) output(ctx context.Context, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, r.Name, arguments...)
	var wrong bytes.Buffer
	command.Stderr = &wrong
	printed, err := command.Output()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
		return printed, nil
	}
	if said := LastLine(wrong.Bytes()); said != "" {
		err = errors.New(said)
	}
	return nil, fmt.Errorf("%s %s: %w", r.Name, arguments[0], err)
}

// complaint is how commands begin to say what is wrong, such as "error execution phase preflight: ...".
var complaint = regexp.MustCompile(`(?i)(^|\W)error( [\w-]+)*\]?: `)

// LastLine is the last line of what a command has printed that says what is wrong, or else the last line with anything.
func LastLine(printed []byte) string {
	last, wrong := "", ""
	for line := range bytes.Lines(printed) {
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "Run '") { // docker says where its help is
			continue
		}
		last = text
		if complaint.MatchString(text) {
			wrong = text
		}
	}
	return cmp.Or(wrong, last)
}

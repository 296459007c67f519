package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// source is a project that is built from a revision of its repository, because the module proxy does not have it.
type source struct {
	repository, revision string
	// packages are the arguments of `go build`: flags, and the package of the program.
	packages []string
}

// name is the name of the repository, and of the program in bin.
func (s source) name() string { return path.Base(s.repository) }

// clone is the directory of the clone.
func (s source) clone() string { return filepath.Join("bin", "source", s.name()) }

// checkOut checks the revision out, and clones the repository before if the clone of an earlier run does not have it.
func (s source) checkOut(ctx context.Context) error {
	checkOut := []string{"git", "-C", s.clone(), "checkout", "--quiet", s.revision}
	if _, err := output(ctx, checkOut...); err == nil {
		return nil
	}
	if err := os.RemoveAll(s.clone()); err != nil {
		return err
	}
	variable := strings.ToUpper(s.name()) + "_SOURCE"
	from := cmp.Or(os.Getenv(variable), s.repository)
	if _, err := output(ctx, "git", "clone", "--quiet", from, s.clone()); err != nil {
		return fmt.Errorf("clone %s: %w: choose another clone with %s=DIR", from, err, variable)
	}
	if _, err := output(ctx, checkOut...); err != nil {
		return fmt.Errorf("check out a revision of %s: %w: name a clone that has it with %s=DIR", from, err, variable)
	}
	return nil
}

// version returns the version of the revision: the tag before it, the number of commits since, and its abbreviation.
func (s source) version(ctx context.Context, _ string) (string, error) {
	if err := s.checkOut(ctx); err != nil {
		return "", err
	}
	described, err := output(ctx, "git", "-C", s.clone(), "describe", "--tags", "--abbrev=12")
	return strings.TrimPrefix(described, "v"), err
}

// build builds the program from what is checked out, and returns its path.
func (s source) build(ctx context.Context) (string, error) {
	binary, err := filepath.Abs(filepath.Join("bin", s.name()))
	if err != nil {
		return "", err
	}
	// It is no part of this project's workspace.
	_, err = output(ctx, append([]string{"env", "GOWORK=off", "go", "build", "-C", s.clone(), "-o", binary}, s.packages...)...)
	return binary, err
}

// output runs a command and returns its output. The error contains the last line of what the command printed about its failure.
func output(ctx context.Context, command ...string) (string, error) {
	printed, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = errors.New(lines[len(lines)-1])
	}
	return strings.TrimSpace(string(printed)), err
}

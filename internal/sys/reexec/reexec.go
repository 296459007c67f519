// Package reexec starts the running program again to run one function in a separate process. It is modeled on moby/sys/reexec, which uses
// the name of the process, and which ends the process with the thread that started it. Here an environment variable selects the function,
// so that no argument can be mistaken for it, and the caller decides how the process ends.
package reexec

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// variable is the environment variable with the name of the function.
const variable = "DELETION_CONFORMANCE_REEXEC"

// Command starts a program again to run a function, with an environment, until the context ends. The name is also an argument, for process
// lists.
func Command(ctx context.Context, program, name string, environment []string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, name)
	command.Env = slices.Concat(environment, []string{variable + "=" + name})
	return command
}

// Init runs the function that this process was started for, and exits. It returns in other processes. A program calls it first.
func Init(functions map[string]func() error) {
	run, ok := functions[os.Getenv(variable)]
	if !ok {
		return
	}
	_ = os.Unsetenv(variable) // children must not inherit it
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

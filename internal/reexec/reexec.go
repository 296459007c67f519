// Package reexec starts the running program again to run one function in a process of its own. It follows moby/sys/reexec, which
// follows the name of the process and has the kernel end it with the thread that started it. Here an environment variable names the
// function, so that no argument of a program can be mistaken for it, and what ends the process is up to the caller.
package reexec

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// variable names the environment variable that holds the name of the function to run.
const variable = "DELETION_CONFORMANCE_REEXEC"

// Command starts a program again to run the function of a name, with an environment, until the context ends. The name is an argument, too, for those who
// list processes.
func Command(ctx context.Context, program, name string, environment []string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, name)
	command.Env = slices.Concat(environment, []string{variable + "=" + name})
	return command
}

// Init runs the function that this process was started for, and exits. It returns in a process that was started for none of them. A
// program calls it before it does anything else.
func Init(functions map[string]func() error) {
	run, is := functions[os.Getenv(variable)]
	if !is {
		return
	}
	_ = os.Unsetenv(variable) // which programs that this process starts would inherit
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/suggest"
)

// errEmpty is the error of a flag that was given an empty value.
var errEmpty = errors.New("must not be empty")

// filled is the value of a flag that must not be empty. Scripts give empty values where a variable is not set. Without an error the
// run would ignore the flag, and with it the namespace, the suite or the run that was meant.
type filled struct{ pflag.Value }

func (f filled) Set(value string) error {
	if value == "" {
		return errEmpty
	}
	return f.Value.Set(value)
}

// filledList is a filled flag that takes several values.
type filledList struct {
	filled
	pflag.SliceValue
}

// texts are the types of flags that could be empty.
var texts = []string{"string", "stringSlice", "stringArray"}

// refuseEmpty makes the flags of a command refuse empty values, except a label filter: pipelines give it an empty one, which means all.
func refuseEmpty(command *cobra.Command) {
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(texts, flag.Value.Type()) || flag.Name == "label-filter" {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			flag.Value = filledList{filled{flag.Value}, list}
		} else {
			flag.Value = filled{flag.Value}
		}
		if flag.DefValue == "[]" {
			flag.DefValue = "" // which help does not print
		}
	})
}

// flagError is the error of a flag that cannot be parsed, as invalid usage.
func flagError(command *cobra.Command, err error) error {
	help := fmt.Sprintf("(see `%s --help`)", command.CommandPath())
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) && errors.Is(err, errEmpty) {
		return usage(fmt.Errorf("--%s %w %s", invalid.GetFlag().Name, errEmpty, help))
	}
	hint := ""
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		var known []string
		command.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })
		hint = suggest.Hint("--"+unknown.GetSpecifiedName(), known)
	}
	return usage(fmt.Errorf("%w%s %s", err, hint, help))
}

// checkChoice refuses a value of a flag that is none of its choices.
func checkChoice(flag, given string, choices ...string) error {
	if slices.Contains(choices, given) {
		return nil
	}
	last := len(choices) - 1
	return fmt.Errorf("--%s %q: must be %s or %s%s", flag, given, strings.Join(choices[:last], ", "), choices[last], suggest.Hint(given, choices))
}

// noArguments refuses arguments, and names the command that may have been meant.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, subcommand := range command.Commands() {
		known = append(known, subcommand.Name())
	}
	return usage(fmt.Errorf("unknown command or argument %q%s (see `%s --help`)", args[0], suggest.Hint(args[0], known), command.CommandPath()))
}

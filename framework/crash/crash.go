// Package crash converts panics to errors, so that a run with a defect in its own code still ends with its reports.
package crash

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Error is a recovered panic. Its message is one line.
type Error struct {
	// Stack is the stack of the panic.
	Stack []byte

	during string
	value  any
}

func (e *Error) Error() string {
	value, _, _ := strings.Cut(strings.TrimSpace(fmt.Sprint(e.value)), "\n")
	return fmt.Sprintf("%s: panic in the runner: %s: please report it with the output of --verbose", e.during, value)
}

// Caught calls a function and converts a panic to an Error. The activity is named as in "tear down".
func Caught(during string, do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{Stack: debug.Stack(), during: during, value: value}
		}
	}()
	return do()
}

// Stacks returns the stacks of all panics in an error, including joined errors.
func Stacks(err error) [][]byte {
	switch err := err.(type) { //nolint:errorlint // it unwraps by itself
	case *Error:
		return [][]byte{err.Stack}
	case interface{ Unwrap() error }:
		return Stacks(err.Unwrap())
	case interface{ Unwrap() []error }:
		var stacks [][]byte
		for _, one := range err.Unwrap() {
			stacks = append(stacks, Stacks(one)...)
		}
		return stacks
	}
	return nil
}

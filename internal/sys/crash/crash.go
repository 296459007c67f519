// Package crash converts panics to errors, so that a run with a defect in its own code still ends with its reports.
package crash

import (
	"fmt"
	"runtime/debug"
	"strings"

	"golang.org/x/sync/errgroup"
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
		switch value := recover().(type) {
		case nil:
		case *Error: // raised again by InParallel
			err = &Error{Stack: value.Stack, during: during, value: value.value}
		default:
			err = &Error{Stack: debug.Stack(), during: during, value: value}
		}
	}()
	return do()
}

// InParallel calls a function for each index below a count, with a limit on the calls at the same time. After all calls it raises the first
// panic again, in the caller's goroutine, where Caught can catch it.
func InParallel(limit, count int, do func(i int)) {
	var running errgroup.Group
	running.SetLimit(limit)
	for i := range count {
		running.Go(func() error { return Caught("", func() error { do(i); return nil }) })
	}
	if err := running.Wait(); err != nil {
		panic(err)
	}
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

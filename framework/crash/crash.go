// Package crash makes errors of panics, so that a run in whose own code there is a defect still ends with its reports.
package crash

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Error is a panic that was caught. Its message is one line.
type Error struct {
	// Stack is where it was, for those who look for the defect.
	Stack []byte

	during string
	value  any
}

func (e *Error) Error() string {
	value, _, _ := strings.Cut(strings.TrimSpace(fmt.Sprint(e.value)), "\n")
	return fmt.Sprintf("%s: the runner itself has a defect (panic: %s); please report it with what --verbose says of it", e.during, value)
}

// Caught does something, and makes an Error of its panic. What was being done is named as in "tear down".
func Caught(during string, do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{Stack: debug.Stack(), during: during, value: value}
		}
	}()
	return do()
}

// Stacks are where the panics were that an error tells of, those of errors that are joined in it included.
func Stacks(err error) [][]byte {
	switch err := err.(type) { //nolint:errorlint // it looks into every error by itself
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

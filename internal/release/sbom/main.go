// Command sbom writes a software bill of materials of a Go binary; see package bill.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/deletion-conformance/deletion-conformance/internal/release/bill"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(arguments []string) (err error) {
	if len(arguments) != 3 {
		return errors.New("use: sbom BINARY VERSION FILE")
	}
	file, err := os.Create(arguments[2])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return bill.Write(file, arguments[0], arguments[1])
}

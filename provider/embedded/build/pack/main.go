// Command pack packs the module that builds Kubernetes into one file, which is embedded in the runner.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("use: pack DIR FILE")
	}
	packed, err := build.Pack(arguments[0])
	if err != nil {
		return err
	}
	return os.WriteFile(arguments[1], packed, 0o644)
}

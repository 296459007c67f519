// Typecheck checks that packages compile for other systems, or with other versions of modules, without compiling what they import: it reads
// the declarations of that from source. It takes packages as `go list` does, and the environment's GOOS, GOARCH and GOWORK.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	tests := flag.Bool("tests", false, "check tests, too")
	flag.Parse()
	if err := check(*tests, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check reads packages with all that they import. Only the functions of the packages themselves are checked.
func check(tests bool, patterns []string) error {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Tests: tests}, patterns...)
	if err != nil {
		return err
	}
	if len(loaded) == 0 {
		return errors.New("no packages were named: name some, as ./... does")
	}
	if failed := packages.PrintErrors(loaded); failed > 0 {
		return fmt.Errorf("%d errors", failed)
	}
	return nil
}

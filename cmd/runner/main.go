// Command runner tests how Kubernetes clusters delete things. See `runner --help`.
package main

import (
	"os"

	"github.com/deletion-conformance/deletion-conformance/internal/cli"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Package suites links every suite into its importers. Each suite is a directory here; a test fails when one is missing below.
package suites

import (
	_ "github.com/deletion-conformance/deletion-conformance/suites/admission"
	_ "github.com/deletion-conformance/deletion-conformance/suites/cascade"
	_ "github.com/deletion-conformance/deletion-conformance/suites/finalizers"
	_ "github.com/deletion-conformance/deletion-conformance/suites/graceful"
	_ "github.com/deletion-conformance/deletion-conformance/suites/kubectl"
	_ "github.com/deletion-conformance/deletion-conformance/suites/operator"
	_ "github.com/deletion-conformance/deletion-conformance/suites/options"
	_ "github.com/deletion-conformance/deletion-conformance/suites/permission"
	_ "github.com/deletion-conformance/deletion-conformance/suites/watch"
)

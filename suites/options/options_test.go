package options_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/options"
)

func TestOptions(t *testing.T) { gotest.Run(t, "options") }

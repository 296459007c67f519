package cascade_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/cascade"
)

func TestCascade(t *testing.T) { gotest.Run(t, "cascade") }

package finalizers_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/finalizers"
)

func TestFinalizers(t *testing.T) { gotest.Run(t, "finalizers") }

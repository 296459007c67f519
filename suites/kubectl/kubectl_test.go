package kubectl_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/kubectl"
)

func TestKubectl(t *testing.T) { gotest.Run(t, "kubectl") }

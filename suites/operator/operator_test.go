package operator_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/operator"
)

func TestOperator(t *testing.T) { gotest.Run(t, "operator") }

package admission_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/admission"
)

func TestAdmission(t *testing.T) { gotest.Run(t, "admission") }

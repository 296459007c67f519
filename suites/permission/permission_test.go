package permission_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/permission"
)

func TestPermission(t *testing.T) { gotest.Run(t, "permission") }

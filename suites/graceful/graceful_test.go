package graceful_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/graceful"
)

func TestGraceful(t *testing.T) { gotest.Run(t, "graceful") }

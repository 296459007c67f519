package watch_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/framework/gotest"
	_ "github.com/deletion-conformance/deletion-conformance/suites/watch"
)

func TestWatch(t *testing.T) { gotest.Run(t, "watch") }

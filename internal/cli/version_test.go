package cli

import (
	"runtime/debug"
	"testing"
)

func TestVersion_Commit(t *testing.T) {
	inClone := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "vcs.revision", Value: "1a2b3c"}}
	for _, test := range []struct {
		name     string
		main     debug.Module
		settings []debug.BuildSetting
		want     string
	}{
		{"built in a clone", debug.Module{Version: "v0.0.0-20260102030405-1a2b3c4d5e6f"}, inClone, ", commit 1a2b3c"},
		{"installed from a commit", debug.Module{Version: "v0.1.1-0.20260102030405-1a2b3c4d5e6f", Sum: "h1:abc="}, nil, ", commit 1a2b3c4d5e6f"},
		{"installed from a release", debug.Module{Version: "v0.1.0", Sum: "h1:abc="}, nil, ", sum h1:abc="},
		{"built without version control", debug.Module{Version: "(devel)"}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if from := builtFrom(&debug.BuildInfo{Main: test.main, Settings: test.settings}); from != test.want {
				t.Errorf("want %q, got %q", test.want, from)
			}
		})
	}
}

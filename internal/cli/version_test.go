package cli

import (
	"runtime/debug"
	"testing"
)

func TestTheCommitIsTold(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings []debug.BuildSetting
		want     string
	}{
		{"built in a clone", []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "vcs.revision", Value: "1a2b3c"}}, ", commit 1a2b3c"},
		{"installed from the module proxy", []debug.BuildSetting{{Key: "GOOS", Value: "linux"}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if commit := builtFrom(test.settings); commit != test.want {
				t.Errorf("want %q, got %q", test.want, commit)
			}
		})
	}
}

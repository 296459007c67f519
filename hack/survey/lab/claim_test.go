package lab

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheckCommitted(t *testing.T) {
	for _, test := range []struct {
		name, version, trial string
		refused              bool
	}{
		{name: "a release", version: "v1.0.0"},
		{name: "a commit", version: "ec4b4c4"},
		{name: "uncommitted changes", version: "ec4b4c4-dirty", refused: true},
		{name: "a trial", version: "ec4b4c4-dirty", trial: "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv(trial, test.trial)
			err := checkCommitted(test.version)
			g.Expect(err != nil).To(Equal(test.refused), "%v", err)
		})
	}
}

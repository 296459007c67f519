package client

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestNamedBy(t *testing.T) {
	const run = "dcb2c4d5f6"
	for name, test := range map[string]struct {
		run, name string
		own       bool
	}{
		"a namespace":                  {run, "dcb2c4d5f6-1", true},
		"the id alone":                 {run, "dcb2c4d5f6", true},
		"a cluster-scoped object":      {run, "auditors-dcb2c4d5f6-x7k2p", true},
		"a definition":                 {run, "things.cascade.circle.dcb2c4d5f6.deletion-conformance.github.io", true},
		"an Event about an object":     {run, "node-dcb2c4d5f6-x7k2p.18a2b3c4d5e6f7a8", true},
		"an object of others":          {run, "payments", false},
		"another run":                  {run, "dcb2c4d5f7-1", false},
		"the id in a longer part":      {run, "mydcb2c4d5f6-1", false},
		"the id before other letters":  {run, "dcb2c4d5f6x", false},
		"the id after a colon":         {run, "system:dcb2c4d5f6", false},
		"other case":                   {run, "DCB2C4D5F6-1", false},
		"an empty name":                {run, "", false},
		"an id of one letter":          {"o", "o-1", false},
		"an empty id":                  {"", "payments--1", false},
		"an id with a vowel":           {"dcabcdefgh", "dcabcdefgh-1", false},
		"a short id":                   {"dc1", "dc1-1", false},
		"a long id":                    {"dcb2c4d5f6b", "dcb2c4d5f6b-1", false},
		"an id with a line end":        {"dcb2c4d5f6\n", "dcb2c4d5f6\n", false},
		"an id that spans two parts":   {"dcb2-4d5f6", "dcb2-4d5f6-1", false},
		"a word of the form of no run": {"payments22", "payments22", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(NamedBy(test.run, test.name)).To(Equal(test.own))
		})
	}
}

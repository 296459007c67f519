package clients

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
)

func TestMergePatch(t *testing.T) {
	round := &Round{Owners: map[string]*client.Object{"": fixtures.ConfigMap("quiet")}}
	for name, test := range map[string]struct {
		change  model.Change
		version string
		patch   string
	}{
		"nothing":         {patch: `{"metadata":{}}`},
		"value, version":  {change: model.Change{Value: new("v")}, version: "7", patch: `{"metadata":{"annotations":{"DOMAIN/value":"v"},"resourceVersion":"7"}}`},
		"label":           {change: model.Change{Label: new("x")}, patch: `{"metadata":{"labels":{"DOMAIN/state":"x"}}}`},
		"no label":        {change: model.Change{Label: new("")}, patch: `{"metadata":{"labels":{"DOMAIN/state":null}}}`},
		"finalizers":      {change: model.Change{Finalizers: new(model.NamesOf("a"))}, patch: `{"metadata":{"finalizers":["DOMAIN/a"]}}`},
		"none, no owners": {change: model.Change{Finalizers: new(model.Names("")), Owners: new(model.Names(""))}, patch: `{"metadata":{"finalizers":[],"ownerReferences":[]}}`},
		"owners": {change: model.Change{Owners: new(model.NamesOf(model.Owner{Name: "o", UID: "u", Blocks: true}.String()))},
			patch: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","blockOwnerDeletion":true,"kind":"ConfigMap","name":"o","uid":"u"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			sent, err := json.Marshal(round.mergePatch(test.change, test.version))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(sent)).To(MatchJSON(strings.ReplaceAll(test.patch, "DOMAIN", client.Domain)))
		})
	}
}

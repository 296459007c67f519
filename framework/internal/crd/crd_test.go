package crd

import (
	"encoding/base64"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

func TestACopyHoldsWhatItsMakerSaid(t *testing.T) {
	g := NewWithT(t)
	made := fixtures.CustomResourceDefinition("example.com")
	made.SetLabels(map[string]string{"team": "storage"})
	stored := made.DeepCopy()
	stored.SetUID("1")
	stored.SetResourceVersion("7")
	stored.SetGeneration(2)
	stored.Object["status"] = map[string]any{"storedVersions": []any{"v1"}}

	packed, err := pack(stored)
	g.Expect(err).NotTo(HaveOccurred())
	kept := &client.Object{Object: map[string]any{"binaryData": map[string]any{key: base64.StdEncoding.EncodeToString(packed)}}}

	g.Expect(unpack(kept)).To(Equal(made))
	_, err = unpack(&client.Object{Object: map[string]any{}})
	g.Expect(err).To(HaveOccurred(), "a ConfigMap of somebody else's")
}

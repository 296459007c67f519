package environment

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPermissionsAreRemovedLast(t *testing.T) {
	resource := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	resources := map[schema.GroupVersionResource]struct{}{
		resource("rbac.authorization.k8s.io", "rolebindings"): {},
		resource("", "configmaps"):                            {},
		resource("things.example.com", "things"):              {},
		resource("rbac.authorization.k8s.io", "roles"):        {},
		resource("apps", "replicasets"):                       {},
	}
	var order []string
	for _, one := range slices.SortedFunc(maps.Keys(resources), permissionsLast) {
		order = append(order, one.Resource)
	}
	NewWithT(t).Expect(order).To(Equal([]string{"configmaps", "replicasets", "things", "rolebindings", "roles"}))
}

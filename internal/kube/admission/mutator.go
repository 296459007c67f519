package admission

import (
	"fmt"
	"slices"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mutator is a webhook configuration or a policy that may change objects when they are created.
type Mutator struct {
	// Kind and Name identify the object.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Rules select the requests that it receives. It may receive fewer: selectors and conditions are not read.
	Rules []registrationv1.Rule `json:"rules"`
}

// Mutators describe the mutating admission of a cluster.
type Mutators struct {
	Known []Mutator `json:"known,omitempty"`
	// Hidden is the reason why there may be unknown mutators; empty when all are known.
	Hidden string `json:"hidden,omitempty"`
}

// By names the mutators that may change new objects of a resource. It reports false when there is none; a change then comes from the API
// server itself.
func (m Mutators) By(resource schema.GroupVersionResource) (string, bool) {
	names := m.Listed(resource)
	if names == "" && m.Hidden != "" {
		return m.Hidden, true
	}
	return names, names != ""
}

// Listed names the known mutators that may change new objects of a resource; empty when there is none.
func (m Mutators) Listed(resource schema.GroupVersionResource) string {
	var names []string
	for _, mutator := range m.Known {
		if slices.ContainsFunc(mutator.Rules, func(rule registrationv1.Rule) bool { return covers(rule, resource) }) {
			names = append(names, fmt.Sprintf("%s %q", mutator.Kind, mutator.Name))
		}
	}
	return strings.Join(names, " or ")
}

// covers reports whether a rule matches a resource. Versions are ignored, because the API server converts requests to match.
func covers(rule registrationv1.Rule, resource schema.GroupVersionResource) bool {
	matches := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	return matches(rule.APIGroups, resource.Group) && (matches(rule.Resources, resource.Resource) || slices.Contains(rule.Resources, "*/*"))
}

// MutatorOf reads a MutatingWebhookConfiguration or a MutatingAdmissionPolicy.
func MutatorOf(object *unstructured.Unstructured) Mutator {
	mutator := Mutator{Kind: object.GetKind(), Name: object.GetName()}
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, webhook := range webhooks {
		content, _ := webhook.(map[string]any)
		mutator.add(content["rules"])
	}
	rules, _, _ := unstructured.NestedSlice(object.Object, "spec", "matchConstraints", "resourceRules")
	mutator.add(rules)
	return mutator
}

// add adds the rules that match creates.
func (m *Mutator) add(rules any) {
	list, _ := rules.([]any)
	for _, content := range list {
		fields, _ := content.(map[string]any)
		var rule registrationv1.RuleWithOperations
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &rule) != nil {
			continue
		}
		if slices.Contains(rule.Operations, registrationv1.Create) || slices.Contains(rule.Operations, registrationv1.OperationAll) {
			m.Rules = append(m.Rules, rule.Rule)
		}
	}
}

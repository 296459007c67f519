package environment

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FixtureUse is which kinds of objects come into being for one behavior, each as apiVersion/Kind ("apps/v1/ReplicaSet").
type FixtureUse struct {
	// Creates are the kinds that the spec creates.
	Creates []string `json:"creates,omitempty"`
	// Controllers are the kinds that built-in controllers create for the spec's objects.
	Controllers []string `json:"controllers,omitempty"`
}

// fixtureTable is written by hack/fixtures from the reports of runs.
//
//go:embed fixtures.json
var fixtureTable []byte

// Fixtures are the kinds that come into being for each behavior, by its id.
func Fixtures() map[string]FixtureUse { return maps.Clone(readFixtures()) }

var readFixtures = sync.OnceValue(func() map[string]FixtureUse {
	uses := map[string]FixtureUse{}
	if err := json.Unmarshal(fixtureTable, &uses); err != nil {
		panic(fmt.Sprintf("environment: reading fixtures.json: %v", err))
	}
	return uses
})

// kindOf reads a kind of the table.
func kindOf(text string) schema.GroupVersionKind {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '/' {
			return schema.FromAPIVersionAndKind(text[:i], text[i+1:])
		}
	}
	return schema.GroupVersionKind{Kind: text}
}

// creating are the behaviors of a list that create a kind.
func creating(kind string, behaviors []string) []string {
	return slices.DeleteFunc(slices.Clone(behaviors), func(id string) bool { return !slices.Contains(readFixtures()[id].Creates, kind) })
}

// controlling are the behaviors of a list for whose objects controllers create a kind.
func controlling(kind string, behaviors []string) []string {
	return slices.DeleteFunc(slices.Clone(behaviors), func(id string) bool { return !slices.Contains(readFixtures()[id].Controllers, kind) })
}

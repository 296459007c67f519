package test

import (
	"encoding/json"
	"os/exec"
	"sync"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// listed is what `runner list` says, asked for once.
var listed = sync.OnceValues(func() ([]v1alpha1.Behavior, error) {
	content, err := exec.Command(built.runner, "list", "--output", "json").Output()
	if err != nil {
		return nil, err
	}
	var contracts []v1alpha1.Behavior
	return contracts, json.Unmarshal(content, &contracts)
})

// contracts are all behaviours, by id.
func contracts(t *testing.T) map[string]v1alpha1.Behavior {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	contracts := map[string]v1alpha1.Behavior{}
	for _, contract := range all {
		contracts[contract.ID] = contract
	}
	return contracts
}

// catalogue is the ids of all behaviours, sorted.
func catalogue(t *testing.T) []string {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, contract := range all {
		ids = append(ids, contract.ID)
	}
	return ids
}

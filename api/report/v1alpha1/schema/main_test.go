package main

import (
	"bytes"
	"os"
	"testing"
)

func TestThePublishedSchemaIsCurrent(t *testing.T) {
	want, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("docs/report.schema.json is not what the Go types say: run `go generate ./api/...`")
	}
}

package main

import (
	"bytes"
	"os"
	"testing"
)

func TestSchemas_Current(t *testing.T) {
	for _, published := range documents {
		want, err := schema(published)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(published.file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s does not match the Go types: run `go generate ./api/...`", published.file)
		}
	}
}

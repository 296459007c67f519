package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkSums compares the checksums with the files: all archives and bills of materials, and nothing else.
func (r release) checkSums() error {
	content, err := os.ReadFile(filepath.Join(r.dir, "checksums.txt"))
	if err != nil {
		return err
	}
	var listed, want []string
	for line := range strings.Lines(string(content)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		file, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			return fmt.Errorf("checksums.txt: %w", err)
		}
		if got := sha256.Sum256(file); sum != hex.EncodeToString(got[:]) {
			return fmt.Errorf("checksums.txt: the sum of %s is %x, not %s", name, got, sum)
		}
		listed = append(listed, name)
	}
	for _, platform := range platforms {
		want = append(want, r.archive(platform), r.bill(platform))
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		return fmt.Errorf("checksums.txt lists %q, want %q", listed, want)
	}
	return nil
}

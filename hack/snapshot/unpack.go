package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// unpack unpacks an archive: tar with the command, and zip without one, because not every system has it.
func unpack(archive, into string) (err error) {
	if !strings.HasSuffix(archive, ".zip") {
		if output, err := exec.Command("tar", "-xzf", archive, "-C", into).CombinedOutput(); err != nil {
			return fmt.Errorf("tar: %w: %s", err, strings.TrimSpace(string(output)))
		}
		return nil
	}
	zipped, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, zipped.Close()) }()
	return os.CopyFS(into, zipped)
}

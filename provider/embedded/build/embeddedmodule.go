package build

import (
	"crypto/sha256"
	_ "embed" // of the module
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"
	"golang.org/x/tools/txtar"
)

//go:generate go run ./pack ../../../kubernetes module.txtar

// embeddedModule is the module that builds Kubernetes, as one file. A module of its own is not in the repository's main one,
// which is all that `go install` fetches and that a release is built from; with it in the binary, Kubernetes is built
// wherever Go is.
//
//go:embed module.txtar
var embeddedModule []byte

// Pack makes one file of the module in a directory.
func Pack(dir string) ([]byte, error) {
	source, err := readSource(dir)
	if err != nil {
		return nil, err
	}
	archive := &txtar.Archive{Comment: []byte("Generated from kubernetes/ by `make docs`. Do not edit.\n")}
	for _, name := range sortedKeys(source.files) {
		archive.Files = append(archive.Files, txtar.File{Name: filepath.ToSlash(name), Data: source.files[name]})
	}
	return txtar.Format(archive), nil
}

// unpackEmbeddedModule puts the module that the runner carries below a directory, under a name that no other has, and returns where.
func unpackEmbeddedModule(into string) (string, error) {
	sum := sha256.Sum256(embeddedModule)
	dir := filepath.Join(into, "module-"+hex.EncodeToString(sum[:6]))
	for _, file := range txtar.Parse(embeddedModule).Files {
		path := filepath.Join(dir, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := maybe.WriteFile(path, file.Data, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

package build

import (
	"crypto/sha256"
	_ "embed" // of the module
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2/maybe"
	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"
)

//go:generate go run ./pack ../../../kubernetes module.txtar

// embeddedModule is the module that builds Kubernetes, as one file. `go install` fetches only the main module of the repository, which does
// not include nested modules. With this file in the binary, Kubernetes can be built wherever Go is installed.
//
//go:embed module.txtar
var embeddedModule []byte

// Pack packs the module in a directory into one file.
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

// DefaultVersion is the version of Kubernetes that the embedded module requires, such as "1.37.2".
func DefaultVersion() string {
	archive := txtar.Parse(embeddedModule)
	mod := slices.IndexFunc(archive.Files, func(file txtar.File) bool { return file.Name == "go.mod" })
	parsed, err := modfile.ParseLax("go.mod", archive.Files[mod].Data, nil)
	if err != nil {
		panic(err) // a test parses it, too
	}
	version, err := requiredVersion(parsed)
	if err != nil {
		panic(err)
	}
	return version.String()
}

// unpackEmbeddedModule extracts the embedded module below a directory, under a unique name, and returns its path.
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

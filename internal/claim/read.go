package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	kjson "sigs.k8s.io/json"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

const (
	// maxClaim and maxReport limit the size of a claim and of its expanded report, in bytes. Those of whole runs have up to 1 MiB and 10 MiB.
	maxClaim, maxReport = 4 << 20, 32 << 20
	// maxElements limits the elements of all lists in a claim or in its report, because one of 3 bytes, "{},", takes hundreds in memory.
	// Reports of whole runs have 22,000.
	maxElements = 50_000
	// maxResults limits the results of a cluster. Catalogs have 450 behaviors.
	maxResults = 2_000
)

// ReadFile reads the file of a claim. It fails if the file is not a regular one, or is too large.
func ReadFile(file string) ([]byte, error) {
	info, err := os.Lstat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("read claim %s: %w", file, err)
	}
	return readFile("claim", file)
}

// readFile reads a file of up to maxClaim bytes.
func readFile(document, file string) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", document, err)
	}
	defer func() { _ = opened.Close() }()
	content, err := readAll(opened, maxClaim)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", document, file, err)
	}
	return content, nil
}

// readAll reads at most a number of bytes, and fails if there are more.
func readAll(from io.Reader, most int) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
	if err == nil && len(content) > most {
		err = fmt.Errorf("larger than %d MiB", most>>20)
	}
	return content, err
}

// IsClaim reports whether the content of a file is to be verified: a claim, or what is not JSON. Documents of other kinds are not.
func IsClaim(content []byte) bool {
	var header struct {
		Kind string `json:"kind"`
	}
	err := json.Unmarshal(content, &header)
	return errors.As(err, new(*json.SyntaxError)) || header.Kind == v1alpha1.ClaimKind
}

// decode decodes a document as a Kubernetes API server decodes a request with fieldValidation=Strict. Fields that are unknown, duplicate, or
// written with other capitals are violations.
func decode(content []byte, document, kind string, into any) (violations []error, err error) {
	if report.HasMoreElements(content, maxElements) {
		return nil, fmt.Errorf("its lists have more than %d elements", maxElements)
	}
	if err := report.DecodeKind(content, document, kind, &struct{}{}); err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(content, into)
}

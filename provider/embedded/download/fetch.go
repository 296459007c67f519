package download

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
)

// file is a file on a server.
type file struct {
	url    string
	digest digest.Digest
	// size is its size in bytes; 0 when only the server knows it.
	size int64
}

// from is the Range header for what follows after so many bytes. Some registries require an end.
func (f file) from(there int64) string {
	if f.size == 0 {
		return fmt.Sprintf("bytes=%d-", there)
	}
	return fmt.Sprintf("bytes=%d-%d", there, f.size-1)
}

const (
	// attempts limits how often a download goes on after it was interrupted.
	attempts = 3
	// largest is the size of a file above which nothing is downloaded.
	largest = 2 << 30
)

// errInterrupted is the error of a download that can go on.
var errInterrupted = errors.New("the download was interrupted")

// part downloads an archive, keeps a binary that it contains, and removes the archive. It is false when the archive does not contain it.
func (d *downloader) part(ctx context.Context, client *http.Client, file file, folder, binary string) (bool, error) {
	archive := filepath.Join(d.Into, file.digest.Encoded()+".part")
	d.expected.Add(file.size)
	if err := d.fetch(ctx, client, file, archive); err != nil {
		return false, fmt.Errorf("download %s: %w", file.url, err)
	}
	found, err := d.keep(archive, folder, binary)
	return found, errors.Join(err, os.Remove(archive))
}

// fetch downloads a file unless that was done before, goes on where an earlier download ended, and verifies it. A file that is not the wanted
// one is removed.
func (d *downloader) fetch(ctx context.Context, client *http.Client, file file, into string) error {
	err := errInterrupted
	for range attempts {
		if err = d.goOn(ctx, client, file, into); !errors.Is(err, errInterrupted) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := checkDigest(into, file.digest); err != nil {
		return errors.Join(err, os.Remove(into))
	}
	return nil
}

// goOn downloads the rest of a file.
func (d *downloader) goOn(ctx context.Context, client *http.Client, file file, path string) error {
	into, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }() // what was not written fails the verification
	there, err := into.Seek(0, io.SeekEnd)
	if err != nil || file.size > 0 && there == file.size {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, file.url, nil)
	if err != nil {
		return err
	}
	if there > 0 {
		request.Header.Set("Range", file.from(there))
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable: // all of it is there, or something else
		return nil
	case http.StatusOK:
		there = 0
		if err := into.Truncate(0); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the server answered %s", response.Status)
	}
	if file.size == 0 && response.ContentLength > 0 {
		d.expected.Add(there + response.ContentLength)
	}
	d.receive(there)
	written, err := io.Copy(into, io.LimitReader(&watched{reader: response.Body, stalled: time.AfterFunc(stallTimeout, cancel), received: d.receive}, largest))
	if err != nil {
		d.receive(-there - written)
		return fmt.Errorf("%w after %d MB: %w", errInterrupted, (there+written)/megabyte, err)
	}
	return nil
}

// watched is a reader that counts, and calls a function when nothing arrives for some time.
type watched struct {
	reader   io.Reader
	stalled  *time.Timer
	received func(int64)
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.reader.Read(p)
	w.received(int64(n))
	w.stalled.Reset(stallTimeout)
	if err != nil {
		w.stalled.Stop()
	}
	return n, err
}

// checkDigest returns an error unless a file has a digest.
func checkDigest(path string, want digest.Digest) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	got, err := want.Algorithm().FromReader(file)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("it is not what was released, and was removed: its digest is %s, expected %s", got, want)
	}
	return nil
}

// extract writes the binary with a name from a compressed archive to a file. It is false when there is none.
func extract(archive, name, into string) (bool, error) {
	file, err := os.Open(archive)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	decompressed, err := gzip.NewReader(file)
	if err != nil {
		return false, fmt.Errorf("decompress %s: %w", archive, err)
	}
	entries := tar.NewReader(decompressed)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read %s: %w", archive, err)
		}
		if header.Typeflag == tar.TypeReg && path.Base(header.Name) == name {
			return true, write(entries, into)
		}
	}
}

// write writes an executable file that appears when it is complete.
func write(content io.Reader, path string) error {
	unfinished, err := os.CreateTemp(filepath.Dir(path), ".unfinished-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(unfinished.Name()) }() // unless it was renamed
	_, err = io.Copy(unfinished, content)
	if err := errors.Join(err, unfinished.Chmod(0o755), unfinished.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished.Name(), path)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

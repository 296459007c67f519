package node

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Images are the names of a node's preloaded images. A node does not need a registry.
type Images struct {
	// Busybox is an image with a shell and the programs that scripts use.
	Busybox string
	// Pause is an image whose process does nothing until it is terminated. Every pod has one.
	Pause string
	// StopSignal is an image like Busybox with the stop signal SIGQUIT.
	StopSignal string
}

// pauseScript is the script of a pause container: it ends at SIGTERM or SIGINT, and as the first process of a pod with a shared process
// namespace it reaps orphans.
const pauseScript = `trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done`

// Write builds the images from a static busybox and writes them to an archive as `docker save` does.
func (i Images) Write(busybox, archive string) error {
	layer, err := busyboxLayer(busybox)
	if err != nil {
		return fmt.Errorf("build the images: %w", err)
	}
	tagged := map[name.Tag]v1.Image{}
	for reference, config := range map[string]v1.Config{
		i.Busybox:    {Cmd: []string{"sh"}, Env: path},
		i.StopSignal: {Cmd: []string{"sh"}, Env: path, StopSignal: "SIGQUIT"},
		i.Pause:      {Entrypoint: []string{"/bin/sh", "-c", pauseScript}, Env: path, User: "65535:65535"},
	} {
		tag, err := name.NewTag(reference)
		if err != nil {
			return fmt.Errorf("build the image %s: %w", reference, err)
		}
		if tagged[tag], err = image(layer, config); err != nil {
			return fmt.Errorf("build the image %s: %w", reference, err)
		}
	}
	if err := tarball.MultiWriteToFile(archive, tagged); err != nil {
		return fmt.Errorf("write the images to %s: %w", archive, err)
	}
	return nil
}

var path = []string{"PATH=/bin"}

// programs are the programs of busybox in the images. Each is a file to copy for every container, and copying all 300 would take longer
// than the rest of its start.
var programs = []string{
	"[", "ash", "basename", "cat", "chmod", "cp", "cut", "date", "dd", "dirname", "du", "echo", "env", "expr", "false", "find",
	"grep", "head", "hostname", "httpd", "id", "kill", "killall", "ln", "ls", "mkdir", "mkfifo", "mktemp", "mv", "nc", "ping",
	"printf", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq", "sh", "sleep", "sort", "stat", "stty", "sync", "tail", "tar",
	"tee", "test", "time", "timeout", "touch", "tr", "true", "tty", "uname", "uniq", "usleep", "wc", "wget", "which", "xargs",
}

// image returns an image with one layer for this machine.
func image(layer v1.Layer, config v1.Config) (v1.Image, error) {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH, RootFS: v1.RootFS{Type: "layers"}, Config: config,
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layer)
}

// busyboxLayer returns a root file system with busybox under the names of its programs.
func busyboxLayer(busybox string) (v1.Layer, error) {
	binary, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	built, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the programs of %s: %w", busybox, err)
	}
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	entries := []tar.Header{
		{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755},
	}
	for _, program := range strings.Fields(string(built)) {
		if slices.Contains(programs, program) {
			entries = append(entries, tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + program, Linkname: "busybox"})
		}
	}
	entries = append(entries, tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: int64(len(binary))})
	for _, entry := range entries {
		if err := archive.WriteHeader(&entry); err != nil {
			return nil, err
		}
	}
	if _, err := archive.Write(binary); err != nil { // part of the last entry
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	})
}

// Package download gets the official binaries of Kubernetes and etcd for this machine: from the images of the control plane in
// registry.k8s.io, and the kubelet from the archive for nodes at dl.k8s.io.
//
// The registry is the source of the control plane because it has everything that a cluster without nodes needs, by digest and platform, with
// signatures. dl.k8s.io has no etcd, and envtest's index has no controllers. Nothing is executed that was not verified: the digests of
// recorded releases are part of this program, so that a mirror or a proxy can only serve bytes, and images of others must have a signature of
// Kubernetes' release process.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/filelock"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/display"
)

// Options select a release, and where it is downloaded from and to.
type Options struct {
	// Version is the version of Kubernetes, such as "1.37.2".
	Version string
	// Into is the directory for all downloads. It may contain others, also of other versions.
	Into string
	// Mirror is the host, port and path of a registry that has the images of registry.k8s.io, and optionally the files of dl.k8s.io. Empty
	// selects the official servers.
	Mirror string
	// Node selects the kubelet, too, if the release's is recorded.
	Node bool
	// Out receives the progress: a live line on a terminal, else a line every 30 seconds.
	Out io.Writer
}

// Find returns the directory of a version that was downloaded into a directory: kube-apiserver, etcd, kube-controller-manager,
// kube-scheduler, kubectl and, if it was downloaded with a node, kubelet. It fails with fs.ErrNotExist when that was not downloaded.
func Find(into, version string) (string, error) {
	dir := versionDir(into, version)
	for _, image := range images {
		if _, err := os.Stat(filepath.Join(dir, image.binary)); err != nil {
			return "", fmt.Errorf("v%s of Kubernetes was not downloaded: %w", version, err)
		}
	}
	return dir, nil
}

// versionDir is the directory of links to the binaries of a version.
func versionDir(into, version string) string { return filepath.Join(into, "v"+version) }

// Binaries downloads what is missing of a release for this machine, and returns the directory that Find returns. An interrupted download
// goes on where it ended. When a server cannot be reached, it fails within seconds.
//
// It fails when there are no official binaries for this system, when there is no such release, and when something that was downloaded is not
// what was released.
func Binaries(ctx context.Context, options Options) (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("official binaries of the control plane exist for Linux, not for %s", runtime.GOOS)
	}
	servers, err := serversOf(options.Mirror)
	if err != nil {
		return "", err
	}
	release, err := releaseOf(options.Version)
	if err != nil {
		if dir, err := Find(options.Into, options.Version); err == nil { // by another version of this program
			return dir, nil
		}
		return "", err
	}
	dir := versionDir(options.Into, options.Version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := filelock.Wait(ctx, filepath.Join(options.Into, ".lock"))
	if err != nil {
		return "", err
	}
	d := &downloader{Options: options, servers: servers, release: release, dir: dir}
	err = errors.Join(d.run(ctx), unlock())
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return dir, err
}

// downloader downloads one release.
type downloader struct {
	Options
	servers servers
	release release
	dir     string // of the version
	// received and expected count bytes.
	received, expected atomic.Int64
	progress           *display.Display
}

// run downloads what is missing, in parallel. A kubelet that cannot be downloaded is reported only, because most behaviors need no node.
func (d *downloader) run(ctx context.Context) error {
	var missing []image
	for _, image := range images {
		if !d.has(image.binary) {
			missing = append(missing, image)
		}
	}
	node := d.Node && d.release.node() != "" && !d.has(kubelet)
	if len(missing) == 0 && !node {
		return nil
	}
	if d.Out == nil {
		d.Out = io.Discard
	}
	_, _ = fmt.Fprintf(d.Out, "Downloading Kubernetes %s from %s.\n", d.Version, d.servers.registry)
	d.progress = display.Start(d.Out, "downloading", d.stage)
	var withoutNode error
	group, together := errgroup.WithContext(ctx)
	for _, image := range missing {
		group.Go(func() error { return d.image(together, image) })
	}
	if node {
		group.Go(func() error {
			withoutNode = d.node(together)
			return nil
		})
	}
	err := group.Wait()
	d.progress.Stop()
	if err == nil && len(d.release.Images) < len(images) { // a registry can serve the signed image of another version
		err = d.checkVersion(ctx)
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(d.Out, "  downloaded %d MB in %s.\n", d.received.Load()/megabyte, d.progress.Elapsed())
	if withoutNode != nil {
		_, _ = fmt.Fprintf(d.Out, "  no kubelet, which a node needs: %v\n", withoutNode)
	}
	return nil
}

// checkVersion returns an error, and removes the version, unless its binaries are of this version.
func (d *downloader) checkVersion(ctx context.Context) error {
	for _, arguments := range [][]string{{"kube-apiserver", "--version"}, {"kube-controller-manager", "--version"}, {"kube-scheduler", "--version"}, {"kubectl", "version", "--client"}} {
		output, err := exec.CommandContext(ctx, filepath.Join(d.dir, arguments[0]), arguments[1:]...).Output()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s cannot be executed, and was removed: %w", arguments[0], err), os.RemoveAll(d.dir))
		}
		if !slices.Contains(strings.Fields(string(output)), "v"+d.Version) {
			first, _, _ := strings.Cut(string(output), "\n")
			return errors.Join(fmt.Errorf("the registry served another version of %s, which was removed: %s", arguments[0], first), os.RemoveAll(d.dir))
		}
	}
	return nil
}

const megabyte = 1_000_000

// stage describes how much was downloaded.
func (d *downloader) stage() string {
	return fmt.Sprintf("%d of %d MB", d.received.Load()/megabyte, d.expected.Load()/megabyte)
}

// receive counts bytes that have arrived, or have to be fetched again.
func (d *downloader) receive(bytes int64) {
	d.progress.Set(d.received.Add(bytes), d.expected.Load())
}

// has reports whether a binary of the version is there.
func (d *downloader) has(binary string) bool { return fileExists(filepath.Join(d.dir, binary)) }

// keep extracts a binary from an archive into the directory of the digest that it was verified with, and links it to the version. It is
// false when the archive does not contain it.
func (d *downloader) keep(archive, digest, binary string) (bool, error) {
	path := filepath.Join(d.Into, digest, binary)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	if found, err := extract(archive, binary, path); err != nil || !found {
		return false, err
	}
	return true, d.link(digest, binary)
}

// link makes a binary part of the version.
func (d *downloader) link(digest, binary string) error {
	link := filepath.Join(d.dir, binary)
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink(filepath.Join("..", digest, binary), link)
}

// stallTimeout is how long a server may send nothing.
const stallTimeout = 15 * time.Second

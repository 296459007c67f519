// Command image builds the image of the runner: the runner and kubectl for each platform, and nothing else. It needs neither a Docker
// daemon nor a registry. It writes an OCI archive, which has the same digest whenever it is made from the same commit with the same
// toolchain. With -push it also pushes the image.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// defaultName is the name of the image without a tag, that of the manifests in deploy/. No one can register it, so that an image which a
// node lacks is not pulled from another publisher.
const defaultName = "registry.invalid/deletion-conformance/runner"

// options are the flags of the command.
type options struct {
	source     source
	name       string
	archive    string
	date       string
	platforms  string
	kubernetes string
	repository string
}

func main() {
	given := options{}
	flag.StringVar(&given.source.version, "version", "dev", "`VERSION` of the runner, also the tag of the image")
	flag.StringVar(&given.source.commit, "commit", "", "`COMMIT` of the source, for a label")
	flag.StringVar(&given.date, "date", "1970-01-01T00:00:00Z", "`DATE` of the source in the form of RFC 3339, for a label and the files")
	flag.StringVar(&given.kubernetes, "kubernetes-version", "", "`VERSION` of kubectl (default: that of the module in kubernetes/)")
	flag.StringVar(&given.platforms, "platforms", "linux/amd64,linux/arm64", "`PLATFORMS` of the image, separated by commas")
	flag.StringVar(&given.name, "name", defaultName, "`NAME` of the image in the archive")
	flag.StringVar(&given.archive, "archive", "bin/image.tar", "`FILE` for the archive")
	flag.StringVar(&given.repository, "push", "", "`REPOSITORY` to which the image is also pushed, with the credentials of docker login")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, given)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, given options) error {
	date, err := time.Parse(time.RFC3339, given.date)
	if err != nil {
		return fmt.Errorf("-date: %w", err)
	}
	given.source.date = date.UTC()
	var images []platformImage
	for _, text := range strings.Split(given.platforms, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS != "linux" {
			return fmt.Errorf("-platforms: %q is not a platform of Linux, such as linux/amd64", text)
		}
		programs, err := build(ctx, given.source, given.kubernetes, platform.Architecture)
		if err != nil {
			return err
		}
		image, err := given.source.image(*platform, programs)
		if err != nil {
			return fmt.Errorf("make the image for %s: %w", text, err)
		}
		images = append(images, image)
	}
	index, err := given.source.index(images)
	if err != nil {
		return fmt.Errorf("make the index of the image: %w", err)
	}
	if err := writeArchive(given.archive, given.name+":"+given.source.version, index, given.source.date); err != nil {
		return fmt.Errorf("write %s: %w", given.archive, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s %s:%s %s\n", given.archive, given.name, given.source.version, digest)
	if given.repository == "" {
		return nil
	}
	pushed, err := push(ctx, given.repository, given.source.version, index)
	if err != nil {
		return fmt.Errorf("push the image: %w", err)
	}
	fmt.Println(pushed)
	return nil
}

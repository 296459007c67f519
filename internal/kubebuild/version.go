package kubebuild

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Version is a released version of Kubernetes. All released versions are 1.x.
type Version struct{ Minor, Patch int }

var versionFormat = regexp.MustCompile(`^v?1\.(\d+)\.(\d+)$`)

// ParseVersion reads "1.34.4" or "v1.34.4".
func ParseVersion(text string) (Version, error) {
	match := versionFormat.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		return Version{}, fmt.Errorf("%q is not a version of Kubernetes: write it with its patch, such as 1.34.4", text)
	}
	minor, minorErr := strconv.Atoi(match[1])
	patch, patchErr := strconv.Atoi(match[2])
	if minorErr != nil || patchErr != nil {
		return Version{}, fmt.Errorf("%q is not a version of Kubernetes: its numbers are too large", text)
	}
	return Version{Minor: minor, Patch: patch}, nil
}

// String is the version as people write it: 1.34.4.
func (v Version) String() string { return fmt.Sprintf("1.%d.%d", v.Minor, v.Patch) }

// Tag is the version of the module k8s.io/kubernetes and what a server of that version says of itself: v1.34.4.
func (v Version) Tag() string { return "v" + v.String() }

// staging is the version under which Kubernetes' own libraries (k8s.io/api and the like) are published with this
// version: v0.34.4.
func (v Version) staging() string { return fmt.Sprintf("v0.%d.%d", v.Minor, v.Patch) }

// compare orders versions, as cmp.Compare does.
func (v Version) compare(other Version) int {
	if v.Minor != other.Minor {
		return v.Minor - other.Minor
	}
	return v.Patch - other.Patch
}

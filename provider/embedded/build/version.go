package build

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// ParseVersion parses a released version of Kubernetes, "1.34.4" or "v1.34.4". All released versions are 1.x. The error contains how to write
// one.
func ParseVersion(text string) (*version.Version, error) {
	parsed, err := version.ParseSemantic(strings.TrimSpace(text))
	if err != nil || parsed.Major() != 1 || parsed.PreRelease() != "" || parsed.BuildMetadata() != "" {
		return nil, fmt.Errorf("%q is not a version of Kubernetes: write it with its patch, such as 1.34.4", text)
	}
	return parsed, nil
}

// tag is the version of the module k8s.io/kubernetes, which servers report too: v1.34.4.
func tag(version *version.Version) string { return "v" + version.String() }

// staging is the version of Kubernetes' libraries (k8s.io/api and others) that belongs to this version: v0.34.4.
func staging(version *version.Version) string {
	return fmt.Sprintf("v0.%d.%d", version.Minor(), version.Patch())
}

package containers

import "testing"

func TestLastLine(t *testing.T) {
	for printed, want := range map[string]string{
		"":                                       "",
		"Cannot connect to the Docker daemon.\n": "Cannot connect to the Docker daemon.",
		"[init] Using Kubernetes\nerror: execution phase preflight: no\nk8s.io/util/errors/x.go:1\n": "error: execution phase preflight: no",
		"\t[ERROR Port-6443]: Port 6443 is in use\n[preflight] add --ignore-preflight-errors\n":      "[ERROR Port-6443]: Port 6443 is in use",
	} {
		if got := LastLine([]byte(printed)); got != want {
			t.Errorf("%q: want %q, got %q", printed, want, got)
		}
	}
}

func TestWithoutTag(t *testing.T) {
	for image, want := range map[string]string{
		"kindest/node:v1.35.0":                 "kindest/node:v1.35.0",
		"kindest/node:v1.35.0@sha256:1":        "kindest/node@sha256:1",
		"mirror.example:5000/node@sha256:1":    "mirror.example:5000/node@sha256:1",
		"mirror.example:5000/node:v1@sha256:1": "mirror.example:5000/node@sha256:1",
	} {
		if got := withoutTag(image); got != want {
			t.Errorf("%s: want %s, got %s", image, want, got)
		}
	}
}

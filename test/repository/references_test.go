// Package repository tests the files of the repository that no program of it reads: workflows, pipelines, manifests and documents.
package repository

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
)

// root is the root of the repository.
const root = "../.."

// files returns the text of all files of the repository, by path, but of tests, which contain bad examples, and of results.
func files(t *testing.T) map[string]string {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("this is not a clone: ", err)
	}
	texts := map[string]string{}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "docs/results/") {
			continue
		}
		if content, err := os.ReadFile(filepath.Join(root, path)); err == nil {
			texts[path] = string(content)
		}
	}
	return texts
}

// home returns the module path, the only name that the project has in mind for itself.
func home(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return modfile.ModulePath(content)
}

var (
	// used matches an action, with the rest of the line.
	used = regexp.MustCompile(`(?m)^[ \t#/-]*uses: *(\S+)(.*)$`)
	// pinned matches an action of a commit, with a comment that names its version.
	pinned = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d`)
	// installed matches a program of a Go module.
	installed = regexp.MustCompile(`\bgo (?:install|run) ([\w./-]+)@(\S+)`)
	// release matches a version of a Go module.
	release = regexp.MustCompile(`^v\d+\.\d+\.\d+`)
	// image matches the image of a container in a manifest or document, also of a service of GitLab.
	image = regexp.MustCompile(`(?:[ {]image: *|\{name: *"|--(?:plugin-|kind-)?image[ =]|IMAGE *\??= *)"?([^\s",}]+)`)
	// ownImage matches an image that must be a digest, or in the domain that no one can register.
	ownImage = regexp.MustCompile(`\S*deletion-conformance/(?:runner|kind-node)\b[^/]`)
	// repositoryName matches the name of a repository like the project's, with what is around it.
	repositoryName = regexp.MustCompile(`([\w.-]+[/ ])?([\w-]+)/deletion-conformance(@|\b)`)
)

// refusedImage returns why a manifest must not name an image, or "".
func refusedImage(name string) string {
	registry, _, _ := strings.Cut(name, "/")
	switch {
	case strings.Contains(name, "@sha256:"), strings.HasPrefix(name, "registry.k8s.io/"), strings.HasPrefix(name, "kindest/"):
		return ""
	case strings.HasSuffix(registry, ".invalid"), strings.HasSuffix(registry, ".example.com"):
		return ""
	case strings.ContainsAny(registry, "ABCDEFGHIJKLMNOPQRSTUVWXYZ$<*`("): // a placeholder that is no valid name
		return ""
	}
	return "somebody else could publish it: use a digest, or a placeholder below registry.invalid"
}

func TestWorkflows_PinnedActions(t *testing.T) {
	count := 0
	for path, text := range files(t) {
		for _, action := range used.FindAllStringSubmatch(text, -1) {
			count++
			name := action[1]
			if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "<") || pinned.MatchString(name+action[2]) {
				continue
			}
			t.Errorf("%s: uses: %s: pin it to a commit, and name the version in a comment", path, name)
		}
	}
	NewWithT(t).Expect(count).To(BeNumerically(">", 10))
}

func TestReferences_Versions(t *testing.T) {
	own := home(t)
	count := 0
	for path, text := range files(t) {
		for _, program := range installed.FindAllStringSubmatch(text, -1) {
			count++
			if !release.MatchString(program[2]) || strings.HasPrefix(program[1], own) {
				t.Errorf("%s: %s: name a version of a module that exists; of this project there is none", path, program[0])
			}
		}
	}
	NewWithT(t).Expect(count).To(BeNumerically(">", 0))
}

func TestReferences_Images(t *testing.T) {
	count := 0
	for path, text := range files(t) {
		for _, name := range ownImage.FindAllString(text, -1) {
			if !strings.Contains(name, "registry.invalid/deletion-conformance/") {
				t.Errorf("%s: %q: the project has no registry: write registry.invalid/deletion-conformance/...", path, name)
			}
		}
		if extension := filepath.Ext(path); extension == ".go" || extension == ".json" {
			continue
		}
		for _, found := range image.FindAllStringSubmatch(text, -1) {
			count++
			if refused := refusedImage(found[1]); refused != "" {
				t.Errorf("%s: image %s: %s", path, found[1], refused)
			}
		}
	}
	NewWithT(t).Expect(count).To(BeNumerically(">", 8))
}

// Every mention of the repository is the module path, or a placeholder.
func TestReferences_OneHome(t *testing.T) {
	g := NewWithT(t)
	own := home(t)
	texts := files(t)
	for path, text := range texts {
		for _, name := range repositoryName.FindAllStringSubmatch(text, -1) {
			switch before, owner := name[1], name[2]; {
			case before == "github.com/", owner == "deletion-conformance":
				bare := strings.HasSuffix(before, "repo ") // the argument of gh
				g.Expect(bare || before+owner+"/deletion-conformance" == own).To(BeTrue(), "%s: %s is not %s", path, name[0], own)
				g.Expect(name[3]).NotTo(Equal("@"), "%s: %s: nothing is published there", path, name[0])
			}
		}
	}
	g.Expect(texts["CONTRIBUTING.md"]).To(ContainSubstring("The module path in go.mod, %s, is the only home", own))
}

// The harness has a CA for what it serves, so that the API server never has to trust an unknown server.
func TestFixtures_TLS(t *testing.T) {
	for path, text := range files(t) {
		if strings.HasPrefix(path, "fixtures/") && strings.Contains(text, "insecureSkipTLSVerify") {
			t.Errorf("%s: name a caBundle", path)
		}
	}
}

// Others cannot make a claim of uncommitted changes again.
func TestResults_Commits(t *testing.T) {
	g := NewWithT(t)
	claims, err := filepath.Glob(filepath.Join(root, "docs", "results", "*.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(claims).NotTo(BeEmpty())
	for _, path := range claims {
		content, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		var claim struct{ Runner string }
		g.Expect(json.Unmarshal(content, &claim)).To(Succeed())
		g.Expect(claim.Runner).NotTo(HaveSuffix("-dirty"), "%s is the claim of a runner with uncommitted changes", path)
	}
}

func TestArchitecture_EveryPackage(t *testing.T) {
	g := NewWithT(t)
	texts := files(t)
	// listed matches names in code, and entries such as `suites/*`.
	listed := regexp.MustCompile("`([a-z0-9]+(?:/[a-z0-9]+)*)(/[*])?`")
	layers, _, _ := strings.Cut(texts["docs/architecture.md"], "\n## A run")
	named, below := map[string]bool{}, []string{}
	for _, match := range listed.FindAllStringSubmatch(layers, -1) {
		if match[2] == "" {
			named[match[1]] = true
		} else {
			below = append(below, match[1]+"/")
		}
	}
	for path := range texts {
		folder := filepath.Dir(path)
		if !strings.HasSuffix(path, ".go") || regexp.MustCompile(`^(examples|kubernetes|tools)\b|testdata`).MatchString(folder) ||
			slices.ContainsFunc(below, func(parent string) bool { return strings.HasPrefix(folder+"/", parent) }) {
			continue
		}
		g.Expect(named).To(HaveKey(folder), "docs/architecture.md has a line for each package: %s", folder)
	}
	for folder := range named {
		g.Expect(filepath.Join(root, folder)).To(BeADirectory(), "docs/architecture.md names it: %s", folder)
	}
}

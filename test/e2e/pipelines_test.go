package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// step is a step of an action, or of a job of GitHub Actions.
type step struct {
	ID, Run string
	Env     map[string]string
}

// root returns the root of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// readPipeline reads a pipeline of this repository.
func readPipeline(t *testing.T, into any, path ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
	if err == nil {
		err = yaml.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ran is the result of a script that runs as in a CI system.
type ran struct {
	code int
	out  string
}

// script runs a script with bash in a directory.
func script(t *testing.T, dir, text string, environment ...string) ran {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", file)
	command.Dir = dir
	command.Env = append(os.Environ(), "CI=true", "KUBECONFIG=", "KUBEBUILDER_ASSETS=", "KUBERNETES_VERSION="+filepath.Base(built.kubernetes))
	command.Env = append(command.Env, environment...)
	out, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	t.Logf("%s\nexit %d\n%s", text, command.ProcessState.ExitCode(), out)
	return ran{command.ProcessState.ExitCode(), string(out)}
}

// action is action.yml.
type action struct {
	Inputs  map[string]struct{ Default string }
	Outputs map[string]struct{ Value string }
	Runs    struct{ Steps []step }
}

var (
	inputExpression  = regexp.MustCompile(`\$\{\{ inputs\.([a-z-]+) \}\}`)
	outputExpression = regexp.MustCompile(`^\$\{\{ steps\.test\.outputs\.([a-z-]+) \}\}$`)
)

// steps runs the steps of the action as GitHub does, until one fails, and returns the result of the last one.
func (a action) steps(t *testing.T, workspace string, inputs map[string]string, environment ...string) ran {
	t.Helper()
	last := ran{code: -1}
	for _, step := range a.Runs.Steps {
		if step.Run == "" {
			continue // a step of another action
		}
		given := append([]string{"GITHUB_ACTIONS=true", "GITHUB_ACTION_PATH=" + root(t)}, environment...)
		for name, value := range step.Env {
			given = append(given, name+"="+inputExpression.ReplaceAllStringFunc(value, func(expression string) string {
				name := inputExpression.FindStringSubmatch(expression)[1]
				if value, ok := inputs[name]; ok {
					return value
				}
				return a.Inputs[name].Default
			}))
		}
		if last = script(t, workspace, step.Run, given...); last.code != 0 {
			return last
		}
	}
	return last
}

func TestGitHub_Action(t *testing.T) {
	if built.missing != nil {
		t.Skip(built.missing)
	}
	dead := write(t, kubeconfig(deadServer(t)))
	for _, test := range []struct {
		name       string
		kubeconfig string
		inputs     map[string]string
		code       int
		outputs    []string
		said       []string
	}{
		{
			"a cluster that is conformant", "",
			map[string]string{"provider": "embedded", "label-filter": "finalizers.held", "kubernetes-version": filepath.Base(built.kubernetes),
				"suite": "finalizers\ngraceful\n", "known-failures": write(t, "- {id: finalizers.any-order, reason: not selected}"), "labels": "team=x\ncost-center=1\n", "annotations": "note=a, b", "pod-overlay": write(t, "spec: {nodeSelector: {kubernetes.io/os: linux}}")}, 0,
			[]string{"verdict=conformant", "passed=1", "failed=0"},
			[]string{"::group::Behaviors\n", "::endgroup::\n"},
		},
		{
			"a cluster that nobody reaches", dead,
			map[string]string{"context": "there", "label-filter": "finalizers.held"}, 3,
			[]string{"verdict=run error", "passed=0", "failed=0", "errored=1"},
			[]string{"::group::Behaviors\n", "::endgroup::\n"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			read := action{}
			readPipeline(t, &read, "action.yml")
			workspace := t.TempDir()
			output, summary := filepath.Join(workspace, "output"), filepath.Join(workspace, "summary")

			ended := read.steps(t, workspace, test.inputs, "GITHUB_OUTPUT="+output, "GITHUB_STEP_SUMMARY="+summary, "KUBECONFIG="+test.kubeconfig)

			g.Expect(ended.code).To(Equal(test.code))
			for _, said := range test.said {
				g.Expect(ended.out).To(ContainSubstring(said))
			}
			outputs, err := os.ReadFile(output)
			g.Expect(err).NotTo(HaveOccurred())
			lines := strings.Split(strings.TrimSpace(string(outputs)), "\n")
			g.Expect(lines).To(ContainElements(test.outputs))
			g.Expect(lines).To(HaveLen(len(read.Outputs)))
			for name, value := range read.Outputs {
				key := outputExpression.FindStringSubmatch(value.Value)
				g.Expect(key).To(HaveLen(2), name)
				g.Expect(lines).To(ContainElement(HavePrefix(key[1]+"=")), name)
			}
			reported, err := os.ReadFile(filepath.Join(workspace, read.Inputs["report-dir"].Default, "summary.md"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.ReadFile(summary)).To(Equal(reported))
		})
	}
}

func TestGitHub_Annotations(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const slow = "cascade.background.held-dependent"
	ended := start(t, append(emptyEnvironment(t), "GITHUB_ACTIONS=true"), "--kubeconfig", shared.in(t).admin(t, "annotated"),
		"--label-filter", slow, "--timeout", "30s", long).wait()
	g.Expect(ended.code).To(Equal(1))
	g.Expect(ended.out).To(MatchRegexp(`(?m)^::error file=suites/cascade/\w+\.go,line=\d+,title=cascade\.background\.held-dependent::\S`))
}

// workflow is a workflow of GitHub Actions.
type workflow struct {
	Jobs map[string]struct{ Steps []step }
}

// makes matches the make targets of a step.
var makes = regexp.MustCompile(`\bmake ([a-z -]+)`)

func TestWorkflows_MakeTargets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file, job string
		made      int
	}{
		{"ci.yml", "test", 4},
		{"ci.yml", "check", 1},
		{"ci.yml", "snapshot", 1},
		{"release.yml", "snapshot", 1},
		{"release.yml", "publish", 1},
		{"release.yml", "image", 2},
	} {
		t.Run(test.file+" "+test.job, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			read := workflow{}
			readPipeline(t, &read, ".github", "workflows", test.file)
			made := 0
			for _, step := range read.Jobs[test.job].Steps {
				for _, targets := range makes.FindAllStringSubmatch(step.Run, -1) {
					dry := exec.CommandContext(t.Context(), "make", append([]string{"--dry-run", "-C", root(t)}, strings.Fields(targets[1])...)...)
					out, err := dry.CombinedOutput()
					g.Expect(err).NotTo(HaveOccurred(), "%s: %s", step.Run, out)
					made++
				}
			}
			g.Expect(made).To(Equal(test.made), "steps that make something")
		})
	}
}

// gitlab is ci/gitlab/conformance.yml.
type gitlab struct {
	Base struct {
		BeforeScript []string `json:"before_script"`
		Artifacts    struct{ Reports struct{ JUnit string } }
	} `json:".conformance"`
	Kubeconfig struct{ Script []string } `json:"conformance-kubeconfig"`
}

// includeGitLab is a pipeline of a user.
const includeGitLab = `include:
  - local: conformance.yml
    inputs: {repository: "https://git.example.com/copy", commit: "0123456789012345678901234567890123456789", cluster: kubeconfig, label-filter: finalizers.held}
`

// fakes returns a directory with programs that record their arguments and input, and with the runner.
func fakes(t *testing.T, names ...string) (dir, notes string) {
	t.Helper()
	dir, notes = t.TempDir(), filepath.Join(t.TempDir(), "notes")
	for _, name := range names {
		fake := "#!/bin/sh\n{ echo " + name + " \"$@\"; [ -t 0 ] || cat; } >> '" + notes + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fake), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(built.runner, filepath.Join(dir, "runner")); err != nil {
		t.Fatal(err)
	}
	return dir, notes
}

func TestGitLab(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(root(t), "ci", "gitlab", "conformance.yml"))
	g.Expect(err).NotTo(HaveOccurred())
	_, body, _ := strings.Cut(string(content), "\n---\n")
	body = strings.ReplaceAll(body, "$[[ inputs.label-filter ]]", "finalizers.held")
	body = strings.ReplaceAll(body, "$[[ inputs.repository ]]", "https://git.example.com/copy")
	body = regexp.MustCompile(`\$\[\[ inputs\.[a-z-]+ \]\]`).ReplaceAllString(body, "")
	job := gitlab{}
	g.Expect(yaml.Unmarshal([]byte(body), &job)).To(Succeed())
	programs, notes := fakes(t, "git", "make")
	workspace := t.TempDir()

	ended := script(t, workspace, strings.Join(append(job.Base.BeforeScript, job.Kubeconfig.Script...), "\n"),
		"GITLAB_CI=true", "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+shared.in(t).admin(t, "gitlab"))

	g.Expect(ended.code).To(Equal(0))
	g.Expect(ended.out).To(MatchRegexp(`\x1b\[0Ksection_start:\d+:behaviors\r\x1b\[0KBehaviors\n`))
	g.Expect(ended.out).To(MatchRegexp(`\x1b\[0Ksection_end:\d+:behaviors\r\x1b\[0K\n`))
	g.Expect(filepath.Join(workspace, job.Base.Artifacts.Reports.JUnit)).To(BeARegularFile())
	noted, err := os.ReadFile(notes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(noted)).To(ContainSubstring("git clone --quiet https://git.example.com/copy "))
}

func TestGitLab_Valid(t *testing.T) {
	t.Parallel()
	lint := filepath.Join(root(t), "test", "e2e", "gitlab", "node_modules", ".bin", "gitlab-ci-local")
	if _, err := os.Stat(lint); err != nil {
		t.Skip("gitlab-ci-local is not installed: make browser-deps installs it")
	}
	g := NewWithT(t)
	valid, err := os.ReadFile(filepath.Join(root(t), "ci", "gitlab", "conformance.yml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listJobs(t, lint, valid)).To(MatchRegexp(`(?m)^conformance-kubeconfig `))
	broken := bytes.Replace(valid, []byte("  artifacts:"), []byte("  artefacts:"), 1)
	g.Expect(broken).NotTo(Equal(valid))
	g.Expect(listJobs(t, lint, broken)).To(ContainSubstring("'artefacts' property is not expected"))
}

// listJobs returns the jobs of a pipeline that includes one, according to gitlab-ci-local, which validates with GitLab's schema first.
func listJobs(t *testing.T, lint string, pipeline []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"conformance.yml": pipeline, ".gitlab-ci.yml": []byte(includeGitLab)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"init", "--quiet"}, {"remote", "add", "origin", "https://gitlab.example/a/b.git"}, {"add", "."}} {
		git := exec.CommandContext(t.Context(), "git", arguments...)
		git.Dir = dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git: %v: %s", err, out)
		}
	}
	command := exec.CommandContext(t.Context(), lint, "--list")
	command.Dir, command.Env = dir, append(os.Environ(), "HOME="+dir)
	out, _ := command.CombinedOutput() // the output is checked even when it fails
	return string(out)
}

// jenkinsShell matches a step of the Jenkinsfile that runs a command.
var jenkinsShell = regexp.MustCompile(`sh '([^']+)'`)

func TestJenkins(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(root(t), "ci", "jenkins", "Jenkinsfile"))
	g.Expect(err).NotTo(HaveOccurred())
	shell := jenkinsShell.FindAllSubmatch(content, -1)
	g.Expect(shell).To(HaveLen(1))
	programs, _ := fakes(t)
	workspace := t.TempDir()

	ended := script(t, workspace, string(shell[0][1]), "JENKINS_URL=http://jenkins.example/", "PATH="+programs+":"+os.Getenv("PATH"),
		"KUBECONFIG="+shared.in(t).admin(t, "jenkins"), "LABEL_FILTER=finalizers.held")

	g.Expect(ended.code).To(Equal(0))
	junit := regexp.MustCompile(`junit '([^']+)'`).FindSubmatch(content)
	g.Expect(junit).To(HaveLen(2))
	g.Expect(filepath.Join(workspace, string(junit[1]))).To(BeARegularFile())
}

package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// hostile are values of parameters that try to become other flags, or commands. Commands would create a file.
var hostile = []string{
	"--server https://x --insecure-skip-tls-verify", "--server=https://x", "--kubectl=/bin/sh", "--kubectl FILE", "x\n--kubeconfig=FILE", "x --as admin",
	"$(touch ran)", "`touch ran`", "'; touch ran; '", `"; touch ran; "`, "; touch ran", "x\ntouch ran", `\`, "'$(touch ran)'",
}

// allowed are the flags that pipelines pass. All have a value.
var allowed = regexp.MustCompile(`^--(annotation|context|fixture|known-failures|label|label-filter|namespace|namespace-label|pod-overlay|provider|report-dir|resource|suite)(=|$)`)

// checkArguments fails the test unless the arguments of a runner are allowed flags with values, and those that the pipeline itself passes.
func checkArguments(t *testing.T, arguments []string, fixed ...string) {
	t.Helper()
	NewWithT(t).Expect(arguments).To(ContainElements(fixed))
	for i := 0; i < len(arguments); i++ {
		flag := allowed.FindStringSubmatch(arguments[i])
		switch {
		case flag != nil && flag[2] == "":
			i++ // its value
		case flag == nil && (len(fixed) == 0 || !strings.Contains("\x00"+strings.Join(fixed, "\x00")+"\x00", "\x00"+arguments[i]+"\x00")):
			t.Errorf("a parameter became the argument %q of %q", arguments[i], arguments)
		}
	}
}

// run runs a script with bash, with programs that do nothing, and returns the arguments of the runner.
func run(t *testing.T, text string, environment ...string) []string {
	t.Helper()
	g := NewWithT(t)
	dir, bin := t.TempDir(), t.TempDir()
	recorded := filepath.Join(bin, "arguments")
	for name, body := range map[string]string{
		"runner": `printf '%s\0' "$@" > '` + recorded + `'`, "git": "", "make": "", "go": "", "apt-get": "", "kind": "cat",
	} {
		g.Expect(os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700)).To(Succeed())
	}
	g.Expect(os.Mkdir(filepath.Join(dir, "bin"), 0o700)).To(Succeed())
	g.Expect(os.Symlink(filepath.Join(bin, "runner"), filepath.Join(dir, "bin", "runner"))).To(Succeed()) // that of the action
	command := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", text)
	command.Dir = dir
	command.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "GITHUB_ACTION_PATH=" + dir}, environment...)
	output, err := command.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	g.Expect(filepath.Join(dir, "ran")).NotTo(BeAnExistingFile(), "a parameter became a command")
	arguments, err := os.ReadFile(recorded)
	g.Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimSuffix(string(arguments), "\x00"), "\x00")
}

// read decodes a YAML document of a file in the repository, the last one.
func read(t *testing.T, into any, path string) (text string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(content), "\n---\n")
	if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), into); err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestAction_Parameters(t *testing.T) {
	g := NewWithT(t)
	action := struct {
		Inputs map[string]any
		Runs   struct {
			Steps []struct {
				ID, Run string
				Env     map[string]string
			}
		}
	}{}
	read(t, &action, "action.yml")
	for _, input := range []string{"kubeconfig", "server", "kubectl", "flags", "args"} {
		g.Expect(action.Inputs).NotTo(HaveKey(input))
	}
	for _, step := range action.Runs.Steps {
		g.Expect(step.Run).NotTo(ContainSubstring("${{"), "a value in a script can be a command")
		if step.ID != "test" {
			continue
		}
		for _, value := range hostile {
			environment := []string{}
			for name := range step.Env {
				environment = append(environment, name+"="+value)
			}
			checkArguments(t, run(t, step.Run, environment...))
		}
	}
}

func TestJenkins_Parameters(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(root, "ci", "jenkins", "Jenkinsfile"))
	g.Expect(err).NotTo(HaveOccurred())
	script := regexp.MustCompile(`sh '([^']+)'`).FindSubmatch(content)
	g.Expect(script).To(HaveLen(2))
	parameters := regexp.MustCompile(`(?:string|choice|text)\(name: '(\w+)'`).FindAllSubmatch(content, -1)
	g.Expect(parameters).NotTo(BeEmpty())
	for _, value := range hostile {
		environment := []string{"KUBECONFIG=secret"}
		for _, parameter := range parameters {
			environment = append(environment, string(parameter[1])+"="+value)
		}
		checkArguments(t, run(t, string(script[1]), environment...), "--kubeconfig=secret")
	}
}

// input is an input of GitLab's pipeline.
type input struct {
	Regex   string
	Options []string
}

// accepts reports whether GitLab accepts a value of the input.
func (i input) accepts(value string) bool {
	for _, option := range i.Options {
		if value == option {
			return true
		}
	}
	return i.Regex != "" && regexp.MustCompile(i.Regex).MatchString(value)
}

func TestGitLab_Inputs(t *testing.T) {
	g := NewWithT(t)
	jobs := map[string]struct{ Script, BeforeScript []string }{}
	text := read(t, &jobs, "ci/gitlab/conformance.yml")
	head, body, _ := strings.Cut(text, "\n---\n")
	spec := struct {
		Spec struct{ Inputs map[string]input }
	}{}
	g.Expect(yaml.Unmarshal([]byte(head), &spec)).To(Succeed())
	inputs := spec.Spec.Inputs
	g.Expect(inputs).NotTo(BeEmpty())
	for _, refused := range []struct{ input, value string }{
		{"repository", "http://x"}, {"commit", "main"}, {"cluster", "--server=https://x"}, {"fixture", "../x"}, {"fixture", "/x"}, {"known-failures", "a/../x"},
	} {
		g.Expect(inputs[refused.input].accepts(refused.value)).To(BeFalse(), "%s: %s", refused.input, refused.value)
	}
	good := map[string]string{"repository": "https://x/y", "commit": strings.Repeat("0", 40), "label-filter": "!(a.b && {c})", "resource": "a.b/v1,c.d"}
	for _, value := range append([]string{""}, hostile...) {
		filled := body
		for name, input := range inputs {
			given := good[name]
			if value != "" && input.accepts(value) {
				given = value
			}
			filled = strings.ReplaceAll(filled, "$[[ inputs."+name+" ]]", given)
		}
		rendered := map[string]struct {
			Script       []string
			BeforeScript []string `json:"before_script"`
		}{}
		g.Expect(yaml.Unmarshal([]byte(filled), &rendered)).To(Succeed())
		for job, fixed := range map[string][]string{
			"conformance-kubeconfig": {"--kubeconfig=secret"},
			"conformance-kind":       {"--server=https://docker:6443", "--tls-server-name=localhost"},
		} {
			lines := slices.Concat(rendered[".conformance"].BeforeScript, rendered[job].Script)
			checkArguments(t, run(t, strings.Join(lines, "\n"), "KUBECONFIG=secret", "KUBERNETES="+value, "FLAGS="+value, "CLUSTER="+value), fixed...)
		}
	}
}

func TestTekton_Parameters(t *testing.T) {
	g := NewWithT(t)
	task := struct {
		Spec struct {
			Params []struct{ Name, Type string }
			Steps  []struct {
				Image         string
				Command, Args []string
			}
		}
	}{}
	read(t, &task, "ci/tekton/task.yaml")
	g.Expect(task.Spec.Params).NotTo(BeEmpty())
	for _, step := range task.Spec.Steps {
		g.Expect(append(step.Command, step.Image)).NotTo(ContainElement(ContainSubstring("$(")))
		for _, value := range hostile {
			rendered := []string{}
			for _, argument := range step.Args {
				for _, parameter := range task.Spec.Params {
					g.Expect(parameter.Type).To(Equal("string"), "an array becomes arguments")
					argument = strings.ReplaceAll(argument, "$(params."+parameter.Name+")", value)
				}
				rendered = append(rendered, argument)
			}
			checkArguments(t, rendered, "--in-cluster")
		}
	}
}

// Workflows of Argo and Testkube have no parameters, so a user who starts one chooses neither the image nor arguments.
func TestArgoAndTestkube_Parameters(t *testing.T) {
	g := NewWithT(t)
	for _, path := range []string{"ci/argo/workflowtemplate.yaml", "ci/testkube/testworkflow.yaml"} {
		text := read(t, &struct{}{}, path)
		g.Expect(text).To(ContainSubstring("--in-cluster"))
		g.Expect(text).NotTo(ContainSubstring("{{"), path)
	}
}

// workflow is a workflow of GitHub Actions.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Permissions map[string]string
		Steps       []struct {
			Uses, Run string
			With, Env map[string]any
		}
	}
}

func TestWorkflows_Permissions(t *testing.T) {
	g := NewWithT(t)
	paths, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(paths).NotTo(BeEmpty())
	for _, path := range paths {
		path, err := filepath.Rel(root, path)
		g.Expect(err).NotTo(HaveOccurred())
		its := workflow{}
		text := read(t, &its, path)
		g.Expect(its.Permissions).To(Equal(map[string]string{"contents": "read"}), path)
		g.Expect(text).NotTo(ContainSubstring("checks: write"), path)
		for name, job := range its.Jobs {
			encoded, err := yaml.Marshal(job.Steps)
			g.Expect(err).NotTo(HaveOccurred())
			if job.Permissions["contents"] == "write" {
				g.Expect(string(encoded)).NotTo(ContainSubstring("secrets."), "%s: %s may write and has credentials of others", path, name)
			}
			for _, step := range job.Steps {
				g.Expect(step.Run).NotTo(ContainSubstring("${{"), "%s: %s: a value in a script can be a command", path, name)
				if strings.HasPrefix(step.Uses, "actions/checkout@") {
					g.Expect(step.With).To(HaveKeyWithValue("persist-credentials", false), "%s: %s", path, name)
				}
			}
		}
	}
}

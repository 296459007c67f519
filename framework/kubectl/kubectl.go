// Package kubectl runs a real kubectl for a spec and returns its requests, exit code and output.
//
//	result := kubectl.New(ctx, cluster).Run(ctx, "delete", "configmap", object.GetName())
//	Expect(result).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(object)))
package kubectl

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/framework"
	internal "github.com/deletion-conformance/deletion-conformance/internal/engine/kubectl"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Request is a request that kubectl made for an object or a collection. Discovery is not included.
type Request = internal.Request

// Command runs kubectl for one spec: in the spec's namespace, with the credentials of the run, and without the user's configuration of
// kubectl.
type Command struct {
	cluster *framework.Cluster
	folder  string
	gate    *internal.Gate
	input   string
}

// New returns a kubectl for the spec.
func New(ctx context.Context, cluster *framework.Cluster) *Command {
	ginkgo.GinkgoHelper()
	cluster.ExpectDeletions()
	command := &Command{cluster: cluster, gate: &internal.Gate{}}
	folder, err := cluster.Session().Commands.MakeFolder()
	command.mustRun(ctx, err)
	command.folder = folder
	ginkgo.DeferCleanup(os.RemoveAll, folder)
	ginkgo.DeferCleanup(command.gate.Release)
	return command
}

// Selector is a label selector for the spec's objects.
func Selector(cluster *framework.Cluster) string { return labels.Set(cluster.Labels()).String() }

// mustRun ends the spec as errored when kubectl, or a file for it, is not available.
func (k *Command) mustRun(ctx context.Context, err error) {
	ginkgo.GinkgoHelper()
	if err != nil {
		k.cluster.Check(ctx, framework.Response{Request: "run kubectl", Err: err})
	}
}

// IsAtLeast reports whether kubectl has at least this minor version ("1.36").
func (k *Command) IsAtLeast(minor string) bool {
	present, err := version.ParseGeneric(k.cluster.Session().Kubectl.Version)
	return err == nil && present.AtLeast(version.MustParseGeneric(minor))
}

// WithInput returns the same kubectl with a standard input.
func (k *Command) WithInput(input string) *Command {
	reading := *k
	reading.input = input
	return &reading
}

// Below makes the API of the cluster appear below a path, as a proxy of several clusters does.
func (k *Command) Below(path string) *Command {
	k.gate.Prefix = path
	return k
}

// Manifest returns the manifest of an object without the fields that the server sets.
func Manifest(object *framework.Object) string {
	ginkgo.GinkgoHelper()
	manifest, err := yaml.Marshal(client.Unsaved(object).Object)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("write a manifest of %s: %v", client.Title(object), err))
	}
	return string(manifest)
}

// Write writes the manifest of an object to a file of the spec, and returns its path. The name may contain directories.
func (k *Command) Write(ctx context.Context, name string, object *framework.Object) string {
	ginkgo.GinkgoHelper()
	return k.WriteText(ctx, name, Manifest(object))
}

// WriteText writes a file of the spec, and returns its path. The name may contain directories.
func (k *Command) WriteText(ctx context.Context, name, text string) string {
	ginkgo.GinkgoHelper()
	path := filepath.Join(k.folder, name)
	k.mustRun(ctx, os.MkdirAll(filepath.Dir(path), 0o700))
	k.mustRun(ctx, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Delay delays requests with a method until Release.
func (k *Command) Delay(method string) {
	k.gate.Delay(func(request Request) bool { return request.Method == method })
}

// Fail answers requests for an object with 500 instead of the server, until Release.
func (k *Command) Fail(method string, object *framework.Object) {
	k.gate.Fail(func(request Request) bool { return request.Method == method && request.Name == object.GetName() })
}

// DelayCollections delays lists and watches until Release.
func (k *Command) DelayCollections() {
	k.gate.Delay(func(request Request) bool { return request.Method == http.MethodGet && request.Name == "" })
}

// Release releases delayed requests, and lets the server answer all later ones.
func (k *Command) Release() { k.gate.Release() }

// Run runs kubectl and waits until it ends.
func (k *Command) Run(ctx context.Context, arguments ...string) Result {
	ginkgo.GinkgoHelper()
	return k.Start(ctx, arguments...).Wait(ctx)
}

// Start starts kubectl. It is killed when the spec ends.
func (k *Command) Start(ctx context.Context, arguments ...string) *Process {
	ginkgo.GinkgoHelper()
	if selectsAll(arguments) {
		framework.MustOwnNamespace(k.cluster, "kubectl "+strings.Join(arguments, " "))
	}
	// The context is that of the spec node that starts it.
	command, err := k.cluster.Session().Commands.Start(ctx, k.gate, k.cluster.Namespace(), k.input, arguments...)
	k.mustRun(ctx, err)
	return &Process{cluster: k.cluster, command: command}
}

// selectsAll reports whether arguments of kubectl select everything in a namespace.
func selectsAll(arguments []string) bool {
	return slices.Contains(arguments, "--all") && !slices.Contains(arguments, "--selector") && !slices.Contains(arguments, "-l")
}

// Process is a running kubectl.
type Process struct {
	cluster *framework.Cluster
	command *internal.Command
}

// AwaitRequest waits until kubectl has made a request that matches, with or without a response.
func (r *Process) AwaitRequest(ctx context.Context, matcher types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	r.AwaitRequests(ctx, 1, matcher)
}

// AwaitRequests waits until kubectl has made a number of requests that match.
func (r *Process) AwaitRequests(ctx context.Context, count int, matcher types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	var matching []Request
	made, found := gomega.ContainElement(matcher, &matching), false
	var run Result
	gomega.Eventually(ctx, func() bool {
		ended := r.hasEnded()
		run = r.partialResult()
		found, _ = made.Match(run.Requests)
		found = found && len(matching) >= count
		return found || ended
	}).Should(gomega.BeTrue(), func() string { return made.FailureMessage(run.Requests) })
	if !found {
		r.check(ctx, run)
		ginkgo.Fail("kubectl exited: " + run.GomegaString() + "\n" + made.FailureMessage(run.Requests))
	}
}

func (r *Process) hasEnded() bool {
	select {
	case <-r.command.Ended():
		return true
	default:
		return false
	}
}

func (r *Process) partialResult() Result {
	return Result{Arguments: r.command.Arguments, ExitCode: -1, Requests: r.command.Requests()}
}

// Wait waits until kubectl ends. It ends the spec as skipped when a permission for kubectl's requests is missing, and as errored when the
// API server did not decide.
func (r *Process) Wait(ctx context.Context) Result {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, r.command.Ended()).Should(gomega.BeClosed(), func() string {
		return "kubectl must exit; " + r.partialResult().GomegaString()
	})
	result := r.command.Result()
	run := r.partialResult()
	run.ExitCode, run.Stdout, run.Stderr = result.ExitCode, result.Stdout, result.Stderr
	r.check(ctx, run)
	if ctx.Err() != nil {
		ginkgo.Fail(fmt.Sprintf("kubectl did not end in time: %v", context.Cause(ctx)))
	}
	return run
}

// check ends the spec when a permission is missing, when the environment's admission refused a request, or when the API server did not
// decide.
func (r *Process) check(ctx context.Context, run Result) {
	ginkgo.GinkgoHelper()
	for _, request := range run.Requests {
		if request.NotSent != nil {
			r.cluster.Check(ctx, framework.Response{Request: request.Method + " " + request.Path, Err: request.NotSent})
		}
		if request.StatusCode < http.StatusBadRequest {
			continue
		}
		response := request.ErrorResponse(request.StatusCode, request.Refusal)
		if _, byAdmission := response.RefusedByAdmission(); byAdmission || request.StatusCode == http.StatusForbidden || request.StatusCode >= http.StatusInternalServerError {
			r.cluster.Check(ctx, response)
		}
	}
}

// Result is the result of a kubectl command.
type Result struct {
	Arguments []string
	// ExitCode is its exit code.
	ExitCode int
	// Stdout and Stderr are its output.
	Stdout, Stderr string
	// Requests are its requests, the oldest first.
	Requests []Request
}

// Writes describes its requests except reads, in order: "POST pods/eviction".
func (r Result) Writes() []string {
	var writes []string
	for _, request := range r.Requests {
		if request.Method != http.MethodGet {
			writes = append(writes, strings.TrimSuffix(request.Method+" "+request.Object.Resource+"/"+request.Subresource, "/"))
		}
	}
	return writes
}

// deleted returns the names of the objects that it deleted; empty for a collection.
func (r Result) deleted() []string {
	var names []string
	for _, request := range r.Requests {
		if request.Method == http.MethodDelete {
			names = append(names, request.Name)
		}
	}
	return names
}

// evicted returns the names of the pods that it evicted, possibly repeated.
func (r Result) evicted() []string {
	var names []string
	for _, request := range r.Requests {
		if request.Subresource == "eviction" {
			names = append(names, request.Name)
		}
	}
	return names
}

// DeleteOptions returns the options of its deletes and evictions.
func (r Result) DeleteOptions() []metav1.DeleteOptions {
	var sent []metav1.DeleteOptions
	for _, request := range r.Requests {
		if request.Options != nil {
			sent = append(sent, *request.Options)
		}
	}
	return sent
}

// GomegaString describes the command and its result, for failure messages.
func (r Result) GomegaString() string {
	text := "kubectl " + strings.Join(r.Arguments, " ")
	if r.ExitCode >= 0 {
		text += fmt.Sprintf("\n  exit code %d", r.ExitCode)
	}
	for _, said := range []string{r.Stdout, r.Stderr} {
		for line := range strings.Lines(said) {
			text += "\n  | " + strings.TrimSuffix(line, "\n")
		}
	}
	for _, request := range r.Requests {
		text += "\n  " + request.String()
	}
	return text
}

// exitTemplate is the failure message for exit codes.
var exitTemplate = template.Must(gcustom.ParseTemplate("Expected kubectl {{.To}} exit with code {{.Data}}, got:\n{{.Actual.GomegaString}}"))

// HaveExitCode matches a kubectl that ended with this exit code.
func HaveExitCode(code int) types.GomegaMatcher {
	return gcustom.MakeMatcher(func(run Result) (bool, error) { return run.ExitCode == code, nil }).
		WithPrecompiledTemplate(exitTemplate, code)
}

// HaveDeleted matches a kubectl that deleted exactly these objects, individually and once.
func HaveDeleted(objects ...*framework.Object) types.GomegaMatcher {
	return naming("delete", Result.deleted, objects)
}

// HaveEvicted matches a kubectl that evicted exactly these pods, once each.
func HaveEvicted(pods ...*framework.Object) types.GomegaMatcher {
	return naming("evict", Result.evicted, pods)
}

// namingTemplate is the failure message for deletes and evictions.
var namingTemplate = template.Must(gcustom.ParseTemplate("Expected kubectl {{.To}} {{.Data}}, got:\n{{.Actual.GomegaString}}"))

func naming(what string, asked func(Result) []string, objects []*framework.Object) types.GomegaMatcher {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return gcustom.MakeMatcher(func(run Result) (bool, error) {
		return slices.Equal(slices.Sorted(slices.Values(asked(run))), slices.Sorted(slices.Values(names))), nil
	}).
		WithPrecompiledTemplate(namingTemplate, fmt.Sprintf("send exactly one request to %s each of [%s]", what, strings.Join(names, ", ")))
}

// ForObject matches a request for an object by its name.
func ForObject(method string, object *framework.Object) types.GomegaMatcher {
	return gomega.And(gomega.HaveField("Method", method), gomega.HaveField("Name", object.GetName()))
}

// Watching matches a watch request.
func Watching() types.GomegaMatcher { return gomega.HaveField("Watch", true) }

// MustOwnAll skips the spec when the namespace contains objects of a kind that the run did not create, which --all would delete.
func MustOwnAll(ctx context.Context, cluster *framework.Cluster, like *framework.Object) {
	ginkgo.GinkgoHelper()
	collection := cluster.CollectionOf(ctx, cluster.Prepare(ctx, like))
	framework.MustOwnNamespace(cluster, "use all "+collection.Resource.Resource)
	others, response := cluster.Session().Harness.List(ctx, collection, client.RunLabel+"!="+cluster.Session().Run)
	framework.Require(cluster.Check(ctx, response))
	if len(others) > 0 {
		ginkgo.Skip(fmt.Sprintf("namespace %[2]q has %[1]s, which this run did not create and kubectl delete --all would delete", client.Title(others[0]), cluster.Namespace()))
	}
}

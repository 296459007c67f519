package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

const (
	// hostileMemory limits the memory of each process of a run, in bytes.
	hostileMemory = 512 << 20
	// hostileTime limits a run with the flags of these tests. Its teardown gives up after 90 s.
	hostileTime = 2 * time.Minute
	// gibibyte is more than any request needs.
	gibibyte = 1 << 30
)

// hostile is a faulty response of a server. It reports whether it applied.
type hostile func(writer http.ResponseWriter, request *http.Request, next http.Handler) bool

// answering returns the same body to matching requests.
func answering(fits func(*http.Request) bool, body string) hostile {
	return func(writer http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		if !fits(request) {
			return false
		}
		writer.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(writer, body)
		return true
	}
}

// streaming returns an endless response to matching requests: a beginning, and repeated parts.
func streaming(fits func(*http.Request) bool, begin, again string) hostile {
	return func(writer http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		if !fits(request) {
			return false
		}
		writer.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(writer, begin)
		for written := 0; written < gibibyte && err == nil; written += len(again) {
			_, err = io.WriteString(writer, again)
		}
		return true
	}
}

// altering changes the body of the real response to matching requests.
func altering(fits func(*http.Request) bool, alter func([]byte) []byte) hostile {
	return func(writer http.ResponseWriter, request *http.Request, next http.Handler) bool {
		if !fits(request) {
			return false
		}
		real := httptest.NewRecorder()
		next.ServeHTTP(real, request)
		body := real.Body.Bytes()
		writer.Header().Set("Content-Type", "application/json")
		writer.Header().Set("Content-Length", fmt.Sprint(len(body)))
		altered := alter(body)
		if len(altered) != len(body) && !json.Valid(altered) { // half of it: the connection breaks
			writer.WriteHeader(real.Code)
			_, _ = writer.Write(altered)
			panic(http.ErrAbortHandler)
		}
		writer.Header().Set("Content-Length", fmt.Sprint(len(altered)))
		writer.WriteHeader(real.Code)
		_, _ = writer.Write(altered)
		return true
	}
}

// rewriting changes each line of watches, given the line and an earlier one that was held back.
func rewriting(line func(line, before []byte) []byte) hostile {
	return func(writer http.ResponseWriter, request *http.Request, next http.Handler) bool {
		if isWatch(request) {
			next.ServeHTTP(&rewriter{ResponseWriter: writer, line: line}, request)
		}
		return isWatch(request)
	}
}

// rewriter changes a watch line by line.
type rewriter struct {
	http.ResponseWriter
	line             func(line, before []byte) []byte
	unended, waiting []byte
}

func (r *rewriter) Write(content []byte) (int, error) {
	r.unended = append(r.unended, content...)
	for {
		end := bytes.IndexByte(r.unended, '\n') + 1
		if end == 0 {
			return len(content), nil
		}
		one := bytes.Clone(r.unended[:end])
		r.unended = r.unended[end:]
		shown := r.line(one, r.waiting)
		if r.waiting = nil; shown == nil {
			r.waiting = one
			continue
		}
		if _, err := r.ResponseWriter.Write(shown); err != nil {
			return 0, err
		}
	}
}

// Unwrap permits flushing.
func (r *rewriter) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func isWatch(request *http.Request) bool { return request.URL.Query().Get("watch") != "" }

// isObject reports whether a request is for objects, and not a watch.
func isObject(request *http.Request) bool {
	return !isWatch(request) && strings.Contains(request.URL.Path, "/namespaces")
}

func isDiscovery(request *http.Request) bool {
	return strings.Count(strings.Trim(request.URL.Path, "/"), "/") <= 2 && !strings.Contains(request.URL.Path, "namespaces") &&
		(strings.HasPrefix(request.URL.Path, "/api/") || strings.HasPrefix(request.URL.Path, "/apis") || request.URL.Path == "/api")
}

// objectsOf reports whether a request lists objects of a resource.
func objectsOf(resource string) func(*http.Request) bool {
	return func(request *http.Request) bool {
		return request.Method == http.MethodGet && !isWatch(request) && strings.HasSuffix(request.URL.Path, "/"+resource)
	}
}

func isVersion(request *http.Request) bool { return request.URL.Path == "/version" }

func isAny(request *http.Request) bool { return !isVersion(request) }

func TestRun_HostileServer(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	const event = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"b","resourceVersion":"1"},"data":{"x":"`
	for _, test := range []struct {
		name string
		does hostile
		// hides is set when the response hides events, which then count as missing.
		hides bool
	}{
		{"malformed", answering(isAny, `{"kind": nonsense`), false},
		{"half of it", altering(isObject, func(body []byte) []byte { return body[:len(body)/2] }), false},
		{"wrong kinds", altering(isObject, func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(`"kind":"`), []byte(`"kind":"No`)) }), false},
		{"the version is large", streaming(isVersion, `{"gitVersion":"v1.36.3","x":"`, strings.Repeat("a", 1<<20)), false},
		{"an object is large", streaming(isObject, `{"kind":"ConfigMap","apiVersion":"v1","data":{"x":"`, strings.Repeat("a", 1<<20)), false},
		{"discovery is large", streaming(isDiscovery, `{"kind":"APIGroupList","groups":[{"name":"a"}`, strings.Repeat(`,{"name":"a"}`, 1<<16)), false},
		{"discovery is about something else", answering(isDiscovery, `{"kind":"Pod","apiVersion":"v1"}`), false},
		{"a list has no end", answering(objectsOf("nodes"), `{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":"more"},"items":[]}`), false},
		{"watches are garbage without end", streaming(isWatch, "", strings.Repeat("\xff{[", 1<<10)), true},
		{"watches have no end", streaming(isWatch, "", event+strings.Repeat("a", 1<<12)+"\"}}}\n"), true},
		{"a watch shows one object without end", streaming(isWatch, event, strings.Repeat("a", 1<<20)), true},
		{"watches repeat themselves", rewriting(func(line, _ []byte) []byte { return append(line, line...) }), true},
		{"watches are out of order", rewriting(func(line, before []byte) []byte {
			if before == nil {
				return nil // sent after the next one
			}
			return append(line, before...)
		}), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := shared.in(t)
			kubeconfig := c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
				return func(writer http.ResponseWriter, request *http.Request) {
					if !test.does(writer, request, next) {
						next.ServeHTTP(writer, request)
					}
				}
			})
			ended := c.hostileRun(t, kubeconfig)
			g := NewWithT(t)
			switch {
			case test.name == "a list has no end": // it only hides the nodes
				g.Expect(ended.code).To(Equal(0))
			case test.hides:
				g.Expect(ended.code).To(BeElementOf(0, 1, 3, 4), "it comes to a verdict")
			default:
				g.Expect(ended.code).To(BeElementOf(3, 4))
				g.Expect(reasons(ended.report(t).Clusters[0], v1alpha1.Failed)).To(BeEmpty())
			}
		})
	}
}

// hostileRun runs on a faulty server. Whatever its result, it stays within limits.
func (c *cluster) hostileRun(t *testing.T, kubeconfig string) outcome {
	t.Helper()
	g := NewWithT(t)
	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "2", "--timeout", "10s", "--wait-timeout", "4s", "--request-timeout", "5s",
		"--label-filter", strings.Join(quick, " || ")+" || cascade.background.every-level")
	most := ran.mostMemory()
	ended := ran.wait()
	g.Expect(ended.took).To(BeNumerically("<", hostileTime))
	if runtime.GOOS == "linux" {
		g.Expect(<-most).To(And(BeNumerically(">", 0), BeNumerically("<", hostileMemory)), "of the runner and its workers, whichever took most")
	}
	g.Expect(ended.out + ended.errOut).NotTo(Or(ContainSubstring("goroutine"), ContainSubstring("panic"), ContainSubstring("hunter2")))
	whole := ended.report(t)
	g.Expect(whole.Clusters).To(HaveLen(1))
	g.Expect(whole.Clusters[0].Results).To(HaveLen(len(catalog(t))))
	g.Expect(ended.inJUnit(t)).NotTo(BeEmpty())
	if len(c.mentioning(t, whole.RunID)) > 0 { // objects that such a server did not let the run remove
		g.Expect(whole.Clusters[0].LeftBehind + whole.Clusters[0].Problem).NotTo(BeEmpty())
		_ = start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", c.admin(t, "hostile"), "--run", whole.RunID).wait()
		g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
	}
	return ended
}

// mostMemory sends how many bytes the runner or one of its workers used at most, when the run has ended. Linux only. The
// system's own figure at the end of a process is that of its parent, if that is higher.
func (r *running) mostMemory() <-chan int64 {
	most := make(chan int64, 1)
	runner := fmt.Sprintf("/proc/%d", r.command.Process.Pid)
	go func() {
		var peak int64
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-r.ended:
				most <- peak
				return
			case <-again.C:
				peak = max(peak, peakOf(runner))
				lists, _ := filepath.Glob(runner + "/task/*/children")
				for _, list := range lists {
					children, _ := os.ReadFile(list)
					for child := range strings.FieldsSeq(string(children)) {
						peak = max(peak, peakOf("/proc/"+child))
					}
				}
			}
		}
	}()
	return most
}

// peakOf returns how many bytes a process has used at most, or 0 if it has ended.
func peakOf(process string) int64 {
	status, _ := os.ReadFile(filepath.Join(process, "status"))
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kibibytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kibibytes << 10
		}
	}
	return 0
}

func TestCredentials_Redirect(t *testing.T) {
	t.Parallel()
	for name, fits := range map[string]func(*http.Request) bool{"all but the version": isAny, "watches": isWatch} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := shared.in(t)
			var received sync.Map
			var asked atomic.Int32
			other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
				received.Store(asked.Add(1), request.Header)
			}))
			t.Cleanup(other.Close)
			kubeconfig := c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
				return func(writer http.ResponseWriter, request *http.Request) {
					if fits(request) {
						http.Redirect(writer, request, other.URL+request.URL.RequestURI(), http.StatusTemporaryRedirect)
						return
					}
					next.ServeHTTP(writer, request)
				}
			})
			ended := c.hostileRun(t, kubeconfig)

			g.Expect(asked.Load()).To(BeZero(), "what the other server was sent: %v", &received)
			g.Expect(ended.code).NotTo(Equal(0))
			if name != "watches" {
				g.Expect(ended.code).To(Equal(3))
				g.Expect(ended.cluster(t).Problem).To(ContainSubstring("the server redirects to another server, " + other.URL))
			}
		})
	}
}

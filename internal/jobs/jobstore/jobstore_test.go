package jobstore

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"runtime"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
)

var pod = Pod{Namespace: "ns", Name: "pod", Job: "job", JobUID: "job-uid", Index: 1}

// store is an API server with the ConfigMaps of a namespace, and a Job with this number of completions.
type store struct {
	config      *rest.Config
	completions int64

	mu         sync.Mutex
	configMaps map[string]corev1.ConfigMap
	// writes are the methods and names of the writes.
	writes []string
	// answered is called after each request for a ConfigMap.
	answered func()
}

func newStore(t *testing.T, configMaps ...corev1.ConfigMap) *store {
	t.Helper()
	s := &store{completions: 2, configMaps: map[string]corev1.ConfigMap{}, answered: func() {}}
	for _, configMap := range configMaps {
		s.configMaps[configMap.Name] = configMap
	}
	s.config, _ = apiservertest.Start(t, s.serve)
	return s
}

func (s *store) serve(response http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, name := corev1.ConfigMap{}, path.Base(request.URL.Path)
	switch {
	case name == "job":
		_, _ = fmt.Fprintf(response, `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "uid": "job-uid"},
			"spec": {"completionMode": "Indexed", "completions": %d}}`, s.completions)
		return
	case name == "configmaps" && request.Method == http.MethodGet:
		list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
		for _, configMap := range s.configMaps {
			list.Items = append(list.Items, configMap)
		}
		_ = json.NewEncoder(response).Encode(list)
		return
	case request.Method == http.MethodPost || request.Method == http.MethodPut:
		_ = json.NewDecoder(request.Body).Decode(&body)
		name = body.Name
	}
	defer s.answered()
	found, ok := s.configMaps[name]
	switch {
	case !ok && request.Method != http.MethodPost:
		response.WriteHeader(http.StatusNotFound)
		_, _ = response.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`))
		return
	case request.Method == http.MethodGet:
		_ = json.NewEncoder(response).Encode(found)
		return
	}
	written := request.Method + " " + name
	s.configMaps[name] = body
	if request.Method == http.MethodDelete {
		options := metav1.DeleteOptions{}
		_ = json.NewDecoder(request.Body).Decode(&options)
		delete(s.configMaps, name)
		if options.Preconditions == nil || *options.Preconditions.UID != found.UID {
			written += " of any uid"
		}
	}
	s.writes = append(s.writes, written)
	_ = json.NewEncoder(response).Encode(body)
}

// owner is an owner reference.
func owner(kind, name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "batch/v1", Kind: kind, Name: name, UID: types.UID(uid)}
}

// configMap returns a ConfigMap with the labels that the writer sets.
func configMap(name, content string, owners ...metav1.OwnerReference) corev1.ConfigMap {
	return corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: name, UID: types.UID("uid-" + name), OwnerReferences: owners,
		Labels: map[string]string{JobLabel: pod.Job, contentLabel: content, indexLabel: "1"},
	}}
}

// progressMap returns the ConfigMap with the progress of an index, which the Job owns.
func progressMap(index int, progress string, log []byte) corev1.ConfigMap {
	stored := configMap(progressName(pod.Job, index), progressContent, owner("Job", pod.Job, pod.JobUID))
	stored.Data, stored.BinaryData = map[string]string{progressKey: progress}, map[string][]byte{logKey: log}
	return stored
}

// bomb returns zeros, compressed a thousand times.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err := writer.Write(make([]byte, size))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(writer.Close()).To(Succeed())
	return compressed.Bytes()
}

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestReader_JobIndexes(t *testing.T) {
	s := newStore(t)
	reader, err := NewReader(s.config, pod.Namespace, pod.Job)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for completions, valid := range map[int64]bool{
		-1: false, 0: false, 1: true, 10_000: true, 10_001: false, 100_000_000: false, 1_000_000_000_000: false, 1<<32 + 1: false,
	} {
		t.Run(fmt.Sprint(completions), func(t *testing.T) {
			g := NewWithT(t)
			s.completions = completions
			state, err := reader.Job(t.Context())
			if valid {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(state.Indexes).To(BeEquivalentTo(completions))
				return
			}
			g.Expect(err).To(MatchError(ErrIndexes))
			g.Expect(err).To(MatchError(fmt.Sprintf(
				`invalid number of indexes: Job "job" in namespace "ns" has %d; a run has 1 to 10000 shards or clusters`, completions)))
		})
	}
}

func TestReader_Progress(t *testing.T) {
	state := State{UID: pod.JobUID, Indexes: 2}
	named := func(name string, progress string) corev1.ConfigMap {
		renamed := progressMap(0, progress, bomb(t, 0))
		renamed.Name = name
		return renamed
	}
	ofAnotherJob := progressMap(1, `{"index": 1}`, nil)
	ofAnotherJob.OwnerReferences[0].UID = "another-uid"
	unowned := progressMap(1, `{"index": 1}`, nil)
	unowned.OwnerReferences = nil
	for name, test := range map[string]struct {
		stored corev1.ConfigMap
		want   string
	}{
		"of an earlier Job":     {stored: ofAnotherJob},
		"with copied labels":    {stored: unowned},
		"of no index":           {stored: named("job-progress-00", `{"index": 0}`)},
		"of a missing index":    {stored: named("job-progress-2", `{"index": 2}`)},
		"with another name":     {stored: named("another", `{"index": 1}`)},
		"of another index":      {progressMap(1, `{"index": 0}`, bomb(t, 0)), "it is that of index 0"},
		"with many parts":       {progressMap(1, `{"index": 1, "report": {"generation": 1, "parts": 1000000000000}}`, bomb(t, 0)), "a report of 1000000000000 parts"},
		"with negative parts":   {progressMap(1, `{"index": 1, "report": {"generation": 1, "parts": -1}}`, bomb(t, 0)), "a report of -1 parts"},
		"with many generations": {progressMap(1, `{"index": 1, "report": {"generation": 9223372036854775807, "parts": 1}}`, bomb(t, 0)), "number 9223372036854775807"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader, err := NewReader(newStore(t, test.stored, progressMap(0, `{"index": 0, "attempt": "pod"}`, bomb(t, 0))).config, pod.Namespace, pod.Job)
			g.Expect(err).NotTo(HaveOccurred())
			progress, err := reader.Progress(t.Context(), state)
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(progress).To(HaveExactElements(HaveField("Attempt", "pod")))
				return
			}
			g.Expect(err).To(MatchError(And(
				HavePrefix(`read the progress in ConfigMap "job-progress-1" in namespace "ns": `), ContainSubstring(test.want), HaveSuffix("delete the ConfigMap"))))
		})
	}
}

func TestReader_LogBomb(t *testing.T) {
	g := NewWithT(t)
	const indexes = 50
	stored, log := make([]corev1.ConfigMap, indexes), bomb(t, 64<<20)
	for index := range stored {
		stored[index] = progressMap(index, fmt.Sprintf(`{"index": %d}`, index), log)
	}
	reader, err := NewReader(newStore(t, stored...).config, pod.Namespace, pod.Job)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(allocated(func() {
		progress, err := reader.Progress(t.Context(), State{UID: pod.JobUID, Indexes: indexes})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(progress).To(HaveLen(indexes))
		_, err = progress[0].Log()
		g.Expect(err).To(MatchError("it is larger than 256 KiB"))
	})).To(BeNumerically("<", 64<<20))
}

func TestExpand(t *testing.T) {
	g := NewWithT(t)
	noise := make([]byte, 2<<20)
	_, err := rand.Read(noise)
	g.Expect(err).NotTo(HaveOccurred())
	for _, content := range [][]byte{nil, noise, bytes.Repeat(noise[:100], 10_000), make([]byte, MaxLog)} {
		compressed, err := Compress(content)
		g.Expect(err).NotTo(HaveOccurred())
		expanded, err := Expand(compressed)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Equal(expanded, content)).To(BeTrue())
	}
	_, err = Compress(make([]byte, 64<<20))
	g.Expect(err).To(MatchError(ContainSubstring("it is larger than ")), "nobody could read it")

	small := bomb(t, 40<<20)
	g.Expect(allocated(func() { _, err = Expand(small[:33<<10]) })).To(BeNumerically("<", 33<<20))
	g.Expect(err).To(MatchError("it is larger than 4324 KiB"))
}

func TestReader_ReportParts(t *testing.T) {
	g := NewWithT(t)
	large := configMap(partName(pod.Job, 1, 1, 0), reportContent)
	large.BinaryData = map[string][]byte{partKey: make([]byte, partSize+1)}
	reader, err := NewReader(newStore(t, large).config, pod.Namespace, pod.Job)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = reader.Report(t.Context(), Progress{Index: 1, Report: Stored{Generation: 1, Parts: 1}})
	g.Expect(err).To(MatchError(`read ConfigMap "job-report-1-1-0" in namespace "ns": a part of a report has at most 900 KiB`))
}

func TestNewWriter_ConfigMapOfOthers(t *testing.T) {
	progress, report := progressName(pod.Job, pod.Index), partName(pod.Job, pod.Index, 1, 0)
	for name, owners := range map[string][]metav1.OwnerReference{
		"only labels":  nil,
		"another Job":  {owner("Job", "another", "another-uid")},
		"another kind": {owner("ConfigMap", pod.Job, pod.JobUID)},
		"another name": {owner("Job", "another", pod.JobUID)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStore(t, configMap(progress, progressContent, owners...))
			_, err := NewWriter(t.Context(), s.config, pod)
			g.Expect(err).To(MatchError(`ConfigMap "job-progress-1" in namespace "ns" exists, and Job "job" with the uid job-uid does not own it: ` +
				`delete the ConfigMap, or rename the Job`))
			g.Expect(s.writes).To(BeEmpty())

			s = newStore(t, configMap(report, reportContent, owners...))
			writer, err := NewWriter(t.Context(), s.config, pod)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = writer.PutReport(t.Context(), []byte("report"))
			g.Expect(err).To(MatchError(ContainSubstring(`ConfigMap "job-report-1-1-0" in namespace "ns" exists`)))
			g.Expect(s.writes).To(ConsistOf("POST " + progress))
		})
	}
}

func TestNewWriter_EarlierAttempt(t *testing.T) {
	g := NewWithT(t)
	earlier := progressMap(1, `{"index": 1, "report": {"generation": 3, "parts": 2}}`, bomb(t, 0))
	ofJob := owner("Job", pod.Job, pod.JobUID)
	s := newStore(t, earlier, configMap("job-report-1-3-0", reportContent, ofJob), configMap("job-report-1-3-1", reportContent),
		configMap("job-report-1-2-0", reportContent, ofJob), configMap("job-report-0-3-0", reportContent, ofJob))
	_, err := NewWriter(t.Context(), s.config, pod)
	g.Expect(err).To(MatchError(ContainSubstring(`ConfigMap "job-report-1-3-1" in namespace "ns" exists, and Job "job"`)))
	g.Expect(s.writes).To(ConsistOf("PUT job-progress-1", "DELETE job-report-1-3-0"))
	g.Expect(s.configMaps["job-progress-1"].UID).To(BeEquivalentTo("uid-job-progress-1"), "a precondition")
}

func TestNewWriter_ForgedParts(t *testing.T) {
	for _, stored := range []string{`{"generation": 1, "parts": 1000}`, `{"generation": 1, "parts": 1000000000000}`, `{"generation": -1, "parts": 1}`} {
		t.Run(stored, func(t *testing.T) {
			g := NewWithT(t)
			s := newStore(t, progressMap(1, `{"index": 1, "report": `+stored+`}`, bomb(t, 0)))
			_, err := NewWriter(t.Context(), s.config, pod)
			g.Expect(err).To(MatchError(And(HavePrefix(`read the progress in ConfigMap "job-progress-1"`), HaveSuffix("delete the ConfigMap"))))
			g.Expect(s.writes).To(BeEmpty())
		})
	}
}

func TestNewWriter_EarlierJob(t *testing.T) {
	g := NewWithT(t)
	s := newStore(t, configMap("job-progress-1", progressContent, owner("Job", pod.Job, "earlier-uid")))
	read := 0
	s.answered = func() {
		if read++; read == 2 { // Kubernetes deletes what the earlier Job owned
			delete(s.configMaps, "job-progress-1")
		}
	}
	_, err := NewWriter(t.Context(), s.config, pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.writes).To(ConsistOf("POST job-progress-1"))
}

// Package jobstore stores what a runner in a Job has to report in ConfigMaps of the Job's namespace, so that it needs neither a volume nor
// exec to get out of the cluster. The Job owns the ConfigMaps, so they are deleted with it. Writer is the end in the pod, Reader the other.
//
// Each index of the Job has one ConfigMap with its progress, and several with its report: a ConfigMap contains at most 1 MiB. A report is
// written to new ConfigMaps before the progress refers to it and the old ones are deleted. A reader therefore always finds a whole one.
package jobstore

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

const (
	// JobLabel is on the ConfigMaps of a Job. Its value is the name of the Job.
	JobLabel = client.Domain + "/job"
	// contentLabel is progress or report.
	contentLabel = client.Domain + "/job-content"
	// indexLabel is the index of the pod.
	indexLabel = client.Domain + "/job-index"

	progressContent, reportContent = "progress", "report"
	// progressKey and logKey are the keys of a ConfigMap with the progress, and partKey that of a part of a report.
	progressKey, logKey, partKey = "progress.json", "log.gz", "report.json.gz.part"

	// partSize is the size of a part in bytes. A ConfigMap contains 1 MiB, and a part becomes a third longer on the way (base64).
	partSize = 900 << 10
	// maxParts is the number of parts of a report, and MaxReport its size in bytes, compressed, that are stored.
	maxParts, MaxReport = 16, maxParts * partSize
	// MaxLog is the size of a log in bytes that is stored.
	MaxLog = 256 << 10
	// maxExpanded limits what is expanded, in bytes, and maxRatio how many times larger that may be than what was stored, beyond minExpanded.
	// Reports are compressed to a sixteenth.
	maxExpanded, maxRatio, minExpanded = 256 << 20, 100, 1 << 20
	// maxGeneration is the number of reports that an index may store.
	maxGeneration = 1 << 20
)

// Progress is the state of one index.
type Progress struct {
	// Index is the index, from 0, and Attempt the name of the pod.
	Index   int    `json:"index"`
	Attempt string `json:"attempt"`
	// Ended is set when the runner has ended, with ExitCode and, if there was one, the Error that it printed.
	Ended    bool   `json:"ended,omitempty"`
	ExitCode int    `json:"exitCode,omitempty"`
	Error    string `json:"error,omitempty"`
	// Report is the stored report; the zero value for none.
	Report Stored `json:"report,omitzero"`
	// Skipped is the number of bytes that were dropped at the start of the log.
	Skipped int `json:"skipped,omitempty"`
	// Compressed is the output of the runner, without its start if it is long, as Compress returns it.
	Compressed []byte `json:"-"`
}

// Log returns the output of the runner. It fails if it is longer than MaxLog.
func (p Progress) Log() ([]byte, error) { return expand(p.Compressed, MaxLog) }

// Stored is a report in ConfigMaps.
type Stored struct {
	// Generation counts the reports of an index, from 1.
	Generation int `json:"generation"`
	// Parts is the number of ConfigMaps, and Digest the SHA-256 of their content.
	Parts  int    `json:"parts"`
	Digest string `json:"digest"`
}

// Compress returns content as it is stored. It fails on content that Expand would not read.
func Compress(content []byte) ([]byte, error) {
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	err = writer.Close()
	if limit := expandedLimit(compressed.Len()); err == nil && len(content) > limit {
		err = tooLarge(limit)
	}
	return compressed.Bytes(), err
}

// expandedLimit returns the size limit of the content for its compressed size, both in bytes.
func expandedLimit(compressed int) int { return min(maxExpanded, minExpanded+maxRatio*compressed) }

func tooLarge(limit int) error { return fmt.Errorf("it is larger than %d KiB", limit>>10) }

// Expand is the inverse of Compress. It fails on content of more than 256 MiB, and on content that is compressed better than reports are.
func Expand(compressed []byte) ([]byte, error) {
	return expand(compressed, expandedLimit(len(compressed)))
}

func expand(compressed []byte, limit int) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	if err == nil && len(content) > limit {
		err = tooLarge(limit)
	}
	return content, err
}

// progressName is the name of the ConfigMap with the progress of an index.
func progressName(job string, index int) string { return fmt.Sprintf("%s-progress-%d", job, index) }

// indexIn returns the index in the name of a ConfigMap with progress; false for other names.
func indexIn(name, job string) (index int, ok bool) {
	number, _ := strings.CutPrefix(name, job+"-progress-")
	index, err := strconv.Atoi(number)
	return index, err == nil && index >= 0 && name == progressName(job, index)
}

// partName is the name of the ConfigMap with a part of a report.
func partName(job string, index, generation, part int) string {
	return fmt.Sprintf("%s-report-%d-%d-%d", job, index, generation, part)
}

// newConfigMap returns a ConfigMap of a Job.
func newConfigMap(namespace, name string) *client.Object {
	object := &client.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// setBinary sets a key of a ConfigMap to bytes.
func setBinary(object *client.Object, key string, content []byte) error {
	return unstructured.SetNestedField(object.Object, base64.StdEncoding.EncodeToString(content), "binaryData", key)
}

// binary returns the bytes of a key of a ConfigMap.
func binary(object *client.Object, key string) ([]byte, error) {
	encoded, _, err := unstructured.NestedString(object.Object, "binaryData", key)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// ownedBy matches owner references to a Job.
func ownedBy(job, uid string) func(metav1.OwnerReference) bool {
	return func(owner metav1.OwnerReference) bool {
		return owner.Kind == "Job" && owner.Name == job && string(owner.UID) == uid
	}
}

// progressOf reads the progress of an index in a ConfigMap.
func progressOf(object *client.Object, index int) (Progress, error) {
	progress := Progress{}
	text, _, err := unstructured.NestedString(object.Object, "data", progressKey)
	if err == nil {
		err = json.Unmarshal([]byte(text), &progress)
	}
	if err == nil {
		progress.Compressed, err = binary(object, logKey)
	}
	stored := progress.Report
	switch {
	case err != nil:
	case progress.Index != index:
		err = fmt.Errorf("it is that of index %d", progress.Index)
	case stored.Parts < 0 || stored.Parts > maxParts || stored.Generation < 0 || stored.Generation > maxGeneration:
		err = fmt.Errorf("no runner has stored a report of %d parts as the one with the number %d", stored.Parts, stored.Generation)
	}
	if err != nil {
		return Progress{}, fmt.Errorf("read the progress in ConfigMap %q in namespace %q: %w: delete the ConfigMap", object.GetName(), object.GetNamespace(), err)
	}
	return progress, nil
}

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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
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
	// MaxReport is the size of a report in bytes, compressed, that is stored.
	MaxReport = 16 * partSize
	// maxUncompressed limits what a reader expands.
	maxUncompressed = 1 << 30
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
	// Log is the output of the runner, without its start if it is long.
	Log []byte `json:"-"`
}

// Stored is a report in ConfigMaps.
type Stored struct {
	// Generation counts the reports of an index, from 1.
	Generation int `json:"generation"`
	// Parts is the number of ConfigMaps, and Digest the SHA-256 of their content.
	Parts  int    `json:"parts"`
	Digest string `json:"digest"`
}

// Compress returns content as it is stored.
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
	return compressed.Bytes(), err
}

// Expand is the inverse of Compress. It fails on content of more than 1 GiB.
func Expand(compressed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxUncompressed+1))
	if err == nil && len(content) > maxUncompressed {
		err = fmt.Errorf("it is larger than %d MiB", maxUncompressed>>20)
	}
	return content, err
}

// progressName is the name of the ConfigMap with the progress of an index.
func progressName(job string, index int) string { return fmt.Sprintf("%s-progress-%d", job, index) }

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

// progressOf reads the progress in a ConfigMap.
func progressOf(object *client.Object) (Progress, error) {
	progress := Progress{}
	text, _, err := unstructured.NestedString(object.Object, "data", progressKey)
	if err == nil {
		err = json.Unmarshal([]byte(text), &progress)
	}
	var log []byte
	if err == nil {
		log, err = binary(object, logKey)
	}
	if err == nil {
		progress.Log, err = Expand(log)
	}
	if err == nil && object.GetLabels()[indexLabel] != strconv.Itoa(progress.Index) {
		err = fmt.Errorf("it is that of index %d", progress.Index)
	}
	if err != nil {
		return Progress{}, fmt.Errorf("read the progress in ConfigMap %q: %w", object.GetName(), err)
	}
	return progress, nil
}

// Package injob describes the Job of Kubernetes in which the runner runs. It reads the variables that deploy/job sets in the environment of
// the pod, and JOB_COMPLETION_INDEX, which Kubernetes sets in pods of Indexed Jobs.
package injob

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// The variables of a pod.
const (
	// IndexVariable is the index of a pod of an Indexed Job, from 0.
	IndexVariable = "JOB_COMPLETION_INDEX"
	// NameVariable and UIDVariable are the name and the uid of the Job.
	NameVariable, UIDVariable = "JOB_NAME", "JOB_UID"
	// NamespaceVariable, PodVariable and IPVariable are the namespace, the name and the address of the pod.
	NamespaceVariable, PodVariable, IPVariable = "POD_NAMESPACE", "POD_NAME", "POD_IP"
)

// Pod is a pod of a Job. Fields are empty where the environment does not set them.
type Pod struct {
	Namespace, Name, IP string
	// Job and JobUID are the Job's name and uid, and Index is the index of an Indexed Job.
	Job, JobUID, Index string
}

// Current returns the pod in which this process runs, as far as its environment describes one.
func Current() Pod {
	return Pod{
		Namespace: os.Getenv(NamespaceVariable), Name: os.Getenv(PodVariable), IP: os.Getenv(IPVariable),
		Job: os.Getenv(NameVariable), JobUID: os.Getenv(UIDVariable), Index: os.Getenv(IndexVariable),
	}
}

// Seed identifies the work of the pod among all pods: its attempts, which are pods of the same index, have the same one. It is empty
// outside of a Job.
func (p Pod) Seed() string {
	if p.JobUID == "" {
		return ""
	}
	return p.JobUID + "/" + p.Index
}

// fromJob begins a shard whose number is the index of the pod.
const fromJob = "job/"

// Shard returns the shard of a pod for "job/N": the index of the pod plus one, of N. Other shards are returned unchanged.
func (p Pod) Shard(shard string) (string, error) {
	count, ok := strings.CutPrefix(shard, fromJob)
	if !ok {
		return shard, nil
	}
	of, err := strconv.Atoi(count)
	if err != nil || of < 1 {
		return "", fmt.Errorf("--shard %s: write the number of shards after %s, as %s3", shard, fromJob, fromJob)
	}
	if p.Index == "" {
		return "", fmt.Errorf("--shard %s: %s is not set: use it in a pod of an Indexed Job, or name the shard, as 1/%d", shard, IndexVariable, of)
	}
	index, err := strconv.Atoi(p.Index)
	if err != nil || index < 0 {
		return "", fmt.Errorf("--shard %s: %s is %q, not an index", shard, IndexVariable, p.Index)
	}
	if index >= of {
		return "", fmt.Errorf("--shard %s: the index of this pod is %d: set completions of the Job to %d, or use --shard %s%d", shard, index, of, fromJob, index+1)
	}
	chosen := fmt.Sprintf("%d/%d", index+1, of)
	_, _, err = v1alpha1.ParseShard(chosen)
	return chosen, err
}

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// KillAll kills every process that belongs to the cluster of the folder, and waits until they are gone or the time
// is over. It finds them by their environment.
func KillAll(cluster string, patience time.Duration) {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		found := Of(cluster)
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		if len(found) == 0 || time.Now().After(deadline) {
			return
		}
	}
}

// Of are the ids of the processes that belong to the cluster of the folder, this one left out.
func Of(cluster string) []int {
	mark := []byte("\x00" + clusterVariable + "=" + cluster + "\x00")
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil // only a malformed pattern fails
	}
	var found []int
	for _, file := range files {
		environment, err := os.ReadFile(file) // fails for processes of others and for ones that are gone
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

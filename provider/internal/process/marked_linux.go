package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// KillAll kills every process that belongs to the cluster of the folder, and waits until they are gone or the time
// is over. It finds them by their environment, and looks again and again: they are nobody's children here, and what is
// being killed may just have started another.
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
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil // only a malformed pattern fails
	}
	var found []int
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && pid != os.Getpid() && belongs(pid, cluster) {
			found = append(found, pid)
		}
	}
	return found
}

// belongs says whether a process belongs to the cluster of the folder.
func belongs(pid int, cluster string) bool {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // fails for others' and for ones that are gone
	mark := "\x00" + clusterVariable + "=" + cluster + "\x00"
	return err == nil && strings.Contains("\x00"+string(environment), mark)
}

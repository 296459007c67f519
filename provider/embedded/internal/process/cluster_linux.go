package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// killInterval is the time between checks whether killed processes are gone.
const killInterval = 20 * time.Millisecond

// KillAll kills every process of the cluster with the state directory, and waits until they are gone or the timeout is over. It finds them
// by their environment, repeatedly, because they are not children of this process, and may start others until they are killed.
func KillAll(cluster string, timeout time.Duration) {
	// Remaining processes show in what cannot be removed afterwards.
	_ = wait.PollUntilContextTimeout(context.Background(), killInterval, timeout, true, func(context.Context) (bool, error) {
		found := Of(cluster)
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		return len(found) == 0, nil
	})
}

// Of returns the ids of the processes of the cluster with the state directory, except this one.
func Of(cluster string) []int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil // only a malformed pattern fails
	}
	var found []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid != os.Getpid() && belongs(pid, cluster) {
			found = append(found, pid)
		}
	}
	return found
}

// belongs reports whether a process belongs to the cluster with the state directory.
func belongs(pid int, cluster string) bool {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // fails for processes of other users and for ended ones
	variable := "\x00" + clusterVariable + "=" + cluster + "\x00"
	return err == nil && strings.Contains("\x00"+string(environment), variable)
}

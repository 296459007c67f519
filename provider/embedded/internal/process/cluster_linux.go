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

// killInterval is the time between two looks whether what was killed is gone.
const killInterval = 20 * time.Millisecond

// KillAll kills every process that belongs to the cluster of the state directory, and waits until they are gone or the
// timeout is over. It finds them by their environment, and looks again and again: they are nobody's children here, and
// what is being killed may just have started another.
func KillAll(cluster string, timeout time.Duration) {
	// What is left when the time is over shows in what else cannot be removed.
	_ = wait.PollUntilContextTimeout(context.Background(), killInterval, timeout, true, func(context.Context) (bool, error) {
		found := Of(cluster)
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		return len(found) == 0, nil
	})
}

// Of are the ids of the processes that belong to the cluster of the state directory, this one left out.
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

// belongs says whether a process belongs to the cluster of the state directory.
func belongs(pid int, cluster string) bool {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // fails for others' and for ones that are gone
	variable := "\x00" + clusterVariable + "=" + cluster + "\x00"
	return err == nil && strings.Contains("\x00"+string(environment), variable)
}

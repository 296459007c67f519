package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Scripted is a part that was started through its Script.
type Scripted struct {
	Name string
	// Folder is where the script is.
	Folder string
	// Cluster is the folder of the cluster the part belongs to.
	Cluster string
	Log     string
}

// PID is the process id of the part's latest start, 0 before the first. It may be another process's by now.
func (s Scripted) PID() int {
	content, err := os.ReadFile(pidFile(s.Folder, s.Name))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	return pid
}

// Alive is nil while the part runs; otherwise it says what the part said last.
func (s Scripted) Alive() error {
	if s.runs() {
		return nil
	}
	return fmt.Errorf("%s ended; the last lines of its log:\n%s", s.Name, LastWords(s.Log))
}

// Kill ends the part at once. Whoever started it has to wait for its end.
func (s Scripted) Kill() {
	if s.runs() {
		_ = syscall.Kill(s.PID(), syscall.SIGKILL) // it may have ended already
	}
}

func (s Scripted) runs() bool {
	pid := s.PID()
	return pid != 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && belongs(pid, s.Cluster)
}

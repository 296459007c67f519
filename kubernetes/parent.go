package main

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

// parentVariable names the environment variable that holds the process id this process must not outlive.
const parentVariable = "DELETION_CONFORMANCE_PARENT"

// endWithParent ends this process when the process named in the environment is gone, however it went: a harness that
// was killed outright leaves no cluster behind. It asks twice a second, as not every system tells, and Linux tells of the
// parent's thread only. A component that does not stop within five seconds is stopped for it.
func endWithParent() {
	parent, err := strconv.Atoi(os.Getenv(parentVariable))
	if err != nil {
		return
	}
	go func() {
		for os.Getppid() == parent {
			time.Sleep(500 * time.Millisecond)
		}
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(syscall.SIGTERM)
		}
		time.Sleep(5 * time.Second)
		os.Exit(1)
	}()
}

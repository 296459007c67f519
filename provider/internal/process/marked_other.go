//go:build !linux

package process

import "time"

// KillAll does nothing here: the parts end by themselves some seconds after their runner.
func KillAll(string, time.Duration) {}

// belongs trusts that a process id is not another process's by now.
func belongs(int, string) bool { return true }

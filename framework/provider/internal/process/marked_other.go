//go:build !linux

package process

import "time"

// KillMarked does nothing here: the parts end by themselves some seconds after their runner.
func KillMarked(string, time.Duration) {}

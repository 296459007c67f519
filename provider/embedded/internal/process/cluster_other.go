//go:build !linux

package process

import "time"

// KillAll does nothing here: the components end by themselves some seconds after their runner.
func KillAll(string, time.Duration) {}

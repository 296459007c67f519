package environment

import "time"

// latestEnd is how long before a deadline, such as that of go test, a run ends, so that it can delete its objects.
const latestEnd = 2 * time.Minute

// Reserve returns how long before the end of the remaining time a run ends, which is at most a fifth of it, and how long it may then wait
// until its objects are deleted. The rest is for finding out what is left and for reports.
func Reserve(remaining time.Duration) (reserve, cleanup time.Duration) {
	reserve = min(latestEnd, remaining/5)
	return reserve, reserve * 2 / 3
}

package main

import (
	"io"
	"testing"

	. "github.com/onsi/gomega"
)

// series returns the figures of runs of which one grows.
func series(runs int, grow func(f *figures, run int)) []figures {
	after := make([]figures, runs)
	for i := range after {
		after[i] = figures{runnerMemory: 100 << 20, serverMemory: 500 << 20, serverFiles: 100, serverSeries: 1000, processes: 5, files: 20, objects: 60}
		grow(&after[i], i)
	}
	return after
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name string
		runs int
		grow func(f *figures, run int)
		want string
	}{
		{"nothing", 20, func(*figures, int) {}, ""},
		{"a server that fills its caches first", 20, func(f *figures, run int) { f.serverMemory += int64(min(run, 5)) * 100 << 20 }, ""},
		{"memory that goes up and down", 20, func(f *figures, run int) { f.runnerMemory += int64(run%3) * 20 << 20 }, ""},
		{"memory of the server", 20, func(f *figures, run int) { f.serverMemory += int64(run) * 40 << 20 }, "memory of the API server: 780 MiB early, 1180 MiB late"},
		{"memory of the runner", 20, func(f *figures, run int) { f.runnerMemory += int64(run) * 10 << 20 }, "memory of the runner: 170 MiB early, 270 MiB late"},
		{"open files", 20, func(f *figures, run int) { f.serverFiles += 10 * run }, "open files of the API server: 170 early, 270 late"},
		{"time series", 20, func(f *figures, run int) { f.serverSeries += 100 * run }, "time series of the API server's metrics: 1700 early, 2700 late"},
		{"an object a run", 3, func(f *figures, run int) { f.objects += run }, "objects: 60 in the first run, 62 in the last"},
		{"a process", 3, func(f *figures, run int) { f.processes += run / 2 }, "processes: 5 in the first run, 6 in the last"},
		{"a file a run", 3, func(f *figures, run int) { f.files += run }, "temporary files: 20 in the first run, 22 in the last"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := compare(io.Discard, series(test.runs, test.grow))
			if test.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(test.want))
		})
	}
}

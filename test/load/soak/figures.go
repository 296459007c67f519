package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// figures are the measurements after a run. Memory is in bytes.
type figures struct {
	took time.Duration
	// runnerMemory is the peak memory of the runner or one of its workers; serverMemory the current memory of the API server.
	runnerMemory, serverMemory int64
	// serverFiles are the open files and connections of the API server, serverSeries the time series of its metrics.
	serverFiles, serverSeries int
	// processes are running processes of the project's binaries; workers are those that do not belong to the cluster.
	processes, workers int
	// files are in the directory for temporary files, and objects in the cluster.
	files, objects int
}

const header = "run      seconds  runner MiB  server MiB  server files  server series  processes  temp files  objects"

func (f figures) row(name string) string {
	return fmt.Sprintf("%-7s %8.1f %11.1f %11.1f %13d %14d %10d %11d %8d", name, f.took.Seconds(),
		mebibytes(f.runnerMemory), mebibytes(f.serverMemory), f.serverFiles, f.serverSeries, f.processes, f.files, f.objects)
}

func mebibytes(size int64) float64 { return float64(size) / (1 << 20) }

// measure measures everything except the run itself.
func (s *soak) measure(ctx context.Context) (figures, error) {
	measured, err := s.processes()
	if err != nil {
		return figures{}, err
	}
	if measured.files, err = filesIn(s.folder); err != nil {
		return figures{}, err
	}
	discovering, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		return figures{}, err
	}
	if measured.serverSeries, err = seriesOf(ctx, discovering); err != nil {
		return figures{}, err
	}
	measured.objects, err = s.objects(ctx, discovering)
	return measured, err
}

// seriesOf counts the time series of an API server's metrics.
func seriesOf(ctx context.Context, server *discovery.DiscoveryClient) (int, error) {
	metrics, err := server.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	count := 0
	for line := range strings.Lines(string(metrics)) {
		if !strings.HasPrefix(line, "#") {
			count++
		}
	}
	return count, nil
}

// processes measures the processes of this series, whose environment or arguments contain its directory.
func (s *soak) processes() (figures, error) {
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return figures{}, err
	}
	var measured figures
	for _, process := range found {
		environment, _ := os.ReadFile(filepath.Join(process, "environ")) // it may have ended meanwhile
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if !strings.Contains(string(environment)+string(command), s.folder) {
			continue
		}
		arguments := strings.Split(string(command), "\x00")
		measured.processes++
		switch name := filepath.Base(arguments[0]); {
		case name == "kube-apiserver":
			measured.serverMemory = memoryOf(process)
			open, _ := os.ReadDir(filepath.Join(process, "fd"))
			measured.serverFiles = len(open)
		case name == filepath.Base(s.binary) && (len(arguments) < 3 || arguments[1] != "cluster"):
			measured.workers++
		}
	}
	return measured, nil
}

// memoryOf returns the memory of a process, in bytes.
func memoryOf(process string) int64 {
	status, _ := os.ReadFile(filepath.Join(process, "status"))
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kibibytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kibibytes << 10
		}
	}
	return 0
}

// restless are the extensions of the storage's files, which are created and removed all the time.
var restless = []string{".wal", ".snap", ".db", ".tmp"}

// filesIn counts the files below a directory.
func filesIn(folder string) (int, error) {
	count := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return err
		case !entry.IsDir() && !slices.Contains(restless, filepath.Ext(path)):
			count++
		}
		return nil
	})
	return count, err
}

// fleeting are kinds whose objects come and go by themselves.
var fleeting = []string{"events", "leases", "endpointslices"}

// objects counts all objects in the cluster.
func (s *soak) objects(ctx context.Context, discovering *discovery.DiscoveryClient) (int, error) {
	lists, err := discovering.ServerPreferredResources()
	if err != nil {
		return 0, fmt.Errorf("find what the cluster serves: %w", err)
	}
	listing, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return 0, err
	}
	resources, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists))
	if err != nil {
		return 0, err
	}
	count := 0
	for resource := range resources {
		if slices.Contains(fleeting, resource.Resource) {
			continue
		}
		objects, err := listing.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, fmt.Errorf("count the %s: %w", resource.Resource, err)
		}
		count += len(objects.Items)
	}
	return count, nil
}

const (
	// fewest is the number of runs that are needed to detect growth of memory.
	fewest = 8
	// growth and slack are the permitted increase of memory: a factor, and bytes.
	growth, slack = 1.25, 32 << 20
)

// compare returns what has grown.
func compare(out io.Writer, after []figures) error {
	if len(after) == 0 {
		return errors.New("no run was made")
	}
	grown := counted(after)
	if len(after) < fewest {
		_, _ = fmt.Fprintf(out, "memory and open files are not tested: that takes %d runs\n", fewest)
		return errors.Join(grown...)
	}
	grown = append(grown, durationGrowth(after)...)
	if len(grown) == 0 {
		_, _ = fmt.Fprintf(out, "flat after %d runs\n", len(after))
	}
	return errors.Join(grown...)
}

// counted compares the counts after the last run with those after the first.
func counted(after []figures) []error {
	var grown []error
	first, last := after[0], after[len(after)-1]
	for _, count := range []struct {
		name      string
		was, then int
	}{
		{"objects", first.objects, last.objects}, {"processes", first.processes, last.processes}, {"temporary files", first.files, last.files},
	} {
		if count.then > count.was {
			grown = append(grown, fmt.Errorf("%s: %d in the first run, %d in the last", count.name, count.was, count.then))
		}
	}
	return grown
}

// durationGrowth compares the median of the last quarter of the runs with that of the second, because a new server fills its caches first.
func durationGrowth(after []figures) []error {
	quarter := len(after) / 4
	early, late := after[quarter:2*quarter], after[len(after)-quarter:]
	var grown []error
	for _, amount := range []struct {
		name, unit string
		unitSize   int64
		slack      int64
		of         func(figures) int64
	}{
		{"memory of the runner", " MiB", 1 << 20, slack, func(f figures) int64 { return f.runnerMemory }},
		{"memory of the API server", " MiB", 1 << 20, slack, func(f figures) int64 { return f.serverMemory }},
		{"open files of the API server", "", 1, 0, func(f figures) int64 { return int64(f.serverFiles) }},
		{"time series of the API server's metrics", "", 1, 0, func(f figures) int64 { return int64(f.serverSeries) }},
	} {
		if was, then := median(early, amount.of), median(late, amount.of); float64(then) > growth*float64(was)+float64(amount.slack) {
			grown = append(grown, fmt.Errorf("%s: %d%s early, %d%s late", amount.name, was/amount.unitSize, amount.unit, then/amount.unitSize, amount.unit))
		}
	}
	return grown
}

func median(measured []figures, of func(figures) int64) int64 {
	var values []int64
	for _, one := range measured {
		values = append(values, of(one))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

package process

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// shell returns a command that runs a shell script.
func shell(t *testing.T, script string) Command {
	t.Helper()
	dir := t.TempDir()
	return Command{
		Name: "component", Binary: "/bin/sh", Flags: []string{"-c", script},
		Cluster: dir, Log: filepath.Join(dir, "component.log"),
	}
}

func TestProcess_Status(t *testing.T) {
	process, err := shell(t, "echo first; echo last lines >&2; exit 4").Start()
	if err != nil {
		t.Fatal(err)
	}
	<-process.ended
	ended := process.Alive()
	if ended == nil || !strings.Contains(ended.Error(), "component ended (exit status 4)") ||
		!strings.Contains(ended.Error(), "first\nlast lines") {
		t.Errorf("want its status and last lines, got: %v", ended)
	}
	process.Kill() // it is idempotent
}

// awaitOutput waits for output of a component.
func awaitOutput(t *testing.T, log string) {
	t.Helper()
	NewWithT(t).Eventually(LogTail).WithArguments(log).WithTimeout(10 * time.Second).ShouldNot(BeEmpty())
}

func TestProcess_Stop(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		within time.Duration
	}{
		"polite":   {"trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done", 5 * time.Second},
		"stubborn": {"trap '' TERM; echo ready; while :; do sleep 0.02; done", 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			process, err := shell(t, test.script).Start()
			if err != nil {
				t.Fatal(err)
			}
			awaitOutput(t, process.Log) // it is written after the trap is set
			if err := process.Alive(); err != nil {
				t.Error(err)
			}
			start := time.Now()
			process.Stop(context.Background(), time.Second)
			if took := time.Since(start); took > test.within {
				t.Errorf("it took %s", took)
			}
			if process.Alive() == nil {
				t.Error("it still runs")
			}
		})
	}
}

func TestProcess_Environment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com")
	t.Setenv("GOGC", "200")
	command := shell(t, "env")
	command.Environment = []string{"GOMAXPROCS=1", "GOGC=50"}
	process, err := command.Start()
	if err != nil {
		t.Fatal(err)
	}
	<-process.ended
	environment := LogTail(process.Log)
	if strings.Contains(environment, "proxy") {
		t.Errorf("a setting of the runner's reached it:\n%s", environment)
	}
	for _, want := range []string{parentVariable + "=", clusterVariable + "=" + process.Cluster, "PATH=", "GOMAXPROCS=1", "GOGC=200"} {
		if !strings.Contains(environment, want) {
			t.Errorf("want %s in its environment:\n%s", want, environment)
		}
	}
}

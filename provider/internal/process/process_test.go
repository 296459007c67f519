package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// shell is a command that runs a shell script.
func shell(t *testing.T, script string) Command {
	t.Helper()
	folder := t.TempDir()
	return Command{
		Name: "part", Binary: "/bin/sh", Arguments: []string{"-c", script},
		Cluster: folder, Log: filepath.Join(folder, "part.log"),
	}
}

func TestProcessSaysHowItEnded(t *testing.T) {
	process, err := shell(t, "echo first; echo last words >&2; exit 4").Start()
	if err != nil {
		t.Fatal(err)
	}
	<-process.ended
	ended := process.Alive()
	if ended == nil || !strings.Contains(ended.Error(), "part ended (exit status 4)") ||
		!strings.Contains(ended.Error(), "first\nlast words") {
		t.Errorf("want its status and last words, got: %v", ended)
	}
	process.Kill() // does no harm
}

// awaitWords waits until a part has said something.
func awaitWords(t *testing.T, log string) {
	t.Helper()
	NewWithT(t).Eventually(LastWords).WithArguments(log).WithTimeout(10 * time.Second).ShouldNot(BeEmpty())
}

func TestProcessIsAskedAndThenKilled(t *testing.T) {
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
			awaitWords(t, process.Log) // it says them when the trap is set
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

func TestProcessHasLittleInItsEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com")
	process, err := shell(t, "env").Start()
	if err != nil {
		t.Fatal(err)
	}
	<-process.ended
	environment := LastWords(process.Log)
	if strings.Contains(environment, "proxy") {
		t.Errorf("a setting of the runner's reached it:\n%s", environment)
	}
	for _, want := range []string{parentVariable + "=", clusterVariable + "=" + process.Cluster, "PATH="} {
		if !strings.Contains(environment, want) {
			t.Errorf("want %s in its environment:\n%s", want, environment)
		}
	}
}

func TestScriptBecomesTheBinary(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "it's a folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho $$ $0 \"$@\" in $(pwd)\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	script, err := Script(folder, binary, folder)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(folder, "part.log")
	scripted := Scripted{Name: "part", Folder: folder, Cluster: folder, Log: log}
	if scripted.PID() != 0 || scripted.Alive() == nil {
		t.Error("it seems to run before it was started")
	}
	started, err := Command{Name: "part", Binary: script, Arguments: []string{"a b", "c"}, Cluster: folder, Log: log}.Start()
	if err != nil {
		t.Fatal(err)
	}
	awaitWords(t, log)
	if scripted.PID() != started.PID() {
		t.Errorf("want the process id %d, got %d", started.PID(), scripted.PID())
	}
	if said := LastWords(log); !strings.HasSuffix(said, " "+binary+" a b c in "+folder) {
		t.Errorf("it said: %s", said)
	}
	if err := scripted.Alive(); err != nil {
		t.Error(err)
	}
	scripted.Kill()
	<-started.ended
	if scripted.Alive() == nil {
		t.Error("it still runs")
	}
}

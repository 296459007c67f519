package workers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
)

// script returns an executable that runs the shell text as a worker.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// followed returns the messages of a worker until it ended, and why it ended.
func followed(ctx context.Context, t *testing.T, limit time.Duration, text string) ([]message, *process, error) {
	t.Helper()
	process, err := start(script(t, text), Job{Behaviors: []string{"a.b"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var messages []message
	err = process.follow(ctx, limit, func(m message) { messages = append(messages, m) })
	return messages, process, err
}

func TestStart_JobAndReports(t *testing.T) {
	g := NewWithT(t)
	messages, process, err := followed(t.Context(), t, time.Minute, `
		read -r job
		case "$1 $job" in
		*-worker*a.b*) echo '{"began":"a.b"}' >&3; echo '{"failed":"no"}' >&3;;
		esac`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(messages).To(Equal([]message{{Began: "a.b"}, {Failed: "no"}}))
	g.Expect(process.began).To(BeEmpty(), "nothing runs after the last message")
}

func TestStart_JobNotInArguments(t *testing.T) {
	g := NewWithT(t)
	process, err := start(script(t, `echo "{\"failed\":\"$*\"}" >&3`), Job{Kubeconfig: []byte("hunter2")}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	var said string
	g.Expect(process.follow(t.Context(), time.Minute, func(m message) { said = m.Failed })).To(Succeed())
	g.Expect(said).To(Equal(Command), "other users of the machine can read command lines")
}

func TestProcess_Lends(t *testing.T) {
	for name, lend := range map[string]credentials.Lend{
		`{"credential":{"number":4,"token":"hunter2"}}`: func(rejected int) (credentials.Credential, error) {
			return credentials.Credential{Number: rejected + 1, Token: "hunter2"}, nil
		},
		`{"credential":{"number":0},"failed":"the plugin is ill"}`: func(int) (credentials.Credential, error) {
			return credentials.Credential{}, credentials.Failed("the plugin is ill")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			process, err := start(script(t, `
				read -r job
				echo '{"borrows":{"rejected":3}}' >&3
				read -r answer
				test "$answer" = '`+name+`' && echo '{"failed":"received"}' >&3`), Job{}, lend)
			g.Expect(err).NotTo(HaveOccurred())
			var messages []message
			g.Expect(process.follow(t.Context(), time.Minute, func(m message) { messages = append(messages, m) })).To(Succeed())
			g.Expect(messages).To(Equal([]message{{Failed: "received"}}))
		})
	}
}

func TestProcess_Death(t *testing.T) {
	for _, test := range []struct {
		name, text, began string
		want              []string
	}{
		{"in the middle", `echo '{"began":"a.b"}' >&3; echo out of memory >&2; kill -9 $$`, "a.b", []string{"worker died", "signal: killed", "last output: out of memory"}},
		{"before it began", `exit 7`, "", []string{"worker died", "exit status 7"}},
		{"in the middle of a message", `printf '{"began":"a.' >&3`, "", []string{"worker died", "unexpected EOF"}},
		{"talking nonsense", `echo nonsense >&3`, "", []string{"worker died", "invalid character"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			_, process, err := followed(t.Context(), t, time.Minute, test.text)
			g.Expect(err).To(HaveOccurred())
			for _, want := range test.want {
				g.Expect(err.Error()).To(ContainSubstring(want))
			}
			g.Expect(process.began).To(Equal(test.began))
		})
	}
}

func TestProcess_Hang(t *testing.T) {
	g := NewWithT(t)
	_, process, err := followed(t.Context(), t, 200*time.Millisecond-hangGrace, `echo '{"began":"a.b"}' >&3; exec sleep 600`)
	g.Expect(err).To(MatchError(And(ContainSubstring("worker sent no message for"), ContainSubstring("was killed"))))
	g.Expect(process.began).To(Equal("a.b"))
}

func TestProcess_HangWithChildren(t *testing.T) {
	g := NewWithT(t)
	started := time.Now()
	_, _, err := followed(t.Context(), t, 200*time.Millisecond-hangGrace, `sleep 600 & wait`)
	g.Expect(err).To(HaveOccurred())
	g.Expect(time.Since(started)).To(BeNumerically("<", time.Minute))
}

func TestProcess_Interrupt(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	process, err := start(script(t, `
		trap 'echo "{\"failed\":\"interrupted\"}" >&3; exit 0' INT
		echo '{"began":"a.b"}' >&3
		while :; do sleep 0.05; done`), Job{}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	var messages []message
	err = process.follow(ctx, time.Minute, func(m message) {
		messages = append(messages, m)
		cancel()
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(messages).To(Equal([]message{{Began: "a.b"}, {Failed: "interrupted"}}))
}

func TestMain_RunnerGone(t *testing.T) {
	g := NewWithT(t)
	process, err := start(script(t, `read -r job; echo '{"began":"a.b"}' >&3; read -r more || echo '{"failed":"alone"}' >&3`), Job{}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	var messages []message
	err = process.follow(t.Context(), 300*time.Millisecond-hangGrace, func(m message) { messages = append(messages, m) })
	g.Expect(err).To(MatchError(ContainSubstring("sent no message")), "while the runner lives, a worker's input does not end")
	g.Expect(messages).To(Equal([]message{{Began: "a.b"}}))
}

func TestStart_Failure(t *testing.T) {
	_, err := start(filepath.Join(t.TempDir(), "absent"), Job{}, nil)
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("start a worker"), ContainSubstring("no such file"))))
}

func TestTail(t *testing.T) {
	g := NewWithT(t)
	tail := &tail{}
	g.Expect(tail.String()).To(BeEmpty())
	var whole strings.Builder
	for i := range 3 * stderrLimit / 10 {
		line := fmt.Sprintf("line %4d\n", i)
		whole.WriteString(line)
		g.Expect(tail.Write([]byte(line))).To(Equal(len(line)), "a writer that takes less would end the worker's output")
	}
	g.Expect(tail.String()).To(HaveLen(stderrLimit))
	g.Expect(whole.String()).To(HaveSuffix(tail.String()))

	long := strings.Repeat("z", 2*stderrLimit)
	g.Expect(tail.Write([]byte(long))).To(Equal(len(long)))
	g.Expect(tail.String()).To(Equal(long[:stderrLimit]))
}

func TestProcess_Sent(t *testing.T) {
	g := NewWithT(t)
	messages, process, err := followed(t.Context(), t, time.Minute, `
		echo '{"began":"a.b"}' >&3; echo '{"sent":"Bearer x"}' >&3; exit 7`)
	g.Expect(err).To(HaveOccurred())
	g.Expect(process.began).To(Equal("a.b"), "which goes on")
	var noted []string
	b := &batchRun{poolRun: &poolRun{Pool: Pool{Note: func(authorization string) { noted = append(noted, authorization) }}, notify: func(Event) {}}}
	for _, m := range messages {
		b.onMessage(m)
	}
	g.Expect(noted).To(Equal([]string{"Bearer x"}))
}

package visible

import (
	"crypto/rand"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Log is a terminal, or the log of a CI system. It escapes everything that is written, except what is marked as the runner's own. It is safe
// for concurrent use.
type Log struct {
	out io.Writer

	mu      sync.Mutex
	escaper escaper
	// rest is an incomplete character at the end of what was written.
	rest string
	// token ends what StopCommands begins, and stopped is set between the two.
	token   string
	stopped bool
}

// Own is text of the runner itself that a terminal or a CI system interprets, such as a color.
type Own string

// NewLog returns a log that writes to out. It is out itself if that is a log.
func NewLog(out io.Writer) *Log {
	if log, ok := out.(*Log); ok {
		return log
	}
	return &Log{out: out}
}

// token is the same for both streams of the process, because GitHub reads them as one log.
var token = sync.OnceValue(rand.Text)

// StopCommands makes GitHub Actions ignore commands until Close, except those of Command, as GitHub recommends for text of others. It has no
// effect elsewhere.
func (l *Log) StopCommands() {
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		l.token = token()
	}
}

// Write writes text of any origin.
func (l *Log) Write(text []byte) (int, error) {
	if err := l.Print(string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Print writes parts at once. Each is a string of any origin, or the runner's Own.
func (l *Log) Print(parts ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var line strings.Builder
	if l.token != "" && !l.stopped {
		l.stopped = true
		line.WriteString("::stop-commands::" + l.token + "\n")
	}
	for _, part := range parts {
		switch part := part.(type) {
		case Own:
			line.WriteString(l.flush() + string(part))
		case string:
			var shown string
			shown, l.rest = l.escaper.escape(l.rest + part)
			line.WriteString(shown)
		}
	}
	_, err := io.WriteString(l.out, line.String())
	return err
}

// flush returns the visible form of an incomplete character.
func (l *Log) flush() string {
	shown := l.escaper.end(l.rest)
	l.rest = ""
	return shown
}

// resume returns what ends StopCommands.
func (l *Log) resume() string {
	line := l.flush()
	if !l.stopped {
		return line
	}
	l.stopped = false
	if l.escaper.place != lineStart {
		line += "\n"
	}
	return line + "::" + l.token + "::\n"
}

// commandData escapes data of a command as GitHub's toolkit does.
var commandData = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

// Command writes a line that the CI system interprets: the runner's own command, and its data, which may be of any origin.
func (l *Log) Command(command Own, data string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.out, l.resume()+string(command)+commandData.Replace(Text(data))+"\n")
	l.escaper.place = lineStart
	return err
}

// Close ends the log. It does not close what the log writes to.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.out, l.resume())
	return err
}

// Terminal returns the terminal that the log writes to, for displays that move the cursor; nil if it is none. What is written there must be
// escaped by Text.
func (l *Log) Terminal() *os.File {
	file, ok := l.out.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

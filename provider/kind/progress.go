package kind

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	kindlog "sigs.k8s.io/kind/pkg/log"
)

// progressLines writes the progress of kind as plain lines: no spinner, no emoji, and each step once.
type progressLines struct{ out io.Writer }

var _ kindlog.Logger = progressLines{}

func (l progressLines) print(format string, args ...any) {
	_, _ = fmt.Fprintf(l.out, "kind: %s\n", fmt.Sprintf(format, args...))
}

// Warn writes a warning of kind.
func (l progressLines) Warn(message string) { l.print("%s", plain(message)) }

// Warnf writes a warning of kind.
func (l progressLines) Warnf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// Error writes nothing, because errors are returned.
func (l progressLines) Error(string) {}

// Errorf writes nothing, because errors are returned.
func (l progressLines) Errorf(string, ...any) {}

// V writes messages for users and drops those for debugging.
func (l progressLines) V(level kindlog.Level) kindlog.InfoLogger {
	if level > 0 {
		return kindlog.NoopInfoLogger{}
	}
	return kindSteps{l}
}

// kindSteps writes the steps in which kind creates a cluster.
type kindSteps struct{ progressLines }

// Info writes that a step starts.
func (s kindSteps) Info(message string) {
	message = strings.TrimSpace(message)
	if step, begins := strings.CutPrefix(message, "•"); begins {
		s.print("%s", plain(step))
	}
}

// Infof is Info.
func (s kindSteps) Infof(format string, args ...any) { s.Info(fmt.Sprintf(format, args...)) }

// Enabled reports that messages are written.
func (s kindSteps) Enabled() bool { return true }

// plain removes emoji and dots from a message, and starts it in lower case like all lines of progress.
func plain(message string) string {
	message = strings.Map(func(r rune) rune {
		if r > unicode.MaxLatin1 {
			return -1
		}
		return r
	}, message)
	message = inOneLine(strings.ReplaceAll(message, "...", ""))
	if message == "" {
		return message
	}
	return strings.ToLower(message[:1]) + message[1:]
}

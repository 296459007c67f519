package kind

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	kindlog "sigs.k8s.io/kind/pkg/log"
)

// progressLines tells in plain lines what kind does: no spinner, no pictures, and each step once.
type progressLines struct{ out io.Writer }

var _ kindlog.Logger = progressLines{}

func (l progressLines) say(format string, args ...any) {
	_, _ = fmt.Fprintf(l.out, "kind: %s\n", fmt.Sprintf(format, args...))
}

// Warn tells a warning of kind.
func (l progressLines) Warn(message string) { l.say("%s", plain(message)) }

// Warnf tells a warning of kind.
func (l progressLines) Warnf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// Error tells nothing: what matters comes back as an error.
func (l progressLines) Error(string) {}

// Errorf tells nothing: what matters comes back as an error.
func (l progressLines) Errorf(string, ...any) {}

// V is for what is told to users, and nothing that is for debugging.
func (l progressLines) V(level kindlog.Level) kindlog.InfoLogger {
	if level > 0 {
		return kindlog.NoopInfoLogger{}
	}
	return kindSteps{l}
}

// kindSteps tells the steps in which kind makes a cluster.
type kindSteps struct{ progressLines }

// Info tells that a step begins. That it is over shows when the next one begins.
func (s kindSteps) Info(message string) {
	message = strings.TrimSpace(message)
	if step, begins := strings.CutPrefix(message, "•"); begins {
		s.say("%s", plain(step))
	}
}

// Infof is Info.
func (s kindSteps) Infof(format string, args ...any) { s.Info(fmt.Sprintf(format, args...)) }

// Enabled says that somebody listens.
func (s kindSteps) Enabled() bool { return true }

// plain takes the pictures and the dots out of a message, and begins it in lower case like all lines of progress.
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

package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// OneLine returns text with white space collapsed, shortened to a number of characters.
func OneLine(text string, limit int) string {
	return Shorten(Joined(text), limit)
}

// Joined collapses white space, for example of an error with several lines.
func Joined(text string) string { return strings.Join(strings.Fields(text), " ") }

// Shorten limits text to a number of characters, with an ellipsis at the end of shortened text.
func Shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return strings.TrimRightFunc(string(runes[:limit-1]), unicode.IsSpace) + "…"
}

// Seconds formats a duration with the relevant digits: 4.2 ms, 180 ms, 2.41 s, 31.0 s, 1m34s.
func Seconds(seconds float64) string {
	switch {
	case seconds < 0.010:
		return fmt.Sprintf("%.1f ms", seconds*1000)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1000)
	case seconds < 10:
		return fmt.Sprintf("%.2f s", seconds)
	case seconds < 60:
		return fmt.Sprintf("%.1f s", seconds)
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

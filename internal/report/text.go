package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Visible escapes text of unknown origin (names, server messages, errors): invisible characters become Go escapes. These are control
// characters of terminals, bidirectional overrides, invalid UTF-8, and everything that XML forbids, so that each form of the report only
// has to escape its own markup. Line ends become "
// ".
func Visible(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.IndexFunc(text, unseen) < 0 {
		return text
	}
	var shown strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			shown.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case unseen(r):
			shown.WriteString(strings.Trim(strconv.QuoteRuneToGraphic(r), "'"))
		default:
			shown.WriteRune(r)
		}
		text = text[size:]
	}
	return shown.String()
}

// AllVisible applies Visible to each text.
func AllVisible(texts []string) []string {
	var shown []string
	for _, text := range texts {
		shown = append(shown, Visible(text))
	}
	return shown
}

// unseen reports whether Visible escapes a character. It includes U+FFFD to catch invalid UTF-8, which decodes to it.
func unseen(r rune) bool {
	return r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsGraphic(r)
}

// OneLine returns visible text with white space collapsed, shortened to a number of characters.
func OneLine(text string, limit int) string {
	return Shorten(Joined(Visible(text)), limit)
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

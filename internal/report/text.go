package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Visible makes text of unknown origin (names, server messages, error texts) fit to be shown: what a reader cannot see
// is spelled out as a Go escape. That covers the control characters of terminals, characters that turn the direction
// of writing, bytes that are no UTF-8 and everything XML forbids, so each form of the report only has its own markup
// left to escape. Line ends become "\n".
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

// AllVisible makes each of the texts visible.
func AllVisible(texts []string) []string {
	var shown []string
	for _, text := range texts {
		shown = append(shown, Visible(text))
	}
	return shown
}

// unseen is true for what Visible spells out. U+FFFD is among it only to catch broken UTF-8, which decodes to it.
func unseen(r rune) bool {
	return r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsGraphic(r)
}

// OneLine is visible text with every run of white space made one space, cut to a number of characters.
func OneLine(text string, limit int) string {
	return Shorten(Joined(Visible(text)), limit)
}

// Joined is text with every run of white space made one space, such as an error that has several lines.
func Joined(text string) string { return strings.Join(strings.Fields(text), " ") }

// Shorten cuts text to a number of characters, the last of them an ellipsis that says so.
func Shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return strings.TrimRightFunc(string(runes[:limit-1]), unicode.IsSpace) + "…"
}

// Seconds is a duration with the digits that matter: 4.2 ms, 180 ms, 2.41 s, 31.0 s, 1m34s.
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

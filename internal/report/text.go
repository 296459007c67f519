package report

import (
	"strconv"
	"strings"
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

// unseen is true for what Visible spells out. U+FFFD is among it only to catch broken UTF-8, which decodes to it.
func unseen(r rune) bool {
	return r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsGraphic(r)
}

// oneLine is visible text with every run of white space made one space, cut to a number of characters.
func oneLine(text string, limit int) string {
	return shorten(strings.Join(strings.Fields(Visible(text)), " "), limit)
}

// shorten cuts text to a number of characters, the last of them an ellipsis that says so.
func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return strings.TrimRightFunc(string(runes[:limit-1]), unicode.IsSpace) + "…"
}

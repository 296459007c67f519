// Package visible makes text of unknown origin, such as names, messages and errors of a server, harmless where it is shown. Each sink
// (terminal and log, JUnit, CTRF, HTML, Markdown, OTLP) uses it in one place for everything that it writes. Other packages do not escape.
package visible

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns text in which invisible characters are Go escapes: control characters of terminals, bidirectional overrides, invalid UTF-8,
// and everything that XML forbids. Line ends become "\n". Commands of CI systems are broken by an escape of one character: the second colon
// of ::command:: at the start of a line, and the bracket of ##[command], ##vso[command] and ##teamcity[command].
func Text(text string) string {
	if strings.IndexFunc(text, unseen) < 0 && !strings.Contains(text, "::") && !strings.Contains(text, "##") {
		return text
	}
	var e escaper
	shown, rest := e.escape(text)
	return shown + e.end(rest)
}

// unseen reports whether a character is invisible. It includes U+FFFD to catch invalid UTF-8, which decodes to it.
func unseen(r rune) bool {
	return r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsGraphic(r)
}

// place is what a line contains before a character, as far as a command can begin there.
type place int

const (
	// lineStart is the start of a line with white space, which CI systems trim.
	lineStart place = iota
	// colon is a colon at the start of a line.
	colon
	hash
	// hashes are two hashes, also with a word.
	hashes
	other
)

// after returns the place after a character, and whether the character completes the beginning of a command.
func (p place) after(r rune) (next place, acts bool) {
	switch {
	case r == '\n', p == lineStart && unicode.IsSpace(r):
		return lineStart, false
	case p == lineStart && r == ':':
		return colon, false
	case p == colon && r == ':', p == hashes && r == '[':
		return other, true
	case p == hashes && (r == '#' || r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))), p == hash && r == '#':
		return hashes, false
	case r == '#':
		return hash, false
	}
	return other, false
}

// escaper escapes a text that comes in parts.
type escaper struct{ place place }

// escape returns the visible form of a part. The rest is an incomplete character at its end, which belongs to the next part.
func (e *escaper) escape(text string) (shown, rest string) {
	var escaped strings.Builder
	for text != "" && text != "\r" && utf8.FullRuneInString(text) {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case strings.HasPrefix(text, "\r\n"):
		case r == utf8.RuneError && size == 1:
			escaped.WriteString(e.end(text[:1]))
		default:
			escaped.WriteString(e.rune(r))
		}
		text = text[size:]
	}
	return escaped.String(), text
}

// rune returns the visible form of a character.
func (e *escaper) rune(r rune) string {
	var acts bool
	e.place, acts = e.place.after(r)
	switch {
	case acts:
		return jsonEscape(r)
	case unseen(r):
		e.place = other
		return strings.Trim(strconv.QuoteRuneToGraphic(r), "'")
	}
	return string(r)
}

// end returns the visible form of bytes that are no character.
func (e *escaper) end(rest string) string {
	shown := ""
	for i := range len(rest) {
		e.place = other
		if rest[i] == '\r' {
			shown += `\r`
		} else {
			shown += fmt.Sprintf(`\x%02x`, rest[i])
		}
	}
	return shown
}

// jsonEscape returns the escape of a character in JSON.
func jsonEscape(r rune) string {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// JSON returns a writer for encoded JSON, whose values stay the same: what Text escapes becomes an escape of JSON. encoding/json
// leaves the characters above U+007E as they are. A document must be written at once, as json.Encoder does.
func JSON(out io.Writer) io.Writer { return jsonWriter{out} }

type jsonWriter struct{ out io.Writer }

func (w jsonWriter) Write(document []byte) (int, error) {
	var escaped strings.Builder
	at := lineStart
	for _, r := range string(document) {
		var acts bool
		at, acts = at.after(r)
		if acts || r > '~' && unseen(r) && r != utf8.RuneError {
			escaped.WriteString(jsonEscape(r))
		} else {
			escaped.WriteRune(r)
		}
	}
	if _, err := io.WriteString(w.out, escaped.String()); err != nil {
		return 0, err
	}
	return len(document), nil
}

// Value returns a deep copy of a document in which each text is that of Text. Unexported fields are not copied deeply.
func Value[T any](document T) T {
	escapeIn(reflect.ValueOf(&document).Elem())
	return document
}

// escapeIn escapes the texts in a value, and replaces what it refers to by copies.
func escapeIn(value reflect.Value) {
	switch kind := value.Kind(); {
	case kind == reflect.Struct:
		for i := range value.NumField() {
			escapeIn(value.Field(i))
		}
	case !value.CanSet() || value.IsZero():
	case kind == reflect.String:
		value.SetString(Text(value.String()))
	case kind == reflect.Pointer:
		copied := reflect.New(value.Type().Elem())
		copied.Elem().Set(value.Elem())
		escapeIn(copied.Elem())
		value.Set(copied)
	case kind == reflect.Interface:
		copied := reflect.New(value.Elem().Type()).Elem()
		copied.Set(value.Elem())
		escapeIn(copied)
		value.Set(copied)
	case kind == reflect.Slice:
		copied := reflect.MakeSlice(value.Type(), value.Len(), value.Len())
		reflect.Copy(copied, value)
		for i := range copied.Len() {
			escapeIn(copied.Index(i))
		}
		value.Set(copied)
	case kind == reflect.Map:
		copied := reflect.MakeMapWithSize(value.Type(), value.Len())
		for key, element := range value.Seq2() {
			entry := [2]reflect.Value{reflect.New(key.Type()).Elem(), reflect.New(element.Type()).Elem()}
			entry[0].Set(key)
			entry[1].Set(element)
			escapeIn(entry[0])
			escapeIn(entry[1])
			copied.SetMapIndex(entry[0], entry[1])
		}
		value.Set(copied)
	}
}

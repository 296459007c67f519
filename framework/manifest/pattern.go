package manifest

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// maxRepeat bounds how often a part of a pattern is repeated to make a string longer.
const maxRepeat = 64

// shortest is the shortest string that a pattern describes when everything that may be repeated without end is repeated so
// often more than it must be. Assertions other than anchors are not obeyed; the caller tries the string.
func shortest(pattern string, repeat int) (string, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", fmt.Errorf("its pattern %q is no regular expression of Go: %w", pattern, err)
	}
	var text strings.Builder
	write(&text, parsed.Simplify(), repeat)
	return text.String(), nil
}

func write(text *strings.Builder, part *syntax.Regexp, repeat int) {
	switch part.Op {
	case syntax.OpLiteral:
		text.WriteString(string(part.Rune))
	case syntax.OpCharClass:
		text.WriteRune(oneOf(part.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		text.WriteRune('a')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range part.Sub {
			write(text, sub, repeat)
		}
	case syntax.OpStar:
		writeTimes(text, part.Sub[0], repeat)
	case syntax.OpPlus:
		writeTimes(text, part.Sub[0], repeat+1)
	case syntax.OpQuest: // what may be repeated so often at most is simplified to these
		if repeat > 0 {
			write(text, part.Sub[0], repeat-1)
		}
	case syntax.OpAlternate:
		write(text, part.Sub[0], repeat)
	}
}

// writeTimes repeats a part. What is in it is not made longer, too: that would grow without measure.
func writeTimes(text *strings.Builder, part *syntax.Regexp, times int) {
	for range times {
		write(text, part, 0)
	}
}

// oneOf is a character of a class, given as pairs of the first and the last one: a letter or a digit if it has one.
func oneOf(ranges []rune) rune {
	in := func(wanted rune) bool {
		for pair := range slices.Chunk(ranges, 2) {
			if pair[0] <= wanted && wanted <= pair[1] {
				return true
			}
		}
		return false
	}
	for _, wanted := range "aA01/-. " {
		if in(wanted) {
			return wanted
		}
	}
	if len(ranges) == 0 {
		return 'a' // a class of nothing: no string matches
	}
	return ranges[0]
}

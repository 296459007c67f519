package manifest

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// maxRepeat limits the repetitions of a part that makes a string longer.
const maxRepeat = 64

// shortest returns the shortest string that a pattern describes, with `repeat` additional repetitions of unbounded parts. It ignores
// assertions other than anchors; the caller checks the string.
func shortest(pattern string, repeat int) (string, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", fmt.Errorf("its pattern %q is not a Go regular expression: %w", pattern, err)
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
	case syntax.OpQuest: // the parser simplifies bounded repetition to optional parts
		if repeat > 0 {
			write(text, part.Sub[0], repeat-1)
		}
	case syntax.OpAlternate:
		write(text, part.Sub[0], repeat)
	}
}

// writeTimes repeats a part. It does not extend nested parts, which would grow exponentially.
func writeTimes(text *strings.Builder, part *syntax.Regexp, times int) {
	for range times {
		write(text, part, 0)
	}
}

// oneOf returns a character of a class, given as pairs of first and last: preferably a letter or a digit.
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
		return 'a' // an empty class: no string matches
	}
	return ranges[0]
}

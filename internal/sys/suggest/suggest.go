// Package suggest finds the known name that a user may have meant with an unknown one.
package suggest

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

const (
	// minSimilarity is the similarity, of 0 to 1, from which on two names are taken for the same with typing mistakes.
	minSimilarity = 0.65
	// maxMistakes is how many letters of a name may be wrong, missing or too many whatever the similarity. Two letters in the wrong order
	// are two mistakes. In names of no more than shortest letters, that would be all of them.
	maxMistakes, shortest = 2, 3
)

// Nearest returns the known name that is most like a given one, whatever the case of its letters. It is empty if none is like it.
func Nearest(given string, known []string) string {
	nearest, best := "", 0.0
	for _, name := range known {
		given, lower := strings.ToLower(given), strings.ToLower(name)
		similarity := levenshtein.Similarity(given, lower, nil)
		few := len(given) > shortest && levenshtein.Distance(given, lower, nil) <= maxMistakes
		if (few || similarity >= minSimilarity) && similarity > best {
			nearest, best = name, similarity
		}
	}
	return nearest
}

// Hint returns the end of an error about an unknown name: `; did you mean "json"?`. It is empty if no known name is like it.
func Hint(given string, known []string) string {
	nearest := Nearest(given, known)
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", nearest)
}

package environment

import (
	"crypto/sha256"

	"k8s.io/apimachinery/pkg/util/rand"
)

// NewRunID returns an id for a run: short, unique with high probability, and valid in names and labels.
func NewRunID() string { return "dc" + rand.String(8) }

// idLetters are the letters of ids, without vowels and letters that look alike.
const idLetters = "bcdfghjklmnpqrstvwxz2456789"

// RunIDOf returns the id of a run that is always the same for a seed. Attempts of the same work find by it what earlier ones left.
func RunIDOf(seed string) string {
	id := []byte("dc")
	for _, b := range sha256.Sum256([]byte(seed)) {
		if len(id) == len("dc")+8 {
			break
		}
		id = append(id, idLetters[int(b)%len(idLetters)])
	}
	return string(id)
}

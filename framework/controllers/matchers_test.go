package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestIsLater(t *testing.T) {
	g := NewWithT(t)
	g.Expect(isLater("1000", "999")).To(BeTrue(), "they are numbers")
	g.Expect(isLater("999", "1000")).To(BeFalse())
	g.Expect(isLater("999", "999")).To(BeFalse())
	g.Expect(isLater("abc", "999")).To(BeFalse(), "of others nothing is known")
}

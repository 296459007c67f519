package reexec

import (
	"errors"
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestMain(m *testing.M) {
	Init(map[string]func() error{
		"prints": func() error { fmt.Printf("%s|%s", os.Getenv("GIVEN"), os.Getenv(variable)); return nil },
		"fails":  func() error { return errors.New("what is wrong") },
	})
	os.Exit(m.Run())
}

func TestCommand(t *testing.T) {
	g := NewWithT(t)
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())

	printed, err := Command(t.Context(), self, "prints", []string{"GIVEN=value"}).Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(printed)).To(Equal("value|"), "and processes that it starts do not inherit the variable")

	printed, err = Command(t.Context(), self, "fails", nil).CombinedOutput()
	g.Expect(err).To(MatchError("exit status 1"))
	g.Expect(string(printed)).To(Equal("what is wrong\n"))
}

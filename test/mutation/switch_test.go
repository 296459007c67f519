package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// asking asks for the active mutant from several goroutines and prints each new name.
const asking = `package main

import (
	"fmt"
	"runtime"
)

var atStart = activeMutant()

func main() {
	fmt.Println(atStart)
	names := make(chan string)
	for range 8 {
		go func() {
			for last := atStart; ; runtime.Gosched() {
				if name := activeMutant(); name != last {
					last = name
					names <- name
				}
			}
		}()
	}
	printed := map[string]bool{}
	for name := range names {
		if !printed[name] {
			printed[name] = true
			fmt.Println(name)
		}
	}
}
`

func TestSwitch(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	write := func(name, content string) {
		g.Expect(os.WriteFile(filepath.Join(folder, name+".new"), []byte(content), 0o644)).To(Succeed())
		g.Expect(os.Rename(filepath.Join(folder, name+".new"), filepath.Join(folder, name))).To(Succeed())
	}
	write("go.mod", "module asking\n\ngo 1.24\n")
	write("main.go", asking)
	write("mutant_switch.go", string(switchFor("main")))
	_, err := goTool(t.Context(), folder, "build", "-o", "asking", ".")
	g.Expect(err).NotTo(HaveOccurred())
	program := filepath.Join(folder, "asking")
	g.Expect(exec.CommandContext(t.Context(), program).Run()).NotTo(Succeed(), "without the file it must not start")

	write(switchName, "none\n")
	command := exec.CommandContext(t.Context(), program)
	out, err := command.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Start()).To(Succeed())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	lines := bufio.NewScanner(out)
	g.Expect(lines.Scan()).To(BeTrue())
	g.Expect(lines.Text()).To(Equal("none"))
	for i := range 5 {
		name := fmt.Sprint("a/", i)
		write(switchName, name+"\n")
		g.Expect(lines.Scan()).To(BeTrue())
		g.Expect(lines.Text()).To(Equal(name))
	}
}

// Command machine is the first process of a machine of its own: a node of a local cluster, with processes, mounts,
// network and host name that nobody else on the host sees and that the kernel removes when this process ends. It reads
// what to do as JSON from its standard input, says what happened as JSON on its standard output, and ends when the
// input does, so it cannot outlive whoever holds the other end.
//
// It must be started in new process, mount, network, UTS and IPC namespaces. provider/internal/node does so.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// setup is the first thing that is read: what the machine is like.
type setup struct {
	// Name is the host name.
	Name string `json:"name"`
	// Root is an empty folder for the machine's root file system.
	Root string `json:"root"`
	// Disk is a folder for what the machine stores under /var.
	Disk string `json:"disk"`
	// Shared are folders that the machine sees as the host does, and may write to.
	Shared []string `json:"shared"`
	// Seen are folders that the machine sees as the host does, and may only read.
	Seen []string `json:"seen"`
	// Address is the machine's IP address.
	Address string `json:"address"`
	// Busybox is the path of a busybox, whose ip gives the machine its address.
	Busybox string `json:"busybox"`
	// Settings are kernel settings (a path below /proc/sys) that the machine is shown with these values, and cannot
	// change for the host.
	Settings map[string]string `json:"settings"`
	// Forward is a TCP address on which the machine answers with what listens on the host's socket ForwardTo.
	Forward   string `json:"forward"`
	ForwardTo string `json:"forwardTo"`
	// Entrance is a socket through which the host reaches the machine's TCP addresses, by HTTP CONNECT.
	Entrance string `json:"entrance"`
}

// order is everything that is read later: start a part, or stop it.
type order struct {
	Start *part  `json:"start,omitempty"`
	Stop  string `json:"stop,omitempty"`
}

// part is a process of the machine.
type part struct {
	Name        string   `json:"name"`
	Command     []string `json:"command"`
	Environment []string `json:"environment"`
	// Log is the file that gets what it says; it is appended to.
	Log string `json:"log"`
}

// event is what is said: a part has started or ended. The machine itself is the part without a name.
type event struct {
	Name  string `json:"name"`
	Ended bool   `json:"ended"`
	// How says how it ended, or why it did not start.
	How string `json:"how,omitempty"`
}

func main() {
	input := json.NewDecoder(os.Stdin)
	parts := newParts(os.Stdout)
	if err := run(input, parts); err != nil {
		parts.say(event{Ended: true, How: err.Error()})
		os.Exit(1)
	}
}

// run makes the machine and then does what it is told until there is nothing more to come.
func run(input *json.Decoder, parts *parts) error {
	var machine setup
	if err := input.Decode(&machine); err != nil {
		return fmt.Errorf("read what the machine is like: %w", err)
	}
	if os.Getpid() != 1 {
		return errors.New("this is no machine of its own: it must be started in new namespaces")
	}
	if err := machine.mount(); err != nil {
		return fmt.Errorf("make the machine's file system: %w", err)
	}
	if err := machine.connect(); err != nil {
		return fmt.Errorf("make the machine's network: %w", err)
	}
	go parts.reap()
	parts.say(event{})
	for {
		var next order
		if err := input.Decode(&next); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what to do: %w", err)
		}
		if next.Start != nil {
			parts.start(*next.Start)
		} else {
			parts.stop(next.Stop)
		}
	}
}

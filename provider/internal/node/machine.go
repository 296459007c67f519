package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/deletion-conformance/deletion-conformance/provider/internal/process"
)

// setup, order, part and event are what is said to and by the machine's first process. kubernetes/machine has the other
// end, and says what the fields mean.
type setup struct {
	Name      string            `json:"name"`
	Root      string            `json:"root"`
	Disk      string            `json:"disk"`
	Shared    []string          `json:"shared"`
	Seen      []string          `json:"seen"`
	Address   string            `json:"address"`
	Busybox   string            `json:"busybox"`
	Settings  map[string]string `json:"settings"`
	Forward   string            `json:"forward"`
	ForwardTo string            `json:"forwardTo"`
	Entrance  string            `json:"entrance"`
}

type order struct {
	Start *part  `json:"start,omitempty"`
	Stop  string `json:"stop,omitempty"`
}

type part struct {
	Name        string   `json:"name"`
	Command     []string `json:"command"`
	Environment []string `json:"environment"`
	Log         string   `json:"log"`
}

type event struct {
	Name  string `json:"name"`
	Ended bool   `json:"ended"`
	How   string `json:"how,omitempty"`
}

// machine is the machine a node runs on.
type machine struct {
	process *exec.Cmd
	input   io.WriteCloser
	log     string
	gone    chan struct{} // closed when nothing of the machine is left

	mu      sync.Mutex
	parts   map[string]event // the latest of each part; of the machine itself under no name
	logs    map[string]string
	changed chan struct{} // closed, and replaced, at every event
}

// launch starts the machine.
func launch(ctx context.Context, binary, log string, setup setup) (*machine, error) {
	m := &machine{
		process: exec.Command(binary), log: log, gone: make(chan struct{}),
		parts: map[string]event{}, logs: map[string]string{}, changed: make(chan struct{}),
	}
	output, err := m.open(setup.Shared[0])
	if err != nil {
		return nil, fmt.Errorf("start the machine: %w", err)
	}
	go m.listen(output)
	if err := json.NewEncoder(m.input).Encode(setup); err != nil {
		m.kill()
		return nil, fmt.Errorf("start the machine: %w", err)
	}
	if err := m.until(ctx, "", func(_ event, known bool) bool { return known }); err != nil {
		m.kill()
		return nil, fmt.Errorf("start the machine: %w", err)
	}
	return m, nil
}

// open starts the first process and returns what it says. It ends when its input does: when the runner is gone.
func (m *machine) open(cluster string) (io.Reader, error) {
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	m.process.Env = process.Marked(cluster)
	m.process.Stderr = log
	m.process.SysProcAttr = namespaces()
	if m.input, err = m.process.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := m.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return output, m.process.Start()
}

// listen takes note of what the machine says until it is gone.
func (m *machine) listen(output io.Reader) {
	events := json.NewDecoder(output)
	for {
		var latest event
		if err := events.Decode(&latest); err != nil {
			break
		}
		m.note(latest)
	}
	how := "it ended"
	if err := m.process.Wait(); err != nil {
		how = err.Error()
	}
	m.mu.Lock()
	if said := m.parts[""]; said.Ended {
		how = said.How
	}
	m.mu.Unlock()
	m.note(event{Ended: true, How: how})
	close(m.gone)
}

func (m *machine) note(latest event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[latest.Name] = latest
	close(m.changed)
	m.changed = make(chan struct{})
}

// until waits until the latest event of a part is as wanted. It fails when the machine ends first.
func (m *machine) until(ctx context.Context, name string, wanted func(latest event, known bool) bool) error {
	for {
		m.mu.Lock()
		latest, known := m.parts[name]
		itself, changed := m.parts[""], m.changed
		m.mu.Unlock()
		if itself.Ended {
			return fmt.Errorf("the machine ended (%s); the last lines of its log:\n%s", itself.How, process.LastWords(m.log))
		}
		if wanted(latest, known) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// start starts a part and waits until it was started.
func (m *machine) start(ctx context.Context, part part) error {
	if m.running(part.Name) {
		return fmt.Errorf("start %s: it is running already", part.Name)
	}
	m.mu.Lock()
	delete(m.parts, part.Name)
	m.logs[part.Name] = part.Log
	m.mu.Unlock()
	if err := json.NewEncoder(m.input).Encode(order{Start: &part}); err != nil {
		return fmt.Errorf("start %s: %w", part.Name, err)
	}
	if err := m.until(ctx, part.Name, func(_ event, known bool) bool { return known }); err != nil {
		return fmt.Errorf("start %s: %w", part.Name, err)
	}
	return nil
}

// stop kills a part and waits until it is gone. Nothing happens if it is not there.
func (m *machine) stop(ctx context.Context, name string) error {
	if !m.running(name) {
		return nil
	}
	if err := json.NewEncoder(m.input).Encode(order{Stop: name}); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	err := m.until(ctx, name, func(latest event, _ bool) bool { return latest.Ended })
	if err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.parts, name) // it ended because it was to
	return nil
}

// running says whether a part was started and has not ended.
func (m *machine) running(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	latest, known := m.parts[name]
	return known && !latest.Ended
}

// alive is nil while the machine and everything that was started on it, and not stopped, runs.
func (m *machine) alive() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var failures []error
	for name, latest := range m.parts {
		if !latest.Ended {
			continue
		}
		log := m.logs[name]
		if name == "" {
			name, log = "the machine of the node", m.log
		}
		failures = append(failures,
			fmt.Errorf("%s ended (%s); the last lines of its log:\n%s", name, latest.How, process.LastWords(log)))
	}
	return errors.Join(failures...)
}

// kill ends the machine with everything on it, and waits until nothing is left: the kernel ends every process of a
// machine with its first one.
func (m *machine) kill() {
	_ = m.process.Process.Kill() // it may have ended already
	<-m.gone
}

package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider"
)

// planCommand is the argument with which a program starts itself again to list and select the behaviors; see package reexec.
const planCommand = "deletion-conformance-plan"

// init runs in the processes that Run starts, and exits. The package's documentation explains why.
func init() {
	reexec.Init(map[string]func() error{
		workers.Command: workers.Main,
		planCommand:     func() error { return makePlan(os.Stdin, os.Stdout) },
	})
}

// planned selects behaviors in another process, because Ginkgo takes over the signals of a program that reads its specs.
func planned(ctx context.Context, selection plan.Selection) (plan.Plan, error) {
	executable, err := os.Executable()
	if err != nil {
		return plan.Plan{}, fmt.Errorf("find this program, to start it again: %w", err)
	}
	asked, err := json.Marshal(selection)
	if err != nil {
		return plan.Plan{}, err
	}
	var said, complaint bytes.Buffer
	command := reexec.Command(ctx, executable, planCommand, os.Environ())
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(asked), &said, &complaint
	if err := command.Run(); err != nil {
		reason := cmp.Or(strings.TrimSpace(complaint.String()), err.Error())
		return plan.Plan{}, errors.Join(fmt.Errorf("choose behaviors: %s", reason), context.Cause(ctx))
	}
	made := plan.Plan{}
	if err := json.Unmarshal(said.Bytes(), &made); err != nil {
		return plan.Plan{}, fmt.Errorf("read what there is to test: %w", err)
	}
	return made, nil
}

// makePlan applies a selection.
func makePlan(input io.Reader, output io.Writer) error {
	selection := plan.Selection{}
	if err := json.NewDecoder(input).Decode(&selection); err != nil {
		return fmt.Errorf("read what is chosen: %w", err)
	}
	made, err := plan.Make(selection)
	if err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(made)
}

// knownCluster is a cluster about which the caller knows something.
type knownCluster struct {
	provider.Cluster
	features provider.Features
}

// Features are what the caller knows about the cluster.
func (k knownCluster) Features() provider.Features { return k.features }

// version is the version of this module in the importing program.
func version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == modulePath {
			return module.Version
		}
	}
	return "unknown"
}

// modulePath is the path of this module.
const modulePath = "github.com/deletion-conformance/deletion-conformance"

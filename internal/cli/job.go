package cli

import (
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/injob"
)

// fillJob sets what follows from the Job in which the runner runs: the shard, and the id of the run, which attempts of an index share.
func (f *runFlags) fillJob() (err error) {
	pod := injob.Current()
	if seed := pod.Seed(); seed != "" {
		f.options.RunID = environment.RunIDOf(seed)
	}
	f.options.Selection.Shard, err = pod.Shard(f.options.Selection.Shard)
	return err
}

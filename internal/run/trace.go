package run

import (
	"context"
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// sendTrace sends a redacted report as a trace while the run cleans up. The returned function waits for that, and warns of what was lost,
// which never fails a run.
func (c *conductor) sendTrace(ctx context.Context, whole v1alpha1.Report) (await func()) {
	if c.SendTrace == nil {
		return func() {}
	}
	sent := make(chan error, 1)
	go func() {
		sent <- crash.Caught("send the trace", func() error { return c.SendTrace(context.WithoutCancel(ctx), whole) })
	}()
	return func() {
		if err := <-sent; err != nil {
			_, _ = fmt.Fprintf(c.Out, "warning: %s\n", c.redactor.Text(err.Error()))
		}
	}
}

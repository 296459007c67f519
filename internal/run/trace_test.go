package run

import (
	"bytes"
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func TestRun_LostTrace(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(context.Context, v1alpha1.Report) error
		want string
	}{
		{"no collector", nil, ""},
		{"sent, although the run was interrupted", func(ctx context.Context, _ v1alpha1.Report) error { return ctx.Err() }, ""},
		{"lost", func(context.Context, v1alpha1.Report) error { return errors.New("3 of 7 spans were lost") }, "warning: 3 of 7 spans were lost\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, out := NewWithT(t), &bytes.Buffer{}
			redactor, err := redact.For(nil, redact.Scope{})
			g.Expect(err).NotTo(HaveOccurred())
			interrupted, cancel := context.WithCancel(t.Context())
			cancel()
			conducts := &conductor{Options: &Options{SendTrace: c.send, Out: out}, redactor: redactor}
			conducts.sendTrace(interrupted, reporttest.Sample())()
			g.Expect(out.String()).To(Equal(c.want))
		})
	}
}

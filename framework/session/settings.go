package session

import (
	"time"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// Settings are what a user chooses for a run, and every spec goes by. They travel as they are from the flags to the
// workers.
type Settings struct {
	// Settle is how long a spec goes on watching after a barrier, before it takes a "does not happen" as shown.
	Settle time.Duration `json:"settle"`
	// WaitTimeout is how long a spec waits for something that must happen.
	WaitTimeout time.Duration `json:"waitTimeout"`
	// Scale is how many dependents the one owner has that many are collected of.
	Scale int `json:"scale,omitempty"`
	// Disruptive says that behaviours may run that change more of the cluster than what they make.
	Disruptive bool `json:"disruptive,omitempty"`
	// WebhookHost is the address under which the API server can reach this machine; found out when empty.
	WebhookHost string `json:"webhookHost,omitempty"`
	// ImageRegistry is a mirror to take images from; empty for where they are published.
	ImageRegistry string `json:"imageRegistry,omitempty"`
}

const (
	// DefaultSettle is long enough for a collector to act on what it should leave alone: it takes some 50 ms for what it
	// should not.
	DefaultSettle = 500 * time.Millisecond
	// DefaultWaitTimeout is generous: a healthy cluster needs a fraction of a second, and a broken order is noticed at once.
	DefaultWaitTimeout = 30 * time.Second
	// DefaultScale is enough to keep all of the collector's workers busy, and takes a second or two.
	DefaultScale = 200
)

// DefaultSettings are those of a run that chooses nothing.
func DefaultSettings() Settings {
	return Settings{Settle: DefaultSettle, WaitTimeout: DefaultWaitTimeout, Scale: DefaultScale}
}

// RunLabel is on everything a run makes, with the run's id.
const RunLabel = client.RunLabel

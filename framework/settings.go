package framework

import "time"

// Settings are what a user can choose about how specs run. The command line fills them once, and they travel as they are:
// from there to what prepares a cluster, and on to the workers.
type Settings struct {
	// Settle is how long a spec goes on watching after a barrier, before it takes a "does not happen" as shown.
	Settle time.Duration `json:"settle"`
	// WaitTimeout is how long a spec waits for something that must happen.
	WaitTimeout time.Duration `json:"waitTimeout"`
	// WebhookHost is the address under which the API server can reach this machine. Where the user names none it is found
	// out before the specs run; it is empty for them where the server cannot.
	WebhookHost string `json:"webhookHost,omitempty"`
	// ImageRegistry is a mirror to take images from; empty for where they are published.
	ImageRegistry string `json:"imageRegistry,omitempty"`
}

const (
	// DefaultSettle is long enough for a collector to act on what it should leave alone: it takes some 50 ms for what it
	// should not.
	DefaultSettle = 500 * time.Millisecond
	// DefaultWaitTimeout is generous: a healthy cluster needs a fraction of a second, and a broken order is noticed at
	// once.
	DefaultWaitTimeout = 30 * time.Second
)

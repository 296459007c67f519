// Package exploration runs random operations on a cluster and records what clients see: it turns intents into requests, responses into the
// outcomes of the model, and watches into streams. What it records is checked by package history, which knows no client.
package exploration

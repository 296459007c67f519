// Package kubectl holds the behaviors of kubectl delete, wait, replace and drain: which requests the flags cause, which flags are
// rejected, and when kubectl returns. Specs run a real kubectl behind a proxy that records its requests.
package kubectl

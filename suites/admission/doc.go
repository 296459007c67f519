// Package admission holds the behaviors of admission control on deletes: which requests are reviewed by webhooks and policies, what
// a review contains, and what a denial does.
package admission

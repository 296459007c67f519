// Package webhooks has the API server send a spec's requests to an admission webhook of the spec's own. A webhook records each review,
// and allows, denies or holds it as the spec says:
//
//	webhook := webhooks.Validating(ctx, cluster)
//	webhook.Deny(object, "protected")
//
// By default a webhook reviews deletes of what the spec made. Other requests never pass through it.
package webhooks

// Package webhooks makes the API server send a spec's requests to an admission webhook of the spec. A webhook records each review, and
// allows, denies or delays it:
//
//	webhook := webhooks.Validating(ctx, cluster)
//	webhook.Deny(object, "protected")
//
// By default a webhook reviews deletes of the spec's objects. It never receives requests of other users of the cluster.
package webhooks

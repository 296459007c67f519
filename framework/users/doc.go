// Package users shows a spec the cluster as another user sees it: a user with a Role of the spec's own, or the kubelet of a node. It
// requests and reviews tokens of ServiceAccounts, too.
//
//	deleter := users.As(ctx, cluster, "deleter", users.May("configmaps", "delete"))
//	Expect(deleter.TryDelete(ctx, object)).To(HaveStatusCode(http.StatusOK))
package users

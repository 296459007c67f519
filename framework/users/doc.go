// Package users shows a spec the cluster as another user sees it: a user with a Role of the spec, or the kubelet of a node. It also
// requests and reviews tokens of ServiceAccounts.
//
//	deleter := users.As(ctx, cluster, "deleter", users.May("configmaps", "delete"))
//	Expect(deleter.TryDelete(ctx, object)).To(HaveStatusCode(http.StatusOK))
package users

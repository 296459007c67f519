//go:build kubernetes_before_1_34 && !api_server_alone

package main

import kubelet "k8s.io/kubernetes/cmd/kubelet/app"

func init() {
	commands["kubelet"] = kubelet.NewKubeletCommand
}

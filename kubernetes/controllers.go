//go:build !api_server_alone

package main

import (
	"github.com/spf13/cobra"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func init() {
	commands["kube-controller-manager"] = controllermanager.NewControllerManagerCommand
	commands["kube-scheduler"] = func() *cobra.Command { return scheduler.NewSchedulerCommand() }
}

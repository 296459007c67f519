// Command kubectl is kubectl itself, unmodified, of the same version as the Kubernetes beside it. It is a binary of its own:
// it is run hundreds of times and starts sooner than one that holds a control plane, and it is built only where it is used.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

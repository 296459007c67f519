// Command kubernetes is Kubernetes itself: etcd, the API server, the controller manager, the scheduler and, on
// Linux, the kubelet, unmodified, in one binary. Like busybox it does what the name it is called by says, so the
// harness links it under the names of its components (see `runner cluster build`). With the build tag api_server_alone it is etcd
// and the API server only.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // what the components measure of their clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // their version as a metric
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// commands holds the components that are built from cobra commands; etcd brings a main of its own. The controllers join
// them unless the tag api_server_alone leaves them out, and the kubelet where it can be built.
var commands = map[string]func() *cobra.Command{"kube-apiserver": apiserver.NewAPIServerCommand}

func main() {
	endWithParent()
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := commands[name]
	if !known {
		names := slices.Sorted(maps.Keys(commands))
		fmt.Fprintf(os.Stderr, "%s: call this binary by the name of the component to run: etcd, %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}

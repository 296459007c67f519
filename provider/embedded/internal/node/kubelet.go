package node

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"text/template"
)

// kubeletConfig is the kubelet's configuration. Kubelets of other versions ignore unknown fields. cgroupDriver and failCgroupV1 make it run
// wherever runc does. The eviction threshold keeps a full disk of the host from evicting pods, and that of image garbage collection from
// removing images. Volumes are measured every 10 s instead of every minute. The address of the DNS service does not exist, but a kubelet
// without one warns about every pod. syncFrequency is a minute by default, and a deleted mirror pod is recreated only by the next sync. The
// lease is renewed every 5 s, a quarter of its duration, so that a lost node is noticed soon.
var kubeletConfig = template.Must(template.New("kubelet").Parse(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {{.Address}}
healthzBindAddress: 127.0.0.1
tlsCertFile: {{.Certificate}}
tlsPrivateKeyFile: {{.Key}}
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: {{.CA}}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://{{.Runtime}}
cgroupDriver: cgroupfs
cgroupRoot: /{{.Cgroup}}
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
volumeStatsAggPeriod: 10s
evictionHard: {memory.available: 10Mi}
imageGCHighThresholdPercent: 100
resolvConf: {{.Resolver}}
clusterDNS: [10.0.0.10]
clusterDomain: cluster.local
makeIPTablesUtilChains: false
staticPodPath: {{.StaticPods}}
volumePluginDir: /var/lib/kubelet/volume-plugins
registerWithTaints: []
kubeAPIQPS: 1000
kubeAPIBurst: 2000
eventRecordQPS: 1000
eventBurst: 2000
serializeImagePulls: false
syncFrequency: 10s
nodeLeaseDurationSeconds: 20
shutdownGracePeriod: 0s
logging: {verbosity: 2}
`))

// kubeletSysctls are kernel settings that a kubelet changes for the whole host if they differ. The sandbox shows it these values, and the
// host keeps its own.
func kubeletSysctls() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// kubeletCommand writes the kubelet's configuration and returns its command line.
func (n *Node) kubeletCommand() ([]string, error) {
	certificate, key, err := n.CA.Server(Kubelet+"-"+n.Name, net.ParseIP(n.address()))
	if err != nil {
		return nil, err
	}
	resolver := n.path("resolv.conf")
	if err := os.WriteFile(resolver, []byte("# There is no name service here.\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write %s: %w", resolver, err)
	}
	if err := makeDirs(n.path(staticPodDir)); err != nil {
		return nil, err
	}
	config := n.path("kubelet.yaml")
	if err := write(config, kubeletConfig, map[string]string{
		"Address": n.address(), "Certificate": certificate, "Key": key, "CA": n.CA.File(),
		"Runtime": n.socket(), "Cgroup": n.cgroup(), "Resolver": resolver,
		"StaticPods": n.path(staticPodDir),
	}); err != nil {
		return nil, err
	}
	return []string{
		filepath.Join(n.Binaries, Kubelet),
		"--config=" + config,
		"--kubeconfig=" + n.Kubeconfig,
		"--hostname-override=" + n.Name,
		"--node-ip=" + n.address(),
	}, nil
}

// staticPodDir is the directory of the manifests of static pods.
const staticPodDir = "static-pods"

// PutStaticPod adds the manifest of a static pod. The kubelet runs it until RemoveStaticPod.
func (n *Node) PutStaticPod(name string, manifest []byte) error {
	hidden := n.path(staticPodDir, "."+name) // the kubelet ignores hidden files and must not read a partial one
	if err := os.WriteFile(hidden, manifest, 0o600); err != nil {
		return fmt.Errorf("write the manifest of static pod %s: %w", name, err)
	}
	return os.Rename(hidden, n.path(staticPodDir, name))
}

// RemoveStaticPod removes the manifest, and the kubelet ends the pod. It does nothing for a pod that has none.
func (n *Node) RemoveStaticPod(name string) error { return os.RemoveAll(n.path(staticPodDir, name)) }

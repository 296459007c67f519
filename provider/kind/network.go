package kind

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"
)

// gateway returns the address at which nodes reach this machine: their default gateway, which is the bridge of their network. It fails when
// that is not an address of this machine, for example with containers in the virtual machine of Docker Desktop.
func (c *instance) gateway() (string, error) {
	there, err := c.provider.ListNodes(c.config.Name)
	if err != nil {
		return "", reasonOf(err)
	}
	node, err := nodeutils.BootstrapControlPlaneNode(there)
	if err != nil {
		return "", reasonOf(err)
	}
	gateway, err := defaultGateway(node)
	if err != nil {
		return "", err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list the addresses of this machine: %w", err)
	}
	if !slices.ContainsFunc(own, func(address net.Addr) bool { return strings.HasPrefix(address.String(), gateway+"/") }) {
		return "", fmt.Errorf("the gateway of kind's network, %s, is not on this machine, because the containers run elsewhere: the API server cannot reach a webhook; set --webhook-host to an address that it can reach", gateway)
	}
	return gateway, nil
}

// defaultGateway returns the default gateway of a node.
func defaultGateway(node nodes.Node) (string, error) {
	for _, family := range []string{"-4", "-6"} {
		lines, err := kindexec.OutputLines(node.Command("ip", family, "route", "show", "default"))
		if err != nil {
			return "", fmt.Errorf("read the default gateway of node %s: %w", node, reasonOf(err))
		}
		for _, line := range lines {
			if gateway, ok := via(line); ok {
				return gateway, nil
			}
		}
	}
	return "", fmt.Errorf("node %s has no default gateway, so it cannot reach a webhook on this machine", node)
}

// via returns the gateway of a route in the format of ip.
func via(route string) (string, bool) {
	fields := strings.Fields(route)
	i := slices.Index(fields, "via")
	if i < 0 || i+1 >= len(fields) {
		return "", false
	}
	address, err := netip.ParseAddr(fields[i+1])
	return address.String(), err == nil && address.IsGlobalUnicast()
}

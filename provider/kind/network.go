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

// gateway is the address at which nodes reach this machine: their default gateway, which is the bridge that their network is
// on. It is none of this machine's where the containers run elsewhere, such as in the virtual machine of Docker Desktop.
func (c *instance) gateway() (string, error) {
	there, err := c.provider.ListNodes(c.config.Name)
	if err != nil {
		return "", said(err)
	}
	node, err := nodeutils.BootstrapControlPlaneNode(there)
	if err != nil {
		return "", said(err)
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
		return "", fmt.Errorf("the gateway of kind's network, %s, is not this machine, as the containers run elsewhere: the API server cannot reach a webhook here; name an address that it can reach (--webhook-host)", gateway)
	}
	return gateway, nil
}

// defaultGateway is that of a node.
func defaultGateway(node nodes.Node) (string, error) {
	for _, family := range []string{"-4", "-6"} {
		lines, err := kindexec.OutputLines(node.Command("ip", family, "route", "show", "default"))
		if err != nil {
			return "", fmt.Errorf("ask node %s for its default gateway: %w", node, said(err))
		}
		for _, line := range lines {
			if gateway, is := via(line); is {
				return gateway, nil
			}
		}
	}
	return "", fmt.Errorf("node %s has no default gateway, by which it would reach a webhook on this machine", node)
}

// via is the gateway of a route as ip prints it.
func via(route string) (string, bool) {
	fields := strings.Fields(route)
	i := slices.Index(fields, "via")
	if i < 0 || i+1 >= len(fields) {
		return "", false
	}
	address, err := netip.ParseAddr(fields[i+1])
	return address.String(), err == nil && address.IsGlobalUnicast()
}

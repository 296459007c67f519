package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/sandbox"
)

const (
	// serviceNetwork is the range of the addresses of Services, and kubernetesService the address of the API server's, the first one.
	serviceNetwork    = "10.0.0.0/16"
	kubernetesService = "10.0.0.1"
	// egressSocket is the socket in the state directory through which the API server connects to the cluster.
	egressSocket = "egress.sock"
	// serviceTimeout limits how long a Service is looked up.
	serviceTimeout = 5 * time.Second
)

// serveEgress serves the API server's connections to the cluster, by HTTP CONNECT, until the cluster is destroyed. They lead into the nodes. No
// kube-proxy runs there, so the address of a Service is replaced by that of a pod, as kube-proxy would. Webhooks and aggregated APIs of
// pods can therefore be called.
func (c *instance) serveEgress() error {
	listener, err := net.Listen("unix", c.dir.Path(egressSocket))
	if err != nil {
		return fmt.Errorf("listen for connections of the API server: %w", err)
	}
	c.egress = listener
	go sandbox.Tunnel(listener, c.dial)
	return nil
}

// dial connects the API server with an address of a node, of a Service, or on the loopback of the host, where webhooks and aggregated APIs
// of the run listen: nothing that the API server reaches listens on the loopback of a node.
func (c *instance) dial(address string) (io.ReadWriteCloser, error) {
	endpoint, err := c.endpointOf(address)
	if err != nil {
		return nil, fmt.Errorf("find the pod behind %s: %w", address, err)
	}
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, err
	}
	ip := net.ParseIP(host)
	if ip.IsLoopback() {
		return sandbox.DialHost(endpoint)
	}
	for _, node := range c.nodeList() {
		if node.Has(ip) {
			return node.Dial(endpoint)
		}
	}
	return nil, fmt.Errorf("no node has the address %s", host)
}

// endpointOf returns the address of a pod for the address of a Service, and any other address unchanged.
func (c *instance) endpointOf(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !netip.MustParsePrefix(serviceNetwork).Contains(ip) {
		return address, nil // a name is not the address of a Service
	}
	ctx, cancel := context.WithTimeout(context.Background(), serviceTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return "", err
	}
	found, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.clusterIP=" + host})
	if err != nil {
		return "", err
	}
	if len(found.Items) == 0 {
		return "", errors.New("no Service has this address")
	}
	service := found.Items[0]
	slices, err := client.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name,
	})
	if err != nil {
		return "", err
	}
	return endpoint(service, slices.Items, port)
}

// endpoint returns the address of a ready endpoint for a port of a Service.
func endpoint(service corev1.Service, slices []discoveryv1.EndpointSlice, port string) (string, error) {
	for _, of := range service.Spec.Ports {
		if strconv.Itoa(int(of.Port)) != port {
			continue
		}
		for _, slice := range slices {
			if ready := readyIn(slice, of.Name); ready != "" {
				return ready, nil
			}
		}
	}
	return "", fmt.Errorf("Service %s/%s has no ready endpoint for port %s", service.Namespace, service.Name, port) //nolint:staticcheck // a kind
}

// readyIn returns the address of a ready endpoint for the named port; empty when there is none.
func readyIn(slice discoveryv1.EndpointSlice, name string) string {
	for _, port := range slice.Ports {
		if port.Port == nil || port.Name != nil && *port.Name != name || port.Name == nil && name != "" {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if ready := endpoint.Conditions.Ready; (ready == nil || *ready) && len(endpoint.Addresses) > 0 {
				return net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*port.Port)))
			}
		}
	}
	return ""
}

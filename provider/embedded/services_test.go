package embedded

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestEndpointOf(t *testing.T) {
	g := NewWithT(t)
	service := corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}, {Name: "http", Port: 80}}}}
	slice := func(ready bool, name, address string, port int32) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
			Ports:     []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		}
	}
	slices := []discoveryv1.EndpointSlice{
		slice(false, "https", "10.88.1.2", 29443), slice(true, "http", "10.88.1.3", 8080), slice(true, "https", "10.88.1.4", 29444),
	}

	g.Expect(endpoint(service, slices, "443")).To(Equal("10.88.1.4:29444"))
	g.Expect(endpoint(service, slices, "80")).To(Equal("10.88.1.3:8080"))
	_, err := endpoint(service, slices[:1], "443")
	g.Expect(err).To(MatchError(ContainSubstring("has no ready endpoint for port 443")))
	_, err = endpoint(service, slices, "8443")
	g.Expect(err).To(HaveOccurred())

	other := &instance{}
	g.Expect(other.endpointOf("10.88.0.1:10250")).To(Equal("10.88.0.1:10250"), "it is not the address of a Service")
	g.Expect(other.endpointOf("node:10250")).To(Equal("node:10250"))
}

// Package exposure makes a port of this pod reachable for the API server through a Service. The API server of a managed cluster reaches
// nothing else.
package exposure

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Port is the port of the Services.
const Port = 443

// portName is the name of the port, which connects a Service with its EndpointSlice.
const portName = "https"

// Service leads to a port of this pod. It has no selector, and is in a namespace of the run, with which it ends at the latest.
type Service struct {
	Namespace, Name string
	// Labels are the labels of the run.
	Labels map[string]string
	// Port is the port of the Service; 0 means 443.
	Port int32
	// Address is the IP address of this pod or machine, and TargetPort the port on which it listens.
	Address    string
	TargetPort int32
}

// Host is the name of the server, for its certificate.
func (s Service) Host() string { return s.Name + "." + s.Namespace + ".svc" }

// Create creates the Service and its EndpointSlice, and returns a function that deletes them.
func (s Service) Create(ctx context.Context, with *client.Client) (remove func(context.Context), err error) {
	slice, err := s.slice()
	if err != nil {
		return nil, err
	}
	service, err := s.service()
	if err != nil {
		return nil, err
	}
	remove = func(ctx context.Context) { // what remains is deleted with the namespace
		with.Delete(ctx, slice, metav1.DeleteOptions{})
		with.Delete(ctx, service, metav1.DeleteOptions{})
	}
	for _, object := range []*client.Object{service, slice} {
		if response := with.Create(ctx, object); response.Err != nil {
			remove(ctx)
			return nil, fmt.Errorf("create %s: %w", client.Title(object), response.Err)
		}
	}
	return remove, nil
}

// service returns the Service.
func (s Service) service() (*client.Object, error) {
	return object(&corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: s.metadata(),
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: portName, Port: cmp.Or(s.Port, Port), TargetPort: intstr.FromInt32(s.TargetPort)},
		}},
	})
}

// slice returns its EndpointSlice.
func (s Service) slice() (*client.Object, error) {
	address, err := netip.ParseAddr(s.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %q: %w", s.Address, err)
	}
	family := discoveryv1.AddressTypeIPv4
	if address.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	metadata := s.metadata()
	metadata.Labels[discoveryv1.LabelServiceName], metadata.Labels[discoveryv1.LabelManagedBy] = s.Name, client.Domain
	return object(&discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metadata,
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{s.Address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(portName), Port: new(s.TargetPort), Protocol: new(corev1.ProtocolTCP)}},
	})
}

// metadata returns the metadata of both.
func (s Service) metadata() metav1.ObjectMeta {
	labels := map[string]string{}
	maps.Copy(labels, s.Labels)
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: labels}
}

// object converts a typed object.
func object(typed any) (*client.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return &client.Object{Object: content}, err
}

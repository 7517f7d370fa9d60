// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Address is the address at which the kube-apiserver of a hub reaches hub-apiserver, if that does not run on the hub.
type Address struct {
	// Host is a DNS name or an IP address, Port is from 1 to 65535.
	Host string
	Port int64
}

// ServiceAddress returns the address of hub-apiserver's Service, for a kube-apiserver that runs on the same cluster and resolves its names.
func ServiceAddress(namespace string) Address {
	return Address{Host: APIServer + "." + namespace + ".svc", Port: servicePort}
}

const servicePort = 443

// Check validates an address.
func (a Address) Check() error {
	if a.Port < 1 || a.Port > 65535 {
		return fmt.Errorf("the port must be from 1 to 65535, not %d", a.Port)
	}
	ip, err := netip.ParseAddr(a.Host)
	switch {
	case err != nil:
		if problems := validation.IsDNS1123Subdomain(a.Host); len(problems) > 0 {
			return fmt.Errorf("the host must be a DNS name or an IP address, not %q: %s", a.Host, problems[0])
		}
	case ip.Zone() != "" || ip.Is4In6():
		return fmt.Errorf("the host must be an IP address that EndpointSlices accept, not %q: omit its zone, and write an IPv4 address as IPv4", a.Host)
	case ip.IsUnspecified() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast():
		return fmt.Errorf("the host %s is not an address that EndpointSlices accept: it is unspecified, loopback, link-local or multicast", a.Host)
	}
	return nil
}

// IsIP reports whether the host is an IP address.
func (a Address) IsIP() bool {
	_, err := netip.ParseAddr(a.Host)
	return err == nil
}

// lead routes the objects on a hub to the address: to a name with a Service of type ExternalName, which takes the port from the APIServices; to an IP
// address with a Service without a selector, and an EndpointSlice.
func (a Address) lead(hub []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("the address of hub-apiserver: %w", err)
	}
	var all []*unstructured.Unstructured
	namespace := ""
	for i, o := range hub {
		if o.GetKind() == "APIService" {
			if namespace == "" { // they are last, and need the Service before them
				namespace, _, _ = unstructured.NestedString(o.Object, "spec", "service", "namespace")
				all = append(all, a.service(namespace)...)
			}
			port := int64(servicePort)
			if !a.IsIP() {
				port = a.Port
			}
			if err := unstructured.SetNestedField(o.Object, port, "spec", "service", "port"); err != nil {
				return nil, err
			}
		}
		all = append(all, hub[i])
	}
	if namespace == "" {
		return nil, fmt.Errorf("no APIService refers to hub-apiserver")
	}
	return all, nil
}

func (a Address) service(namespace string) []*unstructured.Unstructured {
	metadata := map[string]any{"name": APIServer, "namespace": namespace}
	service := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": metadata}
	if !a.IsIP() {
		service["spec"] = map[string]any{"type": "ExternalName", "externalName": a.Host}
		return []*unstructured.Unstructured{{Object: service}}
	}
	service["spec"] = map[string]any{"type": "ClusterIP", "ports": []any{
		map[string]any{"name": "https", "port": int64(servicePort), "targetPort": a.Port, "protocol": "TCP"},
	}}
	family := "IPv6"
	if netip.MustParseAddr(a.Host).Is4() {
		family = "IPv4"
	}
	return []*unstructured.Unstructured{{Object: service}, {Object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
		"metadata": map[string]any{"name": APIServer, "namespace": namespace, "labels": map[string]any{
			"kubernetes.io/service-name": APIServer, "endpointslice.kubernetes.io/managed-by": ManagedByOperator,
		}},
		"addressType": family,
		"endpoints":   []any{map[string]any{"addresses": []any{a.Host}}},
		"ports":       []any{map[string]any{"name": "https", "port": a.Port, "protocol": "TCP"}},
	}}}
}

// ManagedByOperator is the field manager of hub-operator's objects, and the value of their label LabelManagedBy.
const ManagedByOperator = "hub-operator"

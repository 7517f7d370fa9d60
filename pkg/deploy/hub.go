// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Hub is how the servers of a hub are deployed.
type Hub struct {
	// ExternalEtcd is for several replicas of hub-apiserver, on an etcd of their own.
	ExternalEtcd bool
	// Components are some of Components().
	Components []string
	Changes
	// Pods is what pods have otherwise.
	Pods Pods
	// Address is for Split: where the hub reaches hub-apiserver. Without a host, nothing on the hub leads to it.
	Address Address
}

// Objects are in the order in which they have to be made.
func (h Hub) Objects() ([]*unstructured.Unstructured, error) {
	folder := "base"
	if h.ExternalEtcd {
		folder = "external-etcd"
	}
	objects, err := build(nil, folder)
	if err != nil {
		return nil, err
	}
	for _, component := range h.Components {
		if !isComponent(component) {
			return nil, fmt.Errorf("there is no component %q: it has to be one of %s", component, strings.Join(Components(), ", "))
		}
		if objects, err = build(objects, component); err != nil {
			return nil, err
		}
	}
	if err := h.apply(objects); err != nil {
		return nil, err
	}
	if err := h.Pods.fill(objects); err != nil {
		return nil, err
	}
	return inOrder(objects), nil
}

// Split is Objects, apart by where they have to be if the servers do not run on the cluster that is the hub: see split. On the hub,
// the Service that the APIServices name leads to Address, if that has a host.
func (h Hub) Split(namespace string) (hub, management []*unstructured.Unstructured, err error) {
	objects, err := h.Objects()
	if err != nil {
		return nil, nil, err
	}
	hub, management = split(objects, namespace)
	if h.Address.Host != "" {
		hub, err = h.Address.lead(hub)
	}
	return hub, management, err
}

// ClusterProvider is how the provider of clusters that exist already is deployed.
type ClusterProvider struct {
	Changes
	// Pods is what its pods have otherwise.
	Pods Pods
}

// Objects are in the order in which they have to be made.
func (p ClusterProvider) Objects() ([]*unstructured.Unstructured, error) {
	objects, err := build(nil, "cluster-provider")
	if err != nil {
		return nil, err
	}
	if err := p.apply(objects); err != nil {
		return nil, err
	}
	if err := p.Pods.fill(objects); err != nil {
		return nil, err
	}
	return inOrder(objects), nil
}

// Split is Objects, apart by where they have to be if the provider does not run on the cluster that is the hub: see split.
func (p ClusterProvider) Split(namespace string) (hub, management []*unstructured.Unstructured, err error) {
	objects, err := p.Objects()
	if err != nil {
		return nil, nil, err
	}
	hub, management = split(objects, namespace)
	return hub, management, nil
}

// Bootstrap is what a hub needs for clusters to join it. upstream adds what Open Cluster Management's agents need.
func Bootstrap(upstream bool) []*unstructured.Unstructured {
	objects, err := build(nil, "bootstrap")
	if err == nil && upstream {
		objects, err = build(objects, "upstream-agents")
	}
	if err != nil {
		panic(err) // it is a part of this program
	}
	return objects
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Hub specifies how the servers of a hub are deployed.
type Hub struct {
	// ExternalEtcd is for several replicas of hub-apiserver, with an etcd of their own.
	ExternalEtcd bool
	// Components are some of Components().
	Components []string
	Changes
	// Pods has the changes of pods.
	Pods Pods
	// Address is for Split: where the hub reaches hub-apiserver. Without a host, nothing on the hub routes to it.
	Address Address
}

// Objects returns the objects in the order in which they must be created.
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
			return nil, fmt.Errorf("there is no component %q: it must be one of %s", component, strings.Join(Components(), ", "))
		}
		objects, err = build(objects, component)
		if err != nil {
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

// Split returns Objects, separated by cluster for servers that do not run on the hub: see split. On the hub, the Service that the APIServices refer
// to routes to Address, if that has a host.
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

// ClusterProvider specifies how the provider of existing clusters is deployed.
type ClusterProvider struct {
	Changes
	// Pods has the changes of its pods.
	Pods Pods
}

// Objects returns the objects in the order in which they must be created.
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

// Split returns Objects, separated by cluster for a provider that does not run on the hub: see split.
func (p ClusterProvider) Split(namespace string) (hub, management []*unstructured.Unstructured, err error) {
	objects, err := p.Objects()
	if err != nil {
		return nil, nil, err
	}
	hub, management = split(objects, namespace)
	return hub, management, nil
}

// Bootstrap returns the objects that a hub needs for clusters to join it. upstream adds those for Open Cluster Management's agents.
func Bootstrap(upstream bool) []*unstructured.Unstructured {
	objects, err := build(nil, "bootstrap")
	if err == nil && upstream {
		objects, err = build(objects, "upstream-agents")
	}
	if err != nil {
		panic(err) // the manifests are compiled into this program
	}
	return objects
}

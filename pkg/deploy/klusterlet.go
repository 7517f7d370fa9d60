// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Klusterlet specifies how an agent of hub-operator is deployed: in two parts, or in one. Several can be on one cluster.
type Klusterlet struct {
	// Name is the Klusterlet's name, a DNS label. It is part of the names of all objects except namespaces.
	Name string
	// Namespace is the namespace of the agent on the managed cluster.
	Namespace string
	// Detached means that the pods run on another cluster, in AgentNamespace.
	Detached       bool
	AgentNamespace string
	// SameCluster means that the other cluster is the managed cluster nevertheless: the agent has two namespaces there.
	SameCluster bool
	// RoleARN is the IAM role of AWS that the parts assume. It may be empty, and is for agents that run on the managed cluster.
	RoleARN string
	// Singleton means one pod for both parts, with the rights of both.
	Singleton bool
	// RegistrationImage and WorkImage are the images of the parts. They default to those of the manifests.
	RegistrationImage, WorkImage string
	// RegistrationArgs and WorkArgs are additional flags of the parts.
	RegistrationArgs, WorkArgs []string
	// BootstrapSecrets are the names of the Secrets with the bootstrap kubeconfigs of several hubs, in the order in which they are tried. Without
	// them it is the one that every agent has.
	BootstrapSecrets []string
	// Works are the rights for works that it applies to the cluster. The role defaults to that of the manifests.
	Works Works
	// Pod changes the specs of the pods. It may be nil.
	Pod func(spec map[string]any)
}

// The names in the manifests of a Klusterlet, which is called klusterlet there.
const (
	klusterletRegistration = "klusterlet-registration-agent"
	klusterletWork         = "klusterlet-work-agent"
	klusterletNetwork      = "klusterlet-agents"
	klusterletWorkAccount  = "klusterlet-work-sa"
	// klusterletSpoke is the prefix of the names of the Secrets with kubeconfigs of the managed cluster.
	klusterletSpoke = "external-managed-kubeconfig-"
)

// Part is one of the parts of a Klusterlet's agent: a Deployment, and the ServiceAccount with its rights.
type Part struct {
	// Deployment is its name, on the cluster that runs the pods.
	Deployment string
	// ServiceAccount is its name on both clusters.
	ServiceAccount string
	// Secret is the Secret with its kubeconfig of the managed cluster, if the pods are elsewhere.
	Secret string
}

// Parts returns the parts of a Klusterlet's agent: the registration and the works, or one for both.
func (k Klusterlet) Parts() []Part {
	part := func(name string) Part {
		return Part{Deployment: k.Name + "-" + name + "-agent", ServiceAccount: k.Name + "-" + name + "-sa", Secret: klusterletSpoke + name}
	}
	if k.Singleton {
		return []Part{{Deployment: k.Name + "-agent", ServiceAccount: k.Name + "-agent-sa", Secret: klusterletSpoke + "agent"}}
	}
	return []Part{part("registration"), part("work")}
}

// AgentID returns the name of the agent in its records of works. It does not change with the hub's address.
func (k Klusterlet) AgentID() string { return registration.KlusterletAgentPrefix + k.Name }

// Objects returns the objects in the order in which they must be created, all of them as if on one cluster.
func (k Klusterlet) Objects() ([]*unstructured.Unstructured, error) {
	folder := "klusterlet"
	if k.Detached {
		folder = "klusterlet-detached"
	}
	objects, err := build(nil, folder)
	if err != nil {
		return nil, err
	}
	if k.Singleton {
		objects, err = asOne(objects)
		if err != nil {
			return nil, err
		}
	}
	names := Changes{Names: k.names()}
	if err := names.apply(objects); err != nil {
		return nil, err
	}
	if k.Works.Role != "" {
		objects = k.Works.in(objects, names.Names)
	}
	// After the names, since what the user wrote about the cluster must not be changed.
	for _, o := range objects {
		switch {
		case o.GetKind() == "Deployment":
			if err := k.fillPod(o); err != nil {
				return nil, fmt.Errorf("%s: %w", identity(o), err)
			}
		case o.GetKind() == "Role" && len(k.BootstrapSecrets) > 0:
			if err := withoutBootstrapSecret(o); err != nil {
				return nil, fmt.Errorf("%s: %w", identity(o), err)
			}
		case o.GetKind() == "ServiceAccount" && k.RoleARN != "":
			o.SetAnnotations(map[string]string{annotationRole: k.RoleARN})
		}
	}
	return inOrder(once(objects)), nil
}

// Split returns Objects, separated by cluster for pods that run on another cluster: see split.
func (k Klusterlet) Split() (managed, management []*unstructured.Unstructured, err error) {
	objects, err := k.Objects()
	if err != nil {
		return nil, nil, err
	}
	managed, management = split(objects, k.AgentNamespace, "Role", "RoleBinding")
	return managed, management, nil
}

// names maps the names in the manifests to those of the Klusterlet's objects.
func (k Klusterlet) names() map[string]string {
	parts := k.Parts()
	first, last := parts[0], parts[len(parts)-1]
	names := map[string]string{
		registration.AgentNamespace: k.Namespace, klusterletNetwork: k.Name + "-agents",
		registration.AgentServiceAccount: first.ServiceAccount, klusterletWorkAccount: last.ServiceAccount,
		klusterletRegistration: first.Deployment,
	}
	if !k.Singleton {
		names[klusterletWork] = last.Deployment
	}
	// Roles have the prefixes of those of all agents: no work may refer to such a role.
	for _, role := range []string{"clusterhub:hub-agent", "clusterhub:hub-agent-works", WorksRights, worksNamespaces} {
		names[role] = role + ":" + k.Name
	}
	return names
}

// asOne makes the part of the registration apply works, too. It has its own identity on the hub, and needs no file with it.
func asOne(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return identity(o) == deploymentOf(klusterletWork) })
	for _, o := range objects {
		if identity(o) != deploymentOf(klusterletRegistration) {
			continue
		}
		// It has no other kubeconfig than its own.
		replace(o.Object, "", func(_, text string) string {
			if text == klusterletSpoke+"registration" {
				return klusterletSpoke + "agent"
			}
			return text
		})
		if err := addArgs(o, WorksFlag); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func deploymentOf(name string) string {
	return fmt.Sprintf("Deployment.apps %s/%s", registration.AgentNamespace, name)
}

// fillPod sets what differs between Klusterlets.
func (k Klusterlet) fillPod(o *unstructured.Unstructured) error {
	parts := k.Parts()
	registers, works := o.GetName() == parts[0].Deployment, o.GetName() == parts[len(parts)-1].Deployment
	// Where the agent's state is, and which names works must not use.
	args := []string{"--namespace=" + k.Namespace}
	if k.Detached {
		args = []string{"--namespace=" + k.AgentNamespace, "--spoke-namespace=" + k.Namespace}
		if k.SameCluster {
			args = append(args, "--same-cluster")
		}
	}
	image := k.WorkImage
	if registers {
		image, args = k.RegistrationImage, append(args, literal(k.RegistrationArgs)...)
	}
	if works {
		args = append(append(args, AgentIDFlag+k.AgentID()), literal(k.WorkArgs)...)
	}
	if image != "" {
		replace(o.Object, "", func(key, text string) string {
			if key == "image" && withoutTag(text) == agentImage {
				return image
			}
			return text
		})
	}
	if registers && len(k.BootstrapSecrets) > 0 {
		flag, err := mountBootstrapSecrets(o, k.BootstrapSecrets)
		if err != nil {
			return err
		}
		args = append(args, flag)
	}
	if err := addArgs(o, args...); err != nil {
		return err
	}
	if k.RoleARN != "" {
		// EKS reads the account when a pod is created: the pods are recreated when the role changes.
		path := []string{"spec", "template", "metadata", "annotations", annotationRole}
		if err := unstructured.SetNestedField(o.Object, k.RoleARN, path...); err != nil {
			return err
		}
	}
	if k.Pod == nil {
		return nil
	}
	path := []string{"spec", "template", "spec"}
	spec, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		return err
	}
	k.Pod(spec)
	return unstructured.SetNestedMap(o.Object, spec, path...)
}

// literal escapes arguments so that the kubelet leaves them as they are: it replaces $(NAME) by a variable of the container, and $$ by $.
func literal(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if strings.Contains(arg, "$(") || strings.Contains(arg, "$$") {
			args[i] = strings.ReplaceAll(arg, "$", "$$")
		}
	}
	return args
}

// once returns the first of the objects that have the same name.
func once(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	seen := map[string]bool{}
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		again := seen[identity(o)]
		seen[identity(o)] = true
		return again
	})
}

// Operator specifies hub-operator, which deploys hubs and agents: its CustomResourceDefinitions, its rights and its pods.
type Operator struct {
	Changes
	// InHub means that its controllers run in hub-controller-manager, so that it has no pods of its own.
	InHub bool
}

// Objects returns the objects in the order in which they must be created.
func (o Operator) Objects() ([]*unstructured.Unstructured, error) {
	folder := "operator"
	if o.InHub {
		folder = "operator-in-hub"
	}
	objects, err := build(nil, folder)
	if err != nil {
		return nil, err
	}
	if err := o.apply(objects); err != nil {
		return nil, err
	}
	return inOrder(objects), nil
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// LabelManagedBy with the value ManagedBy is set on all objects that the command line created, and so may change and delete.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is also the field manager of these objects.
	ManagedBy = "kubectl-hub"

	// AgentName is the name of the agent's Deployment and container, and the value of AgentLabel on its pods.
	AgentName = registration.AgentDeployment
	// AgentRole is the name of the role of an agent, in its namespace and in the cluster, and of the bindings to both.
	AgentRole = "clusterhub:hub-agent"
	// AgentLabel distinguishes the pods of the agent from others.
	AgentLabel = "app.kubernetes.io/name"

	// LabelScope with the value ScopeNamespace is set on all objects of an agent with rights in one namespace.
	LabelScope = "registration.clusterhub.dev/agent-scope"
	// ScopeNamespace is the value of LabelScope for an agent with rights in one namespace.
	ScopeNamespace = "namespace"

	// UpgradeFlag is the flag for the repository whose images works may set.
	UpgradeFlag = "--upgrade-repository="
	// ClusterNameFlag is the flag for the name of the cluster on the hub.
	ClusterNameFlag = "--cluster-name="
	// EdgeFlag makes the agent register the cluster as an edge node.
	EdgeFlag = "--edge"

	// annotationHub is set on the agent's pods, so that they are recreated when the access to the hub changes.
	annotationHub = "registration.clusterhub.dev/hub-sha256"
	// annotationRole makes EKS give a pod the identity of an IAM role.
	annotationRole = "eks.amazonaws.com/role-arn"
)

// Agent specifies how hub-agent is deployed.
type Agent struct {
	// Image defaults to the image in the manifests.
	Image string
	// Args are flags in addition to those of every agent.
	Args []string
	// RoleARN is the IAM role of its service account. It may be empty.
	RoleARN string
	// Kubeconfig is the bootstrap kubeconfig, and Hub identifies the hub in it and how it is trusted.
	Kubeconfig []byte
	Hub        string
	// Works are the rights for works that it applies to the cluster.
	Works Works
	// Namespace is the agent's own namespace. It defaults to the namespace in the manifests.
	Namespace string
	// Scoped limits its rights to its namespace, where it applies works with the rights of admin. No object is created outside of the namespace, and
	// the namespace itself is not created. Works is ignored then.
	Scoped bool
	// Upgradable lets works set its image, to another one of its current repository. The agent must apply works.
	Upgradable bool
	// Names are as in Changes.
	Names map[string]string
	// Pod has changes of its pod, and PullConfig has credentials for its image, from which PullSecret is created. They may be empty.
	Pod        AgentPod
	PullConfig []byte
}

const agentImage = "clusterhub/hub-agent"

// Objects returns the objects in the order in which they must be created.
func (a Agent) Objects() ([]*unstructured.Unstructured, error) {
	objects, err := a.manifests()
	if err != nil {
		return nil, err
	}
	changes := Changes{Names: a.Names}
	if a.Namespace != "" {
		changes.Names = map[string]string{registration.AgentNamespace: a.Namespace}
		maps.Copy(changes.Names, a.Names)
	}
	if a.Image != "" {
		changes.Images = map[string]string{agentImage: a.Image}
	}
	if err := changes.apply(objects); err != nil {
		return nil, err
	}
	objects = a.Works.in(objects, changes.Names)
	if len(a.PullConfig) > 0 {
		objects = append(objects, PullSecret(cmp.Or(a.Namespace, registration.AgentNamespace), a.PullConfig))
		a.Pod.PullSecrets = append(slices.Clone(a.Pod.PullSecrets), PullSecretName)
	}
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[LabelManagedBy], labels[AgentLabel] = ManagedBy, AgentName
		if a.Scoped {
			labels[LabelScope] = ScopeNamespace
		}
		o.SetLabels(labels)
		if err := a.fill(o); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return inOrder(objects), nil
}

func (a Agent) manifests() ([]*unstructured.Unstructured, error) {
	switch {
	case a.Scoped && a.Works.Role != "":
		return nil, errors.New("an agent with rights in one namespace has the rights of admin there, and cannot have others for works")
	case a.Scoped:
		return build(nil, "agent-namespace")
	}
	objects, err := build(nil, "agent")
	if err == nil && a.Works.Role != "" {
		objects, err = build(objects, "agent-works")
	}
	if err == nil && a.Upgradable {
		objects, err = build(objects, "agent-upgrade")
	}
	return objects, err
}

// Split returns Objects, separated by cluster for an agent that does not run on the managed cluster: see split. The state of the agent is beside its
// pod, and so are the rights to it.
func (a Agent) Split(namespace string) (managed, management []*unstructured.Unstructured, err error) {
	objects, err := a.Objects()
	if err != nil {
		return nil, nil, err
	}
	managed, management = split(objects, namespace, "Role", "RoleBinding")
	return managed, management, nil
}

func (a Agent) fill(o *unstructured.Unstructured) error {
	switch o.GetKind() {
	case "ServiceAccount":
		if a.RoleARN != "" {
			o.SetAnnotations(map[string]string{annotationRole: a.RoleARN})
		}
	case "Secret":
		if o.GetName() == PullSecretName {
			return nil
		}
		return unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(a.Kubeconfig), "data", registration.KeyKubeconfig)
	case "Deployment":
		return a.fillDeployment(o)
	}
	return nil
}

func (a Agent) fillDeployment(o *unstructured.Unstructured) error {
	if err := a.Pod.Fill(o); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(a.Hub))
	path := []string{"spec", "template", "metadata", "annotations", annotationHub}
	if err := unstructured.SetNestedField(o.Object, hex.EncodeToString(sum[:]), path...); err != nil {
		return err
	}
	args, namespace := slices.Clone(a.Args), o.GetNamespace()
	if a.Namespace != "" {
		args = append(args, "--namespace="+namespace)
	}
	if a.Works.Role != "" {
		args = append(args, WorksFlag)
	}
	if a.Works.Role != "" || a.Scoped {
		// An ID that does not change with the address of the hub, so that the agent recognizes what it applied before.
		args = append(args, AgentIDFlag+AgentID(namespace))
	}
	if a.Upgradable {
		repository, _, err := registration.SplitImage(cmp.Or(a.Image, agentImage))
		if err != nil {
			return err
		}
		args = append(args, UpgradeFlag+repository)
		// The old pod ends when the new one has renewed the lease of the cluster, so an image that does not start leaves the agent running. Until
		// then two processes share one identity: they write the state of the agent as a restarted one would.
		o.Object["spec"].(map[string]any)["strategy"] = RollingUpdate()
	}
	return addArgs(o, args...)
}

// RollingUpdate returns the strategy of a Deployment whose old pod ends when the new one is ready.
func RollingUpdate() map[string]any {
	return map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(1), "maxUnavailable": int64(0)}}
}

// addArgs adds flags to the one container of a Deployment's pods.
func addArgs(o *unstructured.Unstructured, more ...string) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil {
		return err
	}
	if len(containers) != 1 {
		return fmt.Errorf("it must have one container, but has %d", len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return errors.New("its container is not an object")
	}
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedStringSlice(container, append(args, more...), "args"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(o.Object, containers, path...)
}

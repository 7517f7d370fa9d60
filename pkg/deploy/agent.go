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
	// LabelManagedBy with the value ManagedBy is on everything that was made by the command line, and so may be changed and
	// removed by it.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is also the field manager of what was made.
	ManagedBy = "kubectl-hub"

	// AgentName is the name of the agent's Deployment and container, and the value of AgentLabel on its pods.
	AgentName = registration.AgentDeployment
	// AgentRole is the name of the role of an agent, in its namespace and in the cluster, and of the bindings to both.
	AgentRole = "clusterhub:hub-agent"
	// AgentLabel tells the pods of the agent from others.
	AgentLabel = "app.kubernetes.io/name"

	// LabelScope with the value ScopeNamespace is on everything that an agent with rights in one namespace consists of.
	LabelScope = "registration.clusterhub.dev/agent-scope"
	// ScopeNamespace is the value of LabelScope for an agent with rights in one namespace.
	ScopeNamespace = "namespace"

	// UpgradeFlag is the flag that the repository follows whose images works may set.
	UpgradeFlag = "--upgrade-repository="
	// ClusterNameFlag is the flag that the name of the cluster on the hub follows.
	ClusterNameFlag = "--cluster-name="
	// EdgeFlag has the agent make an edge node of the cluster.
	EdgeFlag = "--edge"

	// annotationHub is on the agent's pods, so that there are new ones when the hub is to be reached in another way.
	annotationHub = "registration.clusterhub.dev/hub-sha256"
	// annotationRole has EKS give a pod the identity of an IAM role.
	annotationRole = "eks.amazonaws.com/role-arn"
)

// Agent is how hub-agent is deployed.
type Agent struct {
	// Image may be empty: then it is that of the manifests.
	Image string
	// Args are flags beside those that every agent has.
	Args []string
	// RoleARN is the IAM role of its service account. It may be empty.
	RoleARN string
	// Kubeconfig is the bootstrap kubeconfig, and Hub identifies the hub in it and how it is trusted.
	Kubeconfig []byte
	Hub        string
	// Works are those that it brings to the cluster.
	Works Works
	// Namespace is the agent's own. It may be empty: then it is that of the manifests.
	Namespace string
	// Scoped is that it has rights in its namespace alone: to bring works there, with the rights of admin. Nothing is made outside of it,
	// and neither is the namespace. Works are not said then.
	Scoped bool
	// Upgradable is that works may set its image, to one of the repository that it is of now. It has to bring works.
	Upgradable bool
	// Names are as in Changes.
	Names map[string]string
	// Pod is what its pod has otherwise, and PullConfig are credentials for its image, of which PullSecret is made. They may be empty.
	Pod        AgentPod
	PullConfig []byte
}

const agentImage = "clusterhub/hub-agent"

// Objects are in the order in which they have to be made.
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
		return nil, errors.New("an agent with rights in one namespace has those of admin there, and no others for works")
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

// Split is Objects, apart by where they have to be if the agent does not run on the cluster that is managed: see split. What the
// agent keeps stays with its pod, and so do the rights to that.
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
		// An ID that does not change with the address of the hub, so that the agent knows what it has brought before.
		args = append(args, AgentIDFlag+AgentID(namespace))
	}
	if a.Upgradable {
		repository, _, err := registration.SplitImage(cmp.Or(a.Image, agentImage))
		if err != nil {
			return err
		}
		args = append(args, UpgradeFlag+repository)
		// The old pod ends when the new one has renewed the lease of the cluster, so that an image that does not start costs nothing. Meanwhile
		// there are two processes with one identity: they write the state of the agent as one that was restarted would.
		o.Object["spec"].(map[string]any)["strategy"] = RollingUpdate()
	}
	return addArgs(o, args...)
}

// RollingUpdate returns the strategy of a Deployment of which the old pod ends when the new one is ready.
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
		return fmt.Errorf("it has %d containers, and not one", len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return errors.New("it has no container")
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

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests has what the command line deploys: the rights of bootstrap tokens on a hub, and hub-agent on a managed
// cluster.
package manifests

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the manifests
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// LabelManagedBy with the value ManagedBy is on everything that was made by the command line, and so may be changed and
	// removed by it.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is also the field manager of what was made.
	ManagedBy = "kubectl-hub"

	// AgentName is the name of the agent's Deployment and container, and the value of AgentLabel on its pods.
	AgentName = "hub-agent"
	// AgentLabel tells the pods of the agent from others.
	AgentLabel = "app.kubernetes.io/name"

	// annotationHub is on the agent's pods, so that there are new ones when the hub is to be reached in another way.
	annotationHub = "registration.clusterhub.dev/hub-sha256"
	// annotationRole has EKS give a pod the identity of an IAM role.
	annotationRole = "eks.amazonaws.com/role-arn"
)

var (
	//go:embed agent.yaml
	agent []byte
	//go:embed bootstrap.yaml
	bootstrap []byte
)

// Bootstrap is what a hub needs for clusters to join it. It has all that was there before of the same names. listCSRs lets
// bootstrap tokens list and watch all certificate requests, and get every cluster, as upstream's agents do.
func Bootstrap(listCSRs bool) []*unstructured.Unstructured {
	if listCSRs {
		return parse(bytes.Replace(bytes.Replace(bootstrap, onCSRs, onCSRsOfUpstream, 1), onClusters, onClustersOfUpstream, 1))
	}
	return parse(bootstrap)
}

// What bootstrap tokens may do with certificate requests and with clusters, as bootstrap.yaml has it, and what upstream's agents
// do: they make their cluster only after they have seen that it is not there.
var (
	onCSRs               = []byte(`verbs: ["create", "get"]`)
	onCSRsOfUpstream     = []byte(`verbs: ["create", "get", "list", "watch"]`)
	onClusters           = []byte("resources: [\"managedclusters\"]\n  verbs: [\"create\"]")
	onClustersOfUpstream = []byte("resources: [\"managedclusters\"]\n  verbs: [\"create\", \"get\"]")
)

// Agent is how hub-agent is deployed.
type Agent struct {
	Image string
	// Args are flags beside those that every agent has.
	Args []string
	// RoleARN is the IAM role of its service account. It may be empty.
	RoleARN string
	// Kubeconfig is the bootstrap kubeconfig, and Hub identifies the hub in it and how it is trusted.
	Kubeconfig []byte
	Hub        string
}

// Objects are in the order in which they have to be made.
func (a Agent) Objects() ([]*unstructured.Unstructured, error) {
	objects := parse(agent)
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[LabelManagedBy], labels[AgentLabel] = ManagedBy, AgentName
		o.SetLabels(labels)
		if err := a.fill(o); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return objects, nil
}

func (a Agent) fill(o *unstructured.Unstructured) error {
	switch o.GetKind() {
	case "ServiceAccount":
		if a.RoleARN != "" {
			o.SetAnnotations(map[string]string{annotationRole: a.RoleARN})
		}
	case "Secret":
		return unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(a.Kubeconfig), "data", registration.KeyKubeconfig)
	case "Deployment":
		return a.fillDeployment(o)
	}
	return nil
}

func (a Agent) fillDeployment(o *unstructured.Unstructured) error {
	sum := sha256.Sum256([]byte(a.Hub))
	path := []string{"spec", "template", "metadata", "annotations", annotationHub}
	if err := unstructured.SetNestedField(o.Object, hex.EncodeToString(sum[:]), path...); err != nil {
		return err
	}
	path = []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil {
		return err
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return errors.New("it has no container")
	}
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return err
	}
	container["image"] = a.Image
	if err := unstructured.SetNestedStringSlice(container, append(args, a.Args...), "args"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(o.Object, containers, path...)
}

// parse reads what is part of this program.
func parse(manifests []byte) (objects []*unstructured.Unstructured) {
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			panic(err)
		}
		objects = append(objects, o)
	}
}

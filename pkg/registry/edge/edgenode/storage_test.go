// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgenode

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func node() *edge.EdgeNode {
	return &edge.EdgeNode{
		ObjectMeta: metav1.ObjectMeta{Name: "madrid-1"},
		Spec: edge.EdgeNodeSpec{
			NodeType: edge.NodeTypeCluster, Pattern: "shop/all",
			Policy: edge.Policy{
				Properties:  []edge.Property{{Name: "purpose", Value: edge.Value{Type: edge.ValueString, String: "retail"}}},
				Constraints: []string{"a == b"},
			},
		},
	}
}

func TestStorage(t *testing.T) {
	scoped, memory := true, int64(2048)
	registrytest.Suite[*edge.EdgeNode]{
		Kind:  Kind,
		Valid: node,
		Invalid: []func(*edge.EdgeNode){
			func(n *edge.EdgeNode) { n.Name = "madrid.1" },
			func(n *edge.EdgeNode) { n.Spec.Constraints = []string{"a == "} },
		},
		Change: func(n *edge.EdgeNode) { n.Spec.Pattern = "" },
		InvalidChanges: []func(*edge.EdgeNode){
			func(n *edge.EdgeNode) { n.Spec.NodeType = "server" },
			func(n *edge.EdgeNode) { n.Spec.Deployment = &edge.Policy{Constraints: []string{"(a == b"}} },
		},
		Matching: []fields.Set{{"spec.nodeType": "cluster"}, {"spec.pattern": "shop/all"}, {"status.namespace": ""}},
		Others:   []fields.Set{{"spec.nodeType": "device"}, {"spec.pattern": "all"}, {"status.namespace": "blue"}},
		Status: func(n *edge.EdgeNode) {
			n.Status = edge.EdgeNodeStatus{Arch: "amd64", Memory: &memory, Namespace: "blue", NamespaceScoped: &scoped}
		},
		BadStatus:  func(n *edge.EdgeNode) { n.Status.Namespace = "ABC" },
		Columns:    "Name/0 Type/0 Namespace/0 Scope/0 Arch/0 Pattern/0 Age/0 CPU/1 Memory/1 Kubernetes/1 Cluster ID/1",
		Cells:      "madrid-1|cluster|blue|namespace|amd64|shop/all|<unknown>|unknown|2048|unknown|unknown",
		ShortNames: "enode",
	}.Run(t)
}

func TestScope(t *testing.T) {
	yes, no := true, false
	var got []string
	for _, s := range []*bool{&yes, &no, nil} {
		got = append(got, scope(s))
	}
	if said := strings.Join(got, " "); said != "namespace cluster unknown" {
		t.Error(said)
	}
}

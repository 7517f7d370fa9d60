// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploymentpolicy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func policy() *edge.DeploymentPolicy {
	return &edge.DeploymentPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: registrytest.Namespace, Name: "web"},
		Spec: edge.DeploymentPolicySpec{
			Service: edge.PolicyService{Name: "web", Org: "tools", ClusterNamespace: "blue", ServiceVersions: []edge.ServiceVersion{{Version: "1.0.0"}}},
			Policy:  edge.Policy{Constraints: []string{"purpose == retail"}},
		},
	}
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*edge.DeploymentPolicy]{
		Kind:  Kind,
		Valid: policy,
		Invalid: []func(*edge.DeploymentPolicy){
			func(p *edge.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "ABC" },
			func(p *edge.DeploymentPolicy) { p.Spec.Constraints = []string{"purpose =="} },
			func(p *edge.DeploymentPolicy) {
				p.Spec.UserInput = []edge.ServiceInput{{ServiceUrl: "web", ServiceVersionRange: "[2.0.0,1.0.0)"}}
			},
		},
		Change:         func(p *edge.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "" },
		InvalidChanges: []func(*edge.DeploymentPolicy){func(p *edge.DeploymentPolicy) { p.Spec.Service.ServiceVersions = nil }},
		Matching:       []fields.Set{{"spec.service.name": "web"}, {"spec.service.org": "tools"}},
		Others:         []fields.Set{{"spec.service.name": "tools"}, {"spec.service.org": "web"}},
		Status: func(p *edge.DeploymentPolicy) {
			p.Status = edge.DeploymentStatus{
				Conditions: []metav1.Condition{{Type: edge.ConditionValid, Status: "True", Reason: edge.ReasonAsExpected, LastTransitionTime: metav1.Unix(1, 0)}},
				Nodes:      edge.NodeCounts{Reached: 9, Selected: 4, Placed: 3, Running: 2, Failed: 1},
				Excluded:   []edge.ExcludedNodes{{Reason: "ArchMismatch", Nodes: 2}, {Reason: "PolicyConstraint", Nodes: 3}},
			}
		},
		BadStatus:  func(p *edge.DeploymentPolicy) { p.Status.Nodes.Failed = -1 },
		Columns:    "Name/0 Service/0 Namespace/0 Selected/0 Placed/0 Running/0 Failed/0 Age/0 Valid/1 Reached/1 Excluded by/1",
		Cells:      "web|web|blue|4|3|2|1|<unknown>|AsExpected|9|PolicyConstraint",
		ShortNames: "dpol",
	}.Run(t)
}

// TestAuthor: services of other namespaces are deployed with the rights of the author, so no user can set the author.
func TestAuthor(t *testing.T) {
	r := registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
	p := policy()
	p.Annotations = map[string]string{edge.AuthorAnnotation: `{"username":"admin"}`}
	p = registrytest.Create(t, request.WithUser(registrytest.Context(r), &user.DefaultInfo{Name: "ann"}), r, p)
	if got := p.Annotations[edge.AuthorAnnotation]; !strings.Contains(got, `"ann"`) || strings.Contains(got, "admin") {
		t.Errorf("the author is %s", got)
	}
}

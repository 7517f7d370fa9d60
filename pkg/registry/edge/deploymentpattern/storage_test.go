// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploymentpattern

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func pattern() *edge.DeploymentPattern {
	return &edge.DeploymentPattern{
		ObjectMeta: metav1.ObjectMeta{Namespace: registrytest.Namespace, Name: "all"},
		Spec: edge.DeploymentPatternSpec{
			ClusterNamespace: "blue",
			Services:         []edge.PatternService{{ServiceUrl: "web", ServiceVersions: []edge.ServiceVersion{{Version: "1.0.0"}}}},
		},
	}
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*edge.DeploymentPattern]{
		Kind:  Kind,
		Valid: pattern,
		Invalid: []func(*edge.DeploymentPattern){
			func(p *edge.DeploymentPattern) { p.Spec.ClusterNamespace = "ABC" },
			func(p *edge.DeploymentPattern) { p.Spec.Services = append(p.Spec.Services, p.Spec.Services[0]) },
		},
		Change:         func(p *edge.DeploymentPattern) { p.Spec.ClusterNamespace = "" },
		InvalidChanges: []func(*edge.DeploymentPattern){func(p *edge.DeploymentPattern) { p.Spec.Services = nil }},
		Status: func(p *edge.DeploymentPattern) {
			p.Status = edge.DeploymentStatus{
				Conditions: []metav1.Condition{{Type: edge.ConditionValid, Status: "False", Reason: edge.ReasonServiceNotFound, LastTransitionTime: metav1.Unix(1, 0)}},
				Nodes:      edge.NodeCounts{Reached: 9, Selected: 4, Placed: 3, Running: 2, Failed: 1},
			}
		},
		BadStatus:  func(p *edge.DeploymentPattern) { p.Status.Nodes.Failed = -1 },
		Columns:    "Name/0 Services/0 Namespace/0 Selected/0 Placed/0 Running/0 Failed/0 Age/0 Valid/1 Reached/1",
		Cells:      "all|1|blue|4|3|2|1|<unknown>|ServiceNotFound|9",
		ShortNames: "dpat",
	}.Run(t)
}

// TestAuthor: services of other namespaces are deployed with the rights of the author, so no user can set the author.
func TestAuthor(t *testing.T) {
	r := registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
	p := pattern()
	p.Annotations = map[string]string{edge.AuthorAnnotation: `{"username":"admin"}`}
	p = registrytest.Create(t, request.WithUser(registrytest.Context(r), &user.DefaultInfo{Name: "ann"}), r, p)
	if got := p.Annotations[edge.AuthorAnnotation]; !strings.Contains(got, `"ann"`) || strings.Contains(got, "admin") {
		t.Errorf("the author is %s", got)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apiserver"
	"github.com/clusterhub/clusterhub/pkg/apiserver/agents"
	"github.com/clusterhub/clusterhub/pkg/apiserver/reviews"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// accepted are clusters that are all accepted.
type accepted struct{}

func (accepted) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cluster.ManagedClusterSpec{HubAcceptsClient: true}}, nil
}

// everythingAllowed returns the authorizer of a server whose front allows everything, and the number of calls of the front.
func everythingAllowed(t *testing.T) (authorizer.Authorizer, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}`))
	}))
	t.Cleanup(front.Close)
	o := NewOptions()
	o.Recommended.Authorization.RemoteKubeConfigFile = filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["front"], kubeconfig.Contexts["front"] = &clientcmdapi.Cluster{Server: front.URL}, &clientcmdapi.Context{Cluster: "front"}
	kubeconfig.CurrentContext = "front"
	if err := clientcmd.WriteToFile(*kubeconfig, o.Recommended.Authorization.RemoteKubeConfigFile); err != nil {
		t.Fatal(err)
	}
	ofAgents := agents.New(apiserver.Groups(), o.AgentLabels)
	ofAgents.Clusters = accepted{}
	union, err := authorizerOf(o.Recommended.Authorization, reviews.NewRules(0), ofAgents)
	if err != nil {
		t.Fatal(err)
	}
	return union, &asked
}

// TestAuthorizer_OfAgentsIsFirst verifies that no other authorizer allows what it denies, and that its decisions need no call of the front.
func TestAuthorizer_OfAgentsIsFirst(t *testing.T) {
	union, asked := everythingAllowed(t)
	agent := []string{registration.ManagedClustersGroup, registration.ClusterGroup("c1")}
	for _, c := range []struct {
		verb, resource, name string
		groups               []string
		want                 authorizer.Decision
		asks                 int32
	}{
		{"get", "managedclusters", "c1", agent, authorizer.DecisionAllow, 0},
		{"update", "managedclusters", "c1", agent, authorizer.DecisionAllow, 0},
		{"create", "managedclusters/label", registration.LabelRegion + ":apac", agent, authorizer.DecisionAllow, 0},
		{"update", "managedclusters", "c2", agent, authorizer.DecisionDeny, 0},
		{"update", "managedclusters", "c2", append([]string{"system:masters"}, agent...), authorizer.DecisionDeny, 0},
		{"list", "managedclustersets", "", append(agent, "system:masters"), authorizer.DecisionDeny, 0},
		{"create", "managedclusters/label", "info.open-cluster-management.io/other:a", agent, authorizer.DecisionAllow, 1},
		{"update", "managedclusters", "c2", []string{"team"}, authorizer.DecisionAllow, 1},
		{"update", "managedclusters", "c2", []string{"system:masters"}, authorizer.DecisionAllow, 0},
	} {
		asked.Store(0)
		resource, subresource, _ := strings.Cut(c.resource, "/")
		got, reason, err := union.Authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: "a", Groups: c.groups}, Verb: c.verb, APIGroup: cluster.GroupName, APIVersion: "v1",
			Resource: resource, Subresource: subresource, Name: c.name, ResourceRequest: true,
		})
		if got != c.want || err != nil || asked.Load() != c.asks {
			t.Errorf("%+v: %v (%s), %v, after %d questions to the front", c, got, reason, err, asked.Load())
		}
	}
}

// TestAuthorizer_AgentsCannotReadViews verifies that agents may not read what every user may list, not even for their own cluster.
func TestAuthorizer_AgentsCannotReadViews(t *testing.T) {
	union, asked := everythingAllowed(t)
	for _, groups := range [][]string{
		{registration.ManagedClustersGroup, registration.ClusterGroup("c1")}, {registration.AWSManagedClustersGroup, registration.AWSGroup("c1")},
		{"system:masters", registration.ManagedClustersGroup, registration.ClusterGroup("c1")},
	} {
		for _, resource := range []string{"clusterview.open-cluster-management.io/managedclusters", "clusterview.open-cluster-management.io/managedclustersets",
			"view.clusterhub.dev/clustersetmembers", cluster.GroupName + "/managedclustersets/clusters"} {
			for _, verb := range []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection", "create"} {
				for _, name := range []string{"", "c1", "c2", "set"} {
					group, resource, _ := strings.Cut(resource, "/")
					resource, subresource, _ := strings.Cut(resource, "/")
					a := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "a", Groups: append(groups, "system:authenticated")}, Verb: verb,
						APIGroup: group, APIVersion: "v1", Resource: resource, Subresource: subresource, Name: name, ResourceRequest: true}
					if got, reason, err := union.Authorize(t.Context(), a); got != authorizer.DecisionDeny || err != nil {
						t.Errorf("%+v: %v (%s), %v, want a denial", a, got, reason, err)
					}
				}
			}
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the front was asked %d times", asked.Load())
	}
}

func TestValidate_AgentLabels(t *testing.T) {
	for keys, wrong := range map[string]string{
		"": "", registration.LabelRegion: "", "cluster.open-cluster-management.io/team,info.open-cluster-management.io/x": "",
		"env": "agents need no permission for other labels", registration.LabelRegion + ":apac": "is not a label key", "info.open-cluster-management.io/": "is not a label key",
		"*": "is not a label key", "xinfo.open-cluster-management.io/region": "must begin with",
	} {
		o := NewOptions()
		flags := o.Flags()
		if err := flags.FlagSet("agents").Set("agent-labels", keys); err != nil {
			t.Fatal(err)
		}
		err := o.Validate()
		if says := err != nil && strings.Contains(err.Error(), "--agent-labels"); says != (wrong != "") || says && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v, want %q", keys, err, wrong)
		}
		if keys == "" && len(o.AgentLabels) > 0 {
			t.Errorf("none are %q", o.AgentLabels)
		}
	}
}

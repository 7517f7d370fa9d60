// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// TestAuthorize_AgentRequestsOnWorks sends the requests of ours and of upstream's agents.
func TestAuthorize_AgentRequestsOnWorks(t *testing.T) {
	for _, request := range []string{
		"GET ", "GET ?allowWatchBookmarks=true&watch=true", "GET ?fieldSelector=metadata.name%3Dweb", "GET /web", "PUT /web", "PATCH /web",
		"GET /c1", "PATCH /c2", "PUT /web/status", "PATCH /web/status",
	} {
		for name, want := range map[string]authorizer.Decision{"c1": allow, "c2": allow, "d1": deny, "n1": deny} {
			for _, who := range []user.Info{agent(name), awsAgent(name)} {
				method, path, _ := strings.Cut(request, " ")
				got, reason := decide(t, hub(), who, method, "/apis/work.open-cluster-management.io/v1/namespaces/"+name+"/manifestworks"+path)
				if got != want || got == deny && !strings.Contains(reason, `cluster "`+name+`" is not accepted`) {
					t.Errorf("%s by the agent of %s: %v (%s), want %v", request, name, got, reason, want)
				}
			}
		}
	}
}

// TestAuthorize_AttacksOnWorks verifies that an agent may only access the works of its own cluster, and may neither create nor delete any.
func TestAuthorize_AttacksOnWorks(t *testing.T) {
	const every = "GET HEAD PUT PATCH POST DELETE"
	for _, c := range []struct{ methods, path string }{
		{every, "/manifestworks"}, {every, "/manifestworks/c1"}, {every, "/manifestworks/c1/status"},
		{"GET", "/manifestworks?fieldSelector=metadata.namespace%3Dc1"}, {"GET", "/watch/manifestworks"},
		{every, "/namespaces/c2/manifestworks"}, {every, "/namespaces/c2/manifestworks/c1"}, {every, "/namespaces/c2/manifestworks/web/status"},
		{"GET", "/namespaces/c2/manifestworks?fieldSelector=metadata.namespace%3Dc1"}, {"GET", "/watch/namespaces/c2/manifestworks"},
		{every, "/namespaces/c1%2F..%2Fc2/manifestworks/web"}, {every, "/namespaces/*/manifestworks"},
		{"POST DELETE", "/namespaces/c1/manifestworks"}, {"POST DELETE", "/namespaces/c1/manifestworks/web"},
		{"GET POST DELETE", "/namespaces/c1/manifestworks/web/status"}, {every, "/namespaces/c1/manifestworks/web/finalizers"},
		{every, "/namespaces/c1/manifestworkreplicasets/web"}, {every, "/namespaces/c1/secrets/web"},
	} {
		for method := range strings.FieldsSeq(c.methods) {
			path := "/apis/work.open-cluster-management.io/v1" + c.path
			if got, reason := decide(t, attacked, agent("c1"), method, path); got != deny {
				t.Errorf("%s %s: %v (%s)", method, path, got, reason)
			}
		}
	}
	executeAs := permission(agent("c1"), "execute-as", work.GroupName, "manifestworks", "system:serviceaccount:ops:deployer")
	if got, _, err := attacked.authorize(t.Context(), executeAs); got != deny || err != nil {
		t.Errorf("execute-as: %v, %v", got, err)
	}
}

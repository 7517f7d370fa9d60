// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

const edgeV1 = "/apis/edge.clusterhub.dev/v1alpha1"

func TestAuthorize_AgentRequestsOnEdgeNode(t *testing.T) {
	for _, request := range []string{
		"GET /NAME", "GET ?fieldSelector=metadata.name%3DNAME", "GET ?allowWatchBookmarks=true&fieldSelector=metadata.name%3DNAME&watch=true",
		"POST ", "PUT /NAME/status", "PATCH /NAME/status",
	} {
		for name, want := range map[string]authorizer.Decision{"c1": allow, "c2": allow, "d1": deny, "n1": deny} {
			for _, who := range []user.Info{agent(name), awsAgent(name)} {
				method, path, _ := strings.Cut(request, " ")
				got, reason := decide(t, hub(), who, method, edgeV1+"/edgenodes"+strings.ReplaceAll(path, "NAME", name))
				if got != want || got == deny && !strings.Contains(reason, `cluster "`+name+`" is not accepted`) {
					t.Errorf("%s by the agent of %s: %v (%s), want %v", request, name, got, reason, want)
				}
			}
		}
	}
}

// TestAuthorize_AttacksOnEdge verifies that an agent may only access its own node in the group, and may not write its spec.
func TestAuthorize_AttacksOnEdge(t *testing.T) {
	const every = "GET HEAD PUT PATCH POST DELETE"
	for _, c := range []struct{ methods, path string }{
		{"GET HEAD DELETE", "/edgenodes"}, {"GET", "/watch/edgenodes"}, {"GET", "/edgenodes?fieldSelector=metadata.name%3Dc2"},
		{"GET", "/edgenodes?fieldSelector=spec.pattern%3Dc1"}, {"GET", "/edgenodes?labelSelector=metadata.name%3Dc1"},
		{every, "/edgenodes/c2"}, {every, "/edgenodes/c2/status"}, {every, "/edgenodes/*"}, {every, "/edgenodes/c1%2F..%2Fc2"},
		{"PUT PATCH DELETE", "/edgenodes/c1"}, {"DELETE", "/edgenodes?fieldSelector=metadata.name%3Dc1"},
		{"GET POST DELETE", "/edgenodes/c1/status"}, {every, "/edgenodes/c1/finalizers"}, {every, "/edgenodes/c1/scale"},
		{every, "/namespaces/c1/edgenodes/c1"}, {every, "/namespaces/c1/edgenodes"},
		{every, "/namespaces/c1/edgeservices"}, {every, "/namespaces/c1/edgeservices/c1"}, {every, "/edgeservices"},
		{every, "/namespaces/c1/edgeplacements/c1"}, {every, "/namespaces/c1/edgeplacements/c1/status"}, {every, "/namespaces/c1/edgeplacements"},
		{every, "/namespaces/c1/deploymentpolicies/c1"}, {every, "/namespaces/c1/deploymentpatterns/c1"}, {every, "/namespaces/c1/deploychecks"},
	} {
		for method := range strings.FieldsSeq(c.methods) {
			if got, reason := decide(t, attacked, agent("c1"), method, edgeV1+c.path); got != deny {
				t.Errorf("%s %s: %v (%s)", method, c.path, got, reason)
			}
		}
	}
	// These are permissions that a plugin of a later version could check.
	for _, verb := range []string{"bind", "use", "create"} {
		if got, _, err := attacked.authorize(t.Context(), permission(agent("c1"), verb, edge.GroupName, "edgeservices", "c1")); got != deny || err != nil {
			t.Errorf("%s: %v, %v", verb, got, err)
		}
	}
}

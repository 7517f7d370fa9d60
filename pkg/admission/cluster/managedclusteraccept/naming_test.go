// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusteraccept

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func clusterSaying(accepted bool, annotation, value string) *cluster.ManagedCluster {
	c := clusterThat(accepted)
	if value != "" {
		c.Annotations = map[string]string{annotation: value}
	}
	return c
}

// TestValidate_RequesterAnnotationsNeedPermission verifies that a user who may only create or change a cluster cannot set whose certificate is
// approved, or which IAM role is accepted, because this is decided with the acceptance. The exception is the key or the ARN of a new cluster.
func TestValidate_RequesterAnnotationsNeedPermission(t *testing.T) {
	rights := map[string]struct {
		grants []rbac.Permission
		may    bool
	}{
		"nothing":                    {},
		"accept":                     {[]rbac.Permission{accept}, true},
		"accept in upstream's group": {[]rbac.Permission{registerAccept}, true},
		"accept of another cluster":  {[]rbac.Permission{right(cluster.GroupName, "accept", "c2")}, false},
		"leave":                      {[]rbac.Permission{leave}, false},
	}
	type change struct{ annotation, from, to string }
	requests := map[string]at.Request{
		"name requesters from the start": {Object: clusterSaying(false, registration.AnnotationRequesters, "a")},
		"leave, and name requesters": {Old: clusterThat(true),
			Object: clusterSaying(false, registration.AnnotationRequesters, "a")},
	}
	for _, subresource := range []string{"", "accept", "label", "status"} {
		for what, c := range map[string]change{
			"name requesters":     {registration.AnnotationRequesters, "", "a"},
			"name other ones":     {registration.AnnotationRequesters, "a", "b"},
			"remove requesters":   {registration.AnnotationRequesters, "a", ""},
			"name a key":          {registration.AnnotationAgentKey, "", "ab"},
			"name another key":    {registration.AnnotationAgentKey, "ab", "cd"},
			"remove the key":      {registration.AnnotationAgentKey, "ab", ""},
			"the key in capitals": {registration.AnnotationAgentKey, "ab", "AB"},
			"name an ARN":         {registration.AnnotationManagedClusterARN, "", "arn:a"},
			"name another ARN":    {registration.AnnotationManagedClusterARN, "arn:a", "arn:b"},
			"remove the ARN":      {registration.AnnotationManagedClusterARN, "arn:a", ""},
			"name an ARN, spelled as in the specification": {registration.AnnotationManagedClusterARNOfSeed, "", "arn:a"},
		} {
			for state, accepted := range map[string]bool{"accepted": true, "waiting": false} {
				requests[what+" by "+subresource+" of a cluster that is "+state] = at.Request{Subresource: subresource,
					Object: clusterSaying(accepted, c.annotation, c.to), Old: clusterSaying(accepted, c.annotation, c.from)}
			}
		}
	}
	for what, request := range requests {
		for who, r := range rights {
			t.Run(who+"/"+what, func(t *testing.T) { try(t, r.grants, request, r.may) })
		}
		_, err := at.Validate(t, pluginFor(&at.Authorizer{}), request.Attributes())
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "registration.clusterhub.dev/") &&
			!strings.Contains(err.Error(), "spec.hubAcceptsClient") && !strings.Contains(err.Error(), "managed-cluster-arn") {
			t.Errorf("%s: got %v, want a 403 that names what is guarded", what, err)
		}
	}
}

// TestValidate_AgentCreatesClusterWithKey verifies that an agent creates its cluster with its key or its ARN, without other permissions.
func TestValidate_AgentCreatesClusterWithKey(t *testing.T) {
	try(t, nil, at.Request{Object: clusterSaying(false, registration.AnnotationAgentKey, "ab")}, true)
	try(t, nil, at.Request{Object: clusterSaying(false, registration.AnnotationManagedClusterARN, "arn:a")}, true)
}

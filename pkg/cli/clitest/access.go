// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// These are the path of the AccessRequests of the namespace teams, and what one of them grants.
const (
	AccessRequests = "/apis/clusters.openmcp.cloud/v1alpha1/namespaces/teams/accessrequests"
	// AnnsBlue is the name of ann's request for the cluster blue. It contains a hash of both.
	AnnsBlue     = "blue-f8fd451f26"
	AccessToken  = "the-clusters-token"
	ClusterToken = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "x", "user": "u"}}],
		"users": [{"name": "u", "user": {"token": "` + AccessToken + `"}}],
		"clusters": [{"name": "x", "cluster": {"server": "https://blue.example.com"}}]}`
)

// AccessRequest returns the AccessRequest of ann for the cluster blue.
func (s *Server) AccessRequest() *v1alpha1.AccessRequest {
	s.t.Helper()
	r := &v1alpha1.AccessRequest{}
	s.As(AccessRequests+"/"+AnnsBlue, r)
	return r
}

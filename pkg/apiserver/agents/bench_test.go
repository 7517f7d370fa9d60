// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// BenchmarkAuthorize measures the cost for each request of agents and of other users.
func BenchmarkAuthorize(b *testing.B) {
	ann := &user.DefaultInfo{Name: "ann", Groups: []string{"team-a", "team-b", "system:authenticated"}}
	for name, request := range map[string]func() (who user.Info, verb, resource, name string){
		"read": func() (user.Info, string, string, string) { return agent("c1"), "get", "managedclusters", "c1" },
		"write": func() (user.Info, string, string, string) {
			return agent("c1"), "patch", "managedclusters/status", "c1"
		},
		"label": func() (user.Info, string, string, string) {
			return agent("c1"), "create", "managedclusters/label", registration.LabelRegion + ":a"
		},
		"attack": func() (user.Info, string, string, string) {
			return agent("c1"), "patch", "managedclusters/status", "c2"
		},
		"other people": func() (user.Info, string, string, string) { return ann, "get", "managedclusters", "c1" },
	} {
		b.Run(name, func(b *testing.B) {
			who, verb, resource, object := request()
			a, attributes := hub(), permission(who, verb, cluster.GroupName, resource, object)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := a.authorize(b.Context(), attributes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

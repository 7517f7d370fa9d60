// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// FuzzClusterOfAgent verifies that the groups of an agent are those of its cluster and of no other, whatever other groups are beside them.
func FuzzClusterOfAgent(f *testing.F) {
	for _, group := range []string{
		"", "system:masters", "open-cluster-management:c2", "system:open-cluster-management:", "system:open-cluster-management:managed-clusters",
		"open-cluster-management:managed-clusters", "system:open-cluster-management:addon:a", "system:open-cluster-management:cluster:c2:addon:a",
		"system:open-cluster-management:cluster:", "system:open-cluster-management:cluster::", "open-cluster-management:cluster:c2:addon:a",
	} {
		for _, name := range []string{"c1", "cluster", "addon", "managed-clusters", "c1:addon", ""} {
			f.Add(name, "a", group)
		}
	}
	f.Fuzz(func(t *testing.T, name, addon, group string) {
		// Whatever the name, the groups decide. Addons do not use EKS.
		for _, groups := range [][]string{{group}, {group, AWSManagedClustersGroup}, {group, ManagedClustersGroup}} {
			if strings.HasPrefix(group, awsGroupPrefix+"cluster:") {
				continue
			}
			if found, ok := ClusterOfAgent(groups); ok && !IsAgent("", groups, found) {
				t.Errorf("%q are the groups of an agent of %q, who is none", groups, found)
			}
		}
		if len(validation.IsDNS1123Label(name)) > 0 || slices.Contains(cluster.ReservedNames, name) {
			return
		}
		ofAddon := clusterPrefix + "cluster:" + name + ":addon:" + addon
		for _, own := range [][]string{
			{ClusterGroup(name), ManagedClustersGroup}, {AWSGroup(name), AWSManagedClustersGroup}, {ofAddon, clusterPrefix + "addon:" + addon},
		} {
			if found, ok := ClusterOfAgent(own); !ok || found != name {
				t.Errorf("%q are the groups of %q, %t", own, found, ok)
			}
			if !IsAgent("ann", own, name) || !IsAgent(ClusterUser(name, addon), nil, name) {
				t.Errorf("%q are not the groups of an agent of %s", own, name)
			}
			// A group of users, beside them.
			if strings.HasPrefix(group, clusterPrefix) || strings.HasPrefix(group, awsGroupPrefix) {
				continue
			}
			for _, groups := range [][]string{append([]string{group}, own...), append(slices.Clone(own), group)} {
				if found, ok := ClusterOfAgent(groups); !ok || found != name {
					t.Errorf("%q are the groups of %q, %t", groups, found, ok)
				}
			}
		}
		if IsAgent("ann", []string{group}, name) != (strings.HasPrefix(group, clusterPrefix) || group == AWSGroup(name)) {
			t.Errorf("%q makes an agent of %s", group, name)
		}
	})
}

// FuzzAgentCluster verifies that an agent belongs to the cluster of its groups. Whatever its other groups and its name, it belongs to that cluster
// or to none, never to another.
func FuzzAgentCluster(f *testing.F) {
	for _, other := range []string{
		"", "system:masters", AWSGroup("c2"), AWSGroup("c1"), ClusterGroup(""), ClusterGroup("c1"), ClusterGroup("c2"), ManagedClustersGroup,
		AWSManagedClustersGroup, clusterPrefix + "addon:a", clusterPrefix + "cluster:c2:addon:a", ClusterGroup(AWSGroup("c1")), ClusterUser("c1", "a"),
	} {
		for _, name := range []string{"c1", "cluster", "addon", "managed-clusters", "work", "c1:a", ""} {
			f.Add(name, other, other)
			f.Add(name, "ann", other)
		}
	}
	f.Fuzz(func(t *testing.T, name, user, group string) {
		begins := func(text string) bool {
			return strings.HasPrefix(text, "system:open-cluster-management:") || strings.HasPrefix(text, "open-cluster-management:")
		}
		// A group alone makes no user an agent of a cluster.
		shared := group == ManagedClustersGroup || group == AWSManagedClustersGroup
		if found, agent := AgentCluster(user, []string{group}); found != "" || agent != shared {
			t.Errorf("%q in %q is an agent of %q, %t", user, group, found, agent)
		}
		if name == allClusters {
			return // the groups of all agents
		}
		valid := len(validation.IsDNS1123Label(name)) == 0 && !slices.Contains(cluster.ReservedNames, name)
		for _, own := range [][]string{{ClusterGroup(name), ManagedClustersGroup}, {AWSGroup(name), AWSManagedClustersGroup}} {
			for _, groups := range [][]string{own, append([]string{group}, own...), append(slices.Clone(own), group)} {
				found, agent := AgentCluster(user, groups)
				if !agent {
					t.Errorf("%q in %q is no agent", user, groups)
				}
				if found != "" && (found != name || !valid) {
					t.Errorf("%q in %q is an agent of %q", user, groups, found)
				}
				// It belongs to no cluster only for the known reasons.
				named := !begins(user) || slices.ContainsFunc([]string{ClusterGroup(name), AWSGroup(name)}, func(own string) bool {
					return user == own || strings.HasPrefix(user, own+":")
				})
				clear := !slices.Contains(groups, group) || !begins(group) || slices.Contains(own, group)
				if valid && (found == name) != (named && clear) {
					t.Errorf("%q in %q is an agent of %q", user, groups, found)
				}
			}
		}
	})
}

// FuzzRequesters verifies that exactly the named users may request a certificate. An invalid list names no user.
func FuzzRequesters(f *testing.F) {
	for _, text := range []string{"ann", "ann,bob", ",", "ann,", " ann", "system:serviceaccount:a:b", strings.Repeat("a", 1025), strings.Repeat("a,", 512), ""} {
		f.Add(text, "ann")
	}
	f.Fuzz(func(t *testing.T, text, user string) {
		named, err := Requesters(map[string]string{AnnotationRequesters: text})
		if (named == nil) != (text == "") {
			t.Fatalf("%q names %q, so that everybody may ask: %v", text, named, err)
		}
		if err != nil {
			if !slices.Equal(named, []string{""}) || strings.Contains(err.Error(), text) {
				t.Errorf("%q names %q with %v", text, named, err)
			}
			return
		}
		if strings.Join(named, ",") != text && text != "" {
			t.Errorf("%q names %q", text, named)
		}
		// No name has a comma: users of Kubernetes have none, and a user with a comma cannot be named.
		if user != "" && !strings.Contains(user, ",") && slices.Contains(named, user) != strings.Contains(","+text+",", ","+user+",") {
			t.Errorf("%q names %q, which is about %q", text, named, user)
		}
	})
}

// FuzzIsHubAnnotation verifies that an agent cannot set an annotation of the hub by another spelling of the key.
func FuzzIsHubAnnotation(f *testing.F) {
	for _, key := range []string{
		AnnotationAgentKey, AnnotationManagedClusterARN, AnnotationRoleSuffix, AnnotationManagedClusterARNOfSeed, AnnotationAcceptedAt,
		"agent.open-cluster-management.io/x", "open-cluster-management.io", "xopen-cluster-management.io/a", "a.clusterhub.dev/b/c", "clusterhub.dev/",
		"AGENT.open-cluster-management.io/x", "eks-managed-cluster-arn/",
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			return // the API refuses it
		}
		domain, _, hasDomain := strings.Cut(key, "/")
		ours := hasDomain && slices.ContainsFunc([]string{"open-cluster-management.io", "clusterhub.dev"}, func(hub string) bool {
			return strings.HasSuffix("."+domain, "."+hub)
		})
		told := strings.HasPrefix(key, AgentAnnotationPrefix) && key != AnnotationManagedClusterARN && key != AnnotationRoleSuffix
		if want := key == AnnotationManagedClusterARNOfSeed || ours && !told; hasDomain && IsHubAnnotation(key) != want {
			t.Errorf("%q is the hub's: %t, want %t", key, !want, want)
		}
	})
}

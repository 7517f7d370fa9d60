// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestServer_PublishesModelsAndDiscovery(t *testing.T) {
	out, err := harness.Get(t, harness.Hub(t).AdminConfig(), "/openapi/v2")
	if err != nil {
		t.Fatal(err)
	}
	harness.Contains(t, out, `"io.open-cluster-management.api.cluster.v1.ManagedCluster"`, `"io.open-cluster-management.api.cluster.v1beta2.ManagedClusterSet"`)
	if strings.Contains(out, "com.github.clusterhub") {
		t.Error("a model has the name of a Go package")
	}
	discovery := harness.Kube(t, harness.Hub(t).AdminConfig()).Discovery()
	groups, resources, err := discovery.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	preferred := map[string]string{}
	for _, g := range groups {
		preferred[g.Name] = g.PreferredVersion.Version
	}
	if preferred[harness.ClusterGroup] != "v1" || preferred["view.clusterhub.dev"] != "v1alpha1" {
		t.Errorf("the preferred versions are %v", preferred)
	}
	found := map[string]bool{}
	for _, list := range resources {
		for _, r := range list.APIResources {
			found[list.GroupVersion+"/"+r.Name] = true
		}
	}
	for _, want := range []string{"v1/managedclusters/status", "v1/managedclusters/label", "v1/managedclusters/accept",
		"v1beta1/managedclustersets", "v1beta2/managedclustersets", "v1beta2/managedclustersetbindings/status"} {
		if !found[harness.ClusterGroup+"/"+want] {
			t.Errorf("%s is not in the discovery", want)
		}
	}
}

// discovered returns a line for each resource: version, name, scope and kind, verbs, short names.
func discovered(group apidiscoveryv2.APIGroupDiscovery) []string {
	var lines []string
	for _, v := range group.Versions {
		for _, r := range v.Resources {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s", v.Version, r.Resource, r.Scope, r.ResponseKind.Kind,
				strings.Join(r.Verbs, ","), strings.Join(r.ShortNames, ","))))
			for _, s := range r.Subresources {
				lines = append(lines, fmt.Sprintf("%s %s/%s %s %s", v.Version, r.Resource, s.Subresource, s.ResponseKind.Kind, strings.Join(s.Verbs, ",")))
			}
		}
	}
	return lines
}

// TestDiscovery_IsOneRequest verifies that clients discover all groups, ours and the front's, from one document.
func TestDiscovery_IsOneRequest(t *testing.T) {
	const (
		stored = "create,delete,deletecollection,get,list,patch,update,watch"
		part   = "get,patch,update"
	)
	want := map[string][]string{
		harness.ClusterGroup: {
			"v1 managedclusters Cluster ManagedCluster " + stored + " mcl,mcls",
			"v1 managedclusters/accept ManagedCluster " + part,
			"v1 managedclusters/label ManagedCluster " + part,
			"v1 managedclusters/status ManagedCluster " + part,
		},
		"work.open-cluster-management.io": {
			"v1 appliedmanifestworks Cluster AppliedManifestWork " + stored,
			"v1 appliedmanifestworks/status AppliedManifestWork " + part,
			"v1 manifestworks Namespaced ManifestWork " + stored,
			"v1 manifestworks/status ManifestWork " + part,
			"v1alpha1 manifestworkreplicasetrevisions Namespaced ManifestWorkReplicaSetRevision " + stored + " mwrsr",
			"v1alpha1 manifestworkreplicasets Namespaced ManifestWorkReplicaSet " + stored + " mwrs",
			"v1alpha1 manifestworkreplicasets/status ManifestWorkReplicaSet " + part,
		},
		"view.clusterhub.dev": {"v1alpha1 clustersetmembers Cluster ClusterSetMember get,list,watch csm"},
		"clusterview.open-cluster-management.io": {
			"v1 managedclusters Cluster ManagedCluster get,list,patch,update,watch",
			"v1alpha1 managedclustersets Cluster ManagedClusterSet get,list,watch",
		},
	}
	for _, version := range []string{"v1beta2", "v1beta1"} { // the preferred one first
		want[harness.ClusterGroup] = append(want[harness.ClusterGroup],
			version+" managedclustersetbindings Namespaced ManagedClusterSetBinding "+stored+" mclsetbinding,mclsetbindings",
			version+" managedclustersetbindings/status ManagedClusterSetBinding "+part,
			version+" managedclustersets Cluster ManagedClusterSet "+stored+" mclset,mclsets",
			version+" managedclustersets/status ManagedClusterSet "+part)
	}
	want[harness.ClusterGroup] = append(want[harness.ClusterGroup],
		"v1beta1 placementdecisions Namespaced PlacementDecision "+stored,
		"v1beta1 placementdecisions/status PlacementDecision "+part,
		"v1beta1 placements Namespaced Placement "+stored,
		"v1beta1 placements/explain PlacementExplanation get",
		"v1beta1 placements/status Placement "+part,
		"v1alpha1 addonplacementscores Namespaced AddOnPlacementScore "+stored,
		"v1alpha1 addonplacementscores/status AddOnPlacementScore "+part,
		"v1alpha1 clusterclaims Cluster ClusterClaim "+stored)
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for name, config := range map[string]*rest.Config{"direct": harness.Hub(t).HubAPIServerConfig(0), "front": harness.Hub(t).AdminConfig()} {
		t.Run(name, func(t *testing.T) {
			var contentType string
			data, err := harness.RESTClient(t, config).Get().AbsPath("/apis").SetHeader("Accept", aggregated).Do(t.Context()).ContentType(&contentType).Raw()
			if err != nil || contentType != aggregated {
				t.Fatalf("got %s, %v", contentType, err)
			}
			var list apidiscoveryv2.APIGroupDiscoveryList
			if err := json.Unmarshal(data, &list); err != nil {
				t.Fatal(err)
			}
			found := map[string][]string{}
			for _, group := range list.Items {
				found[group.Name] = discovered(group)
				for _, v := range group.Versions {
					if v.Freshness != apidiscoveryv2.DiscoveryFreshnessCurrent {
						t.Errorf("%s/%s is %s", group.Name, v.Version, v.Freshness)
					}
				}
			}
			for group, lines := range want {
				if !slices.Equal(found[group], lines) {
					t.Errorf("%s has\n%s\nwant\n%s", group, strings.Join(found[group], "\n"), strings.Join(lines, "\n"))
				}
			}
		})
	}
}

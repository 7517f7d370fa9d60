// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// of returns manifests of apiVersions and kinds, such as apps/v1:Deployment. "" stands for a manifest that could not be parsed.
func of(texts ...string) []*unstructured.Unstructured {
	manifests := make([]*unstructured.Unstructured, len(texts))
	for i, text := range texts {
		if version, kind, ok := strings.Cut(text, ":"); ok {
			manifests[i] = &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
		}
	}
	return manifests
}

func TestApply(t *testing.T) {
	for name, test := range map[string]struct {
		manifests []string
		want      []int
	}{
		"none": {},
		"W016: RBAC, accounts, then what runs": {
			manifests: []string{"apps/v1:Deployment", "rbac.authorization.k8s.io/v1:RoleBinding", "v1:ServiceAccount", "rbac.authorization.k8s.io/v1:Role"},
			want:      []int{1, 3, 2, 0},
		},
		"W017: equal and unknown kinds": {
			manifests: []string{"example.com/v1:B", "v1:ConfigMap", "example.com/v1:A", "v1:Secret", "v1:ConfigMap"},
			want:      []int{1, 3, 4, 0, 2},
		},
		"one kind of each step, backwards": {
			manifests: []string{"", "example.com/v1:A", "apiregistration.k8s.io/v1:APIService", "batch/v1:Job", "v1:Service", "v1:ConfigMap",
				"networking.k8s.io/v1:NetworkPolicy", "rbac.authorization.k8s.io/v1:ClusterRole", "v1:Namespace"},
			want: []int{8, 7, 6, 5, 4, 3, 2, 1, 0},
		},
		"the version does not count": {
			manifests: []string{"autoscaling/v2:HorizontalPodAutoscaler", "autoscaling/v1:HorizontalPodAutoscaler", "apiextensions.k8s.io/v1beta1:CustomResourceDefinition"},
			want:      []int{2, 0, 1},
		},
		"a kind of the same name in another group is another kind": {
			manifests: []string{"example.com/v1:Namespace", "v1:Pod", "serving.knative.dev/v1:Service", "v1:Service"},
			want:      []int{3, 1, 0, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Apply(of(test.manifests...)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	objects := []Object{}
	for _, text := range []string{"namespaces x", "customresourcedefinitions.apiextensions.k8s.io widgets.example.com", "secrets x", "gadgets.example.com x", "deployments.apps x",
		"widgets.example.com x", "services x", "clusterroles.rbac.authorization.k8s.io x", "serviceaccounts x", "networkpolicies.networking.k8s.io x",
		"priorityclasses.scheduling.k8s.io x", "mutatingwebhookconfigurations.admissionregistration.k8s.io x", "jobs.batch x"} {
		resource, name, _ := strings.Cut(text, " ")
		objects = append(objects, Object{schema.ParseGroupResource(resource), name})
	}
	var got []string
	seen := 0
	for _, step := range Delete(objects) {
		var names []string
		for _, i := range step {
			names = append(names, objects[i].Resource)
			seen++
		}
		if len(names) > 0 {
			got = append(got, strings.Join(names, " "))
		}
	}
	want := []string{"widgets", "deployments jobs", "gadgets", "mutatingwebhookconfigurations", "services", "secrets", "serviceaccounts networkpolicies", "clusterroles",
		"namespaces customresourcedefinitions priorityclasses"}
	if !slices.Equal(got, want) || seen != len(objects) {
		t.Errorf("the steps are %q, want %q", got, want)
	}
}

// TestDelete_CoversAllKinds: each kind that has a step in which it is applied has one in which it is deleted, by its resource.
func TestDelete_CoversAllKinds(t *testing.T) {
	if len(stepOfResource) != len(stepOf) || stepOf[schema.GroupKind{Group: "apps", Kind: "Deployment"}] != running {
		t.Errorf("%d kinds have %d resources", len(stepOf), len(stepOfResource))
	}
}

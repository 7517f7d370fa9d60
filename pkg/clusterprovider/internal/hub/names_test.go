// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

var identity = Identity{Name: "p", Environment: "e"}

func TestResponsible_OwnProfilesOnly(t *testing.T) {
	for name, test := range map[string]struct {
		provider string
		labels   map[string]string
		want     bool
	}{
		"its own":                       {"p", map[string]string{v1alpha1.EnvironmentLabel: "e"}, true},
		"of no environment":             {"p", nil, true},
		"of another environment":        {"p", map[string]string{v1alpha1.EnvironmentLabel: "f"}, false},
		"of another provider":           {"q", map[string]string{v1alpha1.EnvironmentLabel: "e"}, false},
		"of no provider":                {"", nil, false},
		"of another, in no environment": {"q", nil, false},
	} {
		profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}}
		profile.Spec.ProviderRef.Name = test.provider
		if got := identity.Responsible(profile); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestConcerns_OwnRequestsOnly(t *testing.T) {
	for name, test := range map[string]struct {
		label, finalizer string
		want             bool
	}{
		"its own":                        {"p", "", true},
		"of another":                     {"q", "", false},
		"of none":                        {"", "", false},
		"begun, and labelled by another": {"q", identity.AccessFinalizer(), true},
		"begun by another":               {"q", Identity{Name: "q", Environment: "e"}.AccessFinalizer(), false},
	} {
		ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.ProviderLabel: test.label}, Finalizers: []string{test.finalizer}}}
		if got := identity.Concerns(ar); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// offering is a provider of one profile.
type offering struct{ clusterprovider.Provider }

func (offering) Profiles(context.Context) ([]clusterprovider.Profile, error) {
	return []clusterprovider.Profile{{Config: "berlin"}}, nil
}

// TestProfiles_WithoutEventRecorder: as in the subcommand init, which has no recorder of events.
func TestProfiles_WithoutEventRecorder(t *testing.T) {
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).
		WithIndex(&v1alpha1.Cluster{}, hub.ByProfile, func(o client.Object) []string { return []string{o.(*v1alpha1.Cluster).Spec.Profile} }).Build()
	p := &profiles{Identity: hub.Identity{Name: "p", Environment: "e"}, provider: offering{}, client: server, live: server}
	if err := p.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	profile := &v1alpha1.ClusterProfile{}
	if err := server.Get(t.Context(), types.NamespacedName{Name: "e.p.berlin"}, profile); err != nil {
		t.Fatal(err)
	}
	if err := p.withdraw(t.Context(), profile); err != nil {
		t.Error(err)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

func (f *fixture) wantEvents(what string, want ...string) {
	f.Helper()
	var got []string
	for len(f.events.Events) > 0 {
		got = append(got, <-f.events.Events)
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		f.Errorf("%s: the events are %q, want some that begin with %q", what, got, want)
	}
}

// states sets the states of the placements, as agents do.
func (f *fixture) states(all ...edgev1alpha1.PlacementState) {
	f.Helper()
	for i, p := range f.placements() {
		p.Status.State = all[i]
		if err := f.Status().Update(f.Context(), &p); err != nil {
			f.Fatal(err)
		}
	}
	f.settle()
}

func TestEvents_FaultsAndRecovery(t *testing.T) {
	f := world(t)
	f.wantEvents("all is placed")
	f.states(edgev1alpha1.PlacementRunning, edgev1alpha1.PlacementDelivering)
	f.wantEvents("one runs")
	f.states(edgev1alpha1.PlacementRunning, edgev1alpha1.PlacementFailed)
	f.wantEvents("one has failed", "Warning PlacementsFailed 1 of 2 placements are Failed")
	f.states(edgev1alpha1.PlacementRunning, edgev1alpha1.PlacementRunning)
	f.wantEvents("it runs again", "Normal AsExpected 2 placements are Running")
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "blue"}}
	if err := f.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	f.settle()
	f.wantEvents("there is no set", "Warning NoBoundSet ")
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/clusterhub/clusterhub/pkg/admission/cluster/pendingclusters"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/storagespace"
)

// What is cheap to refuse is refused before anybody is asked, and what counts is asked last.
func TestRegisterAdmission_Order(t *testing.T) {
	o := genericoptions.NewAdmissionOptions()
	registerAdmission(o)
	order := o.RecommendedPluginOrder
	first := slices.Index(order, mutatingwebhook.PluginName) + 1
	if want := []string{storagespace.PluginName, objectsize.PluginName}; !slices.Equal(order[first:first+2], want) {
		t.Errorf("after the mutating plugins come %q, want %q", order[first:first+2], want)
	}
	if want := []string{pendingclusters.PluginName, resourcequota.PluginName}; !slices.Equal(order[len(order)-2:], want) {
		t.Errorf("the last are %q, want %q", order[len(order)-2:], want)
	}
	for _, name := range order {
		if !slices.Contains(o.Plugins.Registered(), name) {
			t.Errorf("%s is not registered", name)
		}
	}
}

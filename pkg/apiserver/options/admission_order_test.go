// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/registry/rest"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/clusterhub/clusterhub/pkg/admission/cluster/agentlabelrate"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/clustersetdeletion"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/namespaceplacements"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/pendingclusters"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/nodeaccess"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/nodeowner"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/readonlyproperties"
	"github.com/clusterhub/clusterhub/pkg/admission/namespacebounds"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/storagespace"
	"github.com/clusterhub/clusterhub/pkg/admission/work/manifestsize"
	"github.com/clusterhub/clusterhub/pkg/apiserver"
)

// TestRegisterAdmission_Order verifies that cheap checks run before the front is called, and that plugins that count run last.
func TestRegisterAdmission_Order(t *testing.T) {
	o := genericoptions.NewAdmissionOptions()
	registerAdmission(o)
	order := o.RecommendedPluginOrder
	first := slices.Index(order, nodeowner.PluginName) + 1
	if webhook := slices.Index(order, mutatingwebhook.PluginName); webhook < 0 || slices.Index(order, readonlyproperties.PluginName) < webhook || first < webhook {
		t.Errorf("webhooks come after what drops and sets what they must not change: %q", order)
	}
	if want := []string{storagespace.PluginName, manifestsize.PluginName, objectsize.PluginName}; !slices.Equal(order[first:first+3], want) {
		t.Errorf("after the mutating plugins come %q, want %q", order[first:first+3], want)
	}
	want := []string{agentlabelrate.PluginName, pendingclusters.PluginName, namespaceplacements.PluginName, namespacebounds.PluginName, resourcequota.PluginName}
	if last := order[len(order)-len(want):]; !slices.Equal(last, want) {
		t.Errorf("the last are %q, want %q", last, want)
	}
	for _, name := range order {
		if !slices.Contains(o.Plugins.Registered(), name) {
			t.Errorf("%s is not registered", name)
		}
	}
}

// keeper keeps the plugins that it initializes.
type keeper struct {
	pluginInitializer
	plugins []admission.Interface
}

func (k *keeper) Initialize(plugin admission.Interface) {
	k.pluginInitializer.Initialize(plugin)
	k.plugins = append(k.plugins, plugin)
}

func TestPluginInitializer_SetsEveryFieldOfOurPlugins(t *testing.T) {
	o := genericoptions.NewAdmissionOptions()
	registerAdmission(o)
	k := &keeper{pluginInitializer: pluginInitializer{maxPending: 1, maxPlacements: 1, maxManifests: 1, checkSpace: func() error { return nil },
		maxInNamespace: namespacebounds.Amount{Objects: 1, Bytes: 1}}}
	for _, p := range plugins {
		if p.register != nil {
			// This fails without the generic server's initializer.
			_, _ = o.Plugins.InitPlugin(p.name, nil, k)
		}
	}
	stored := struct {
		clustersetdeletion.Counter
		rest.Getter
		rest.Lister
		nodeaccess.Sets
	}{}
	followed := false
	k.SetRegistries(apiserver.Registries{SetUsage: stored, ManagedClusters: stored, ClusterSets: stored, SetBindings: stored, Placements: stored, ReplicaSets: stored,
		ClusterProfiles: stored, AccessRequests: stored, EdgeServices: stored, FollowNamespaced: func(apiserver.NamespaceCounter) { followed = true }})
	if !followed {
		t.Error("nothing tells the plugin what namespaces have")
	}
	seen := 0
	for _, plugin := range k.plugins {
		v := reflect.ValueOf(plugin).Elem()
		if !strings.Contains(v.Type().PkgPath(), "clusterhub/pkg/admission/") {
			continue
		}
		for _, field := range reflect.VisibleFields(v.Type()) {
			if len(field.Index) > 1 || field.Anonymous || !field.IsExported() {
				continue
			}
			seen++
			if v.FieldByIndex(field.Index).IsZero() {
				t.Errorf("%s: %s is not set", v.Type(), field.Name)
			}
		}
	}
	if seen == 0 {
		t.Error("there are no fields")
	}
}

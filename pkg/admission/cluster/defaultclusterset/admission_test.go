// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package defaultclusterset

import (
	"errors"
	"maps"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/featuregate"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusterlabel"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

const setKey = "cluster.open-cluster-management.io/clusterset"

func gates(t *testing.T, enabled bool) featuregate.FeatureGate {
	t.Helper()
	gates := featuregate.NewFeatureGate()
	if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{Feature: {Default: enabled}}); err != nil {
		t.Fatal(err)
	}
	return gates
}

func pluginWith(t *testing.T, enabled bool) *Plugin {
	t.Helper()
	p := New()
	p.InspectFeatureGates(gates(t, enabled))
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAdmit_AddsDefaultSet(t *testing.T) {
	for name, c := range map[string]struct {
		before []string
		wants  string
	}{
		"no labels":   {nil, "default"},
		"others":      {[]string{"env", "x"}, "default"},
		"an empty":    {[]string{setKey, ""}, "default"},
		"its own set": {[]string{setKey, "dev"}, "dev"},
	} {
		for how, r := range map[string]at.Request{
			"create":        {},
			"dry run":       {DryRun: true},
			"update":        {Old: at.Cluster("c1", setKey, "dev")},
			"update /label": {Old: at.Cluster("c1", setKey, "dev"), Subresource: "label"},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				r.Object = at.Cluster("c1", c.before...)
				if err := pluginWith(t, true).Admit(t.Context(), r.Attributes(), nil); err != nil {
					t.Fatal(err)
				}
				want := at.Cluster("c1", append(c.before[:len(c.before):len(c.before)], setKey, c.wants)...).Labels
				if got := r.Object.(*cluster.ManagedCluster).Labels; !maps.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		}
	}
}

func TestAdmit_IgnoresOtherSubresources(t *testing.T) {
	for _, subresource := range []string{"status", "accept"} {
		c := at.Cluster("c1")
		r := at.Request{Object: c, Old: at.Cluster("c1"), Subresource: subresource}
		if err := pluginWith(t, true).Admit(t.Context(), r.Attributes(), nil); err != nil || len(c.Labels) > 0 {
			t.Errorf("%s: got %v, %v", subresource, c.Labels, err)
		}
	}
}

func TestAdmit_FeatureGateDisabledOrUnknown(t *testing.T) {
	for name, p := range map[string]*Plugin{"off": pluginWith(t, false), "not seen": New()} {
		c := at.Cluster("c1")
		if err := p.Admit(t.Context(), at.Request{Object: c}.Attributes(), nil); err != nil || len(c.Labels) > 0 {
			t.Errorf("%s: got %v, %v", name, c.Labels, err)
		}
	}
}

func TestAdmit_DoesNotModifyGivenMap(t *testing.T) {
	c := at.Cluster("c1", "env", "x")
	shared := c.Labels
	if err := pluginWith(t, true).Admit(t.Context(), at.Request{Object: c}.Attributes(), nil); err != nil {
		t.Fatal(err)
	}
	if len(shared) != 1 {
		t.Errorf("changed a map that may belong to the cache: %v", shared)
	}
}

func TestAdmit_IgnoresOtherResources(t *testing.T) {
	set := &cluster.ManagedClusterSet{}
	r := at.Request{Object: set, Resource: "managedclustersets", Version: "v1beta1"}
	if err := pluginWith(t, true).Admit(t.Context(), r.Attributes(), nil); err != nil || len(set.Labels) > 0 {
		t.Errorf("got %v, %v", set.Labels, err)
	}
	r = at.Request{Object: set}
	if err := pluginWith(t, true).Admit(t.Context(), r.Attributes(), nil); !apierrors.IsInternalError(err) {
		t.Errorf("a set as a cluster: got %v", err)
	}
}

// TestAdmit_DefaultSetDoesNotBypassPermissions runs both phases in the order of the API server, and verifies that the default does not bypass the
// permission on the set that a cluster leaves, or on the label of a new cluster.
func TestAdmit_DefaultSetDoesNotBypassPermissions(t *testing.T) {
	admit := func(grants []string, r at.Request) error {
		guard := managedclusterlabel.New()
		guard.SetAuthorizer(&at.Authorizer{Grants: at.Labels(grants...)})
		guard.InspectFeatureGates(gates(t, true))
		a := r.Attributes()
		var p admission.MutationInterface = pluginWith(t, true)
		return errors.Join(p.Admit(t.Context(), a, nil), guard.Validate(t.Context(), a, nil))
	}
	for name, c := range map[string]struct {
		old     *cluster.ManagedCluster
		grants  []string
		allowed bool
	}{
		"create without permission":     {nil, nil, false},
		"create with permission":        {nil, []string{setKey + ":default"}, true},
		"leave without the default's":   {at.Cluster("c1", setKey, "dev"), []string{setKey + ":dev"}, true},
		"leave without the set's":       {at.Cluster("c1", setKey, "dev"), []string{setKey + ":default"}, false},
		"leave a set":                   {at.Cluster("c1", setKey, "dev"), []string{setKey + ":dev", setKey + ":default"}, true},
		"leave the default is no leave": {at.Cluster("c1", setKey, "default"), nil, true},
	} {
		r := at.Request{Object: at.Cluster("c1")}
		if c.old != nil {
			r.Old = c.old
		}
		if err := admit(c.grants, r); (err == nil) != c.allowed {
			t.Errorf("%s: got %v, want allowed: %t", name, err, c.allowed)
		}
	}
}

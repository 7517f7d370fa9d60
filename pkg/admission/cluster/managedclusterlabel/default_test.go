// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterlabel

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/featuregate"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// withDefaultSet returns a plugin of a hub with the feature gate on or off.
func withDefaultSet(t *testing.T, a *at.Authorizer, enabled bool) *Plugin {
	t.Helper()
	gates := featuregate.NewFeatureGate()
	if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{cluster.DefaultSetFeature: {Default: enabled}}); err != nil {
		t.Fatal(err)
	}
	p := pluginFor(a)
	p.InspectFeatureGates(gates)
	return p
}

// TestAttack_DefaultSetGrantsNoOtherPermission: users with the permission on one set, or on default, try every move between sets, and back.
func TestAttack_DefaultSetGrantsNoOtherPermission(t *testing.T) {
	in := func(set string) []string { return []string{setKey, set} }
	a, other := at.Label(setKey+":a"), at.Label(teamKey+":x")
	for name, c := range map[string]struct {
		before, after []string
		grants        []rbac.Permission
		// made reports whether the cluster is new, and off whether the hub has no default set.
		made, off bool
		// lacks is the label whose permission is missing. It is empty if the change is allowed.
		lacks string
	}{
		"a set takes a cluster that is in none":             {before: in("default"), after: in("a"), grants: []rbac.Permission{a}},
		"by the older right":                                {before: in("default"), after: in("a"), grants: []rbac.Permission{at.Join("a")}},
		"by the right to all values":                        {before: in("default"), after: in("a"), grants: at.Labels(setKey + ":*")},
		"it gives it back":                                  {before: in("a"), after: in("default"), grants: []rbac.Permission{a}},
		"no right":                                          {before: in("default"), after: in("a"), lacks: setKey + ":a"},
		"a right to default is none to a set":               {before: in("default"), after: in("a"), grants: at.Labels(setKey + ":default"), lacks: setKey + ":a"},
		"nor to a set that is left":                         {before: in("a"), after: in("default"), grants: at.Labels(setKey + ":default"), lacks: setKey + ":a"},
		"a right to another set does not apply to this one": {before: in("default"), after: in("b"), grants: []rbac.Permission{a}, lacks: setKey + ":b"},
		"stolen from a set":                                 {before: in("b"), after: in("a"), grants: []rbac.Permission{a}, lacks: setKey + ":b"},
		"stolen in two steps: the first":                    {before: in("b"), after: in("default"), grants: []rbac.Permission{a}, lacks: setKey + ":b"},
		"given to a set":                                    {before: in("a"), after: in("b"), grants: []rbac.Permission{a}, lacks: setKey + ":b"},
		"global is a value as any other":                    {before: in("default"), after: in("global"), grants: []rbac.Permission{a}, lacks: setKey + ":global"},
		"given to global":                                   {before: in("a"), after: in("global"), grants: []rbac.Permission{a}, lacks: setKey + ":global"},
		"an alias of default":                               {before: in("a"), after: in("Default"), grants: []rbac.Permission{a}, lacks: setKey + ":Default"},

		"a cluster that is made comes into default": {after: in("default"), grants: []rbac.Permission{a}, made: true, lacks: setKey + ":default"},
		"or into a set": {after: in("a"), grants: []rbac.Permission{a}, made: true},
		"one without the label comes into default": {after: in("default"), grants: []rbac.Permission{a}, lacks: setKey + ":default"},
		"one without the label comes into a set":   {after: in("a"), grants: []rbac.Permission{a}},
		"default is removed":                       {before: in("default"), grants: []rbac.Permission{a}, lacks: setKey + ":default"},
		"default is emptied":                       {before: in("default"), after: in(""), grants: append(at.Labels(setKey+":"), a), lacks: setKey + ":default"},
		"an empty label becomes default":           {before: in(""), after: in("default"), grants: at.Labels(setKey + ":"), lacks: setKey + ":default"},

		"another label beside it": {before: in("default"), after: append(in("a"), teamKey, "x"), grants: []rbac.Permission{a}, lacks: teamKey + ":x"},
		"with the right to that":  {before: in("default"), after: append(in("a"), teamKey, "x"), grants: []rbac.Permission{a, other}},
		"default of another key":  {before: []string{teamKey, "default"}, after: []string{teamKey, "x"}, grants: []rbac.Permission{other}, lacks: teamKey + ":default"},
		"a set of another key does not count": {before: append(in("default"), teamKey, "y"), after: []string{teamKey, "x"},
			grants: append(at.Labels(teamKey+":y"), other), lacks: setKey + ":default"},

		"without a default set, it is a set as any other": {before: in("default"), after: in("a"), grants: []rbac.Permission{a}, off: true, lacks: setKey + ":default"},
		"also one that is joined":                         {before: in("a"), after: in("default"), grants: []rbac.Permission{a}, off: true, lacks: setKey + ":default"},
	} {
		t.Run(name, func(t *testing.T) {
			r := at.Request{Object: at.Cluster("c1", c.after...)}
			requests := map[string]at.Request{"create": r}
			if !c.made {
				requests = map[string]at.Request{}
				for _, subresource := range []string{"", "label", "status", "accept"} {
					r.Old, r.Subresource = at.Cluster("c1", c.before...), subresource
					requests["update "+subresource] = r
				}
			}
			for _, how := range slices.Sorted(maps.Keys(requests)) {
				_, err := at.Validate(t, withDefaultSet(t, &at.Authorizer{Grants: c.grants}, !c.off), requests[how].Attributes())
				switch {
				case c.lacks == "" && err != nil:
					t.Errorf("%s: %v", how, err)
				case c.lacks != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `["`+c.lacks+`"]`)):
					t.Errorf("%s: got %v, want a 403 that names %s", how, err, c.lacks)
				}
			}
		})
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterlabel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

const (
	setKey    = "cluster.open-cluster-management.io/clusterset"
	teamKey   = "cluster.open-cluster-management.io/team"
	regionKey = "info.open-cluster-management.io/region"
)

func pluginFor(a *at.Authorizer) *Plugin {
	p := New()
	p.SetAuthorizer(a)
	return p
}

// label is one key and value.
type label struct{ key, value string }

func (l label) name() string { return l.key + ":" + l.value }

// spellings returns the names under which a permission on the label can be granted.
func (l label) spellings() []string { return []string{l.name(), l.key + ":*", "*"} }

// labelChange is a change of labels, and the labels that are added or removed.
type labelChange struct {
	before, after []string
	moved         []label
}

// changesOf returns every kind of change for one key.
func changesOf(key string) map[string]labelChange {
	return map[string]labelChange{
		"add":               {nil, []string{key, "a"}, []label{{key, "a"}}},
		"add with no value": {nil, []string{key, ""}, []label{{key, ""}}},
		"change":            {[]string{key, "a"}, []string{key, "b"}, []label{{key, "a"}, {key, "b"}}},
		"empty the value":   {[]string{key, "a"}, []string{key, ""}, []label{{key, "a"}, {key, ""}}},
		"remove":            {[]string{key, "a"}, nil, []label{{key, "a"}}},
		"remove the empty":  {[]string{key, ""}, nil, []label{{key, ""}}},
		"swap with another": {[]string{key, "a", key + "2", "b"},
			[]string{key, "b", key + "2", "a"}, []label{{key, "a"}, {key, "b"}, {key + "2", "b"}, {key + "2", "a"}}},
		"move to another": {[]string{key, "a"}, []string{key + "2", "a"}, []label{{key, "a"}, {key + "2", "a"}}},
		"among free changes": {[]string{"env", "x", "gone", "y"},
			[]string{"env", "z", "new", "w", key, "a"}, []label{{key, "a"}}},
	}
}

// requestsOf returns every request by which the change can be made.
func requestsOf(c labelChange) map[string]at.Request {
	requests := map[string]at.Request{}
	updated, old := at.Cluster("c1", c.after...), at.Cluster("c1", c.before...)
	for _, subresource := range []string{"", "label", "status", "accept"} {
		for _, dryRun := range []bool{false, true} {
			requests[fmt.Sprintf("update %q dry run %t", subresource, dryRun)] =
				at.Request{Object: updated, Old: old, Subresource: subresource, DryRun: dryRun}
		}
	}
	if len(c.before) == 0 {
		// A server-side apply of an object that does not exist is sent as an update, and passed to admission as a create.
		requests["create"] = at.Request{Object: updated}
		requests["create dry run"] = at.Request{Object: updated, DryRun: true}
	}
	return requests
}

func forEveryAttempt(t *testing.T, do func(t *testing.T, c labelChange, r at.Request)) {
	for _, key := range []string{setKey, teamKey, regionKey} {
		for what, change := range changesOf(key) {
			for how, request := range requestsOf(change) {
				t.Run(key+"/"+what+"/"+how, func(t *testing.T) { do(t, change, request) })
			}
		}
	}
}

func TestValidate_ReservedLabelNeedsPermission(t *testing.T) {
	forEveryAttempt(t, func(t *testing.T, c labelChange, r at.Request) {
		_, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes())
		if !apierrors.IsForbidden(err) {
			t.Fatalf("got %v, want a 403", err)
		}
	})
}

func TestValidate_AnyPermissionSpellingAllows(t *testing.T) {
	forEveryAttempt(t, func(t *testing.T, c labelChange, r at.Request) {
		for spelling := range 3 {
			var names []string
			for _, l := range c.moved {
				names = append(names, l.spellings()[spelling])
			}
			a := &at.Authorizer{Grants: at.Labels(names...)}
			warnings, err := at.Validate(t, pluginFor(a), r.Attributes())
			if err != nil {
				t.Errorf("with %q: %v", names, err)
			}
			if len(warnings) > 0 {
				t.Errorf("with %q: warned %q", names, warnings)
			}
			if len(a.Odd) > 0 {
				t.Errorf("asked what no rule can grant: %+v", a.Odd)
			}
		}
	})
}

func TestValidate_EachLabelNeedsPermission(t *testing.T) {
	forEveryAttempt(t, func(t *testing.T, c labelChange, r at.Request) {
		for spelling := range 2 { // "*" is one name for all
			for missing := range c.moved {
				lacked := c.moved[missing].spellings()[spelling]
				var names []string
				for _, l := range c.moved {
					if name := l.spellings()[spelling]; name != lacked {
						names = append(names, name)
					}
				}
				_, err := at.Validate(t, pluginFor(&at.Authorizer{Grants: at.Labels(names...)}), r.Attributes())
				if !apierrors.IsForbidden(err) {
					t.Errorf("without %q: got %v, want a 403", lacked, err)
				}
			}
		}
	})
}

func TestValidate_PermissionsNamedInErrorSuffice(t *testing.T) {
	forEveryAttempt(t, func(t *testing.T, c labelChange, r at.Request) {
		_, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes())
		rules := at.MissingRules(t, err)
		if len(rules) != len(c.moved) {
			t.Fatalf("%v\nnames %d rules, want %d", err, len(rules), len(c.moved))
		}
		for _, l := range c.moved {
			if !slices.Contains(rules, at.Label(l.name())) {
				t.Errorf("%v\nwants the rule for %q", err, l.name())
			}
		}
		if _, err := at.Validate(t, pluginFor(&at.Authorizer{Grants: rules}), r.Attributes()); err != nil {
			t.Errorf("with the rules that were asked for: %v", err)
		}
	})
}

func TestValidate_UnrelatedPermissionsDoNotAllow(t *testing.T) {
	others := map[string][]rbac.Permission{
		"another value":            at.Labels(teamKey + ":b"),
		"another key":              at.Labels(regionKey+":a", regionKey+":*"),
		"a pattern of the key":     at.Labels("cluster.open-cluster-management.io/*:a", "cluster.open-cluster-management.io/*"),
		"a prefix of the value":    at.Labels(teamKey+":", teamKey, teamKey+"::a", "*:a", "*:*"),
		"the name of the cluster":  at.Labels("c1"),
		"no name":                  at.Labels(""),
		"the verb update":          {at.Rule("update", cluster.GroupName, "managedclusters/label", teamKey+":a")},
		"the verb *, literally":    {at.Rule("*", cluster.GroupName, "managedclusters/label", teamKey+":a")},
		"another subresource":      {at.Rule("create", cluster.GroupName, "managedclusters/labels", teamKey+":a")},
		"the resource itself":      {at.Rule("create", cluster.GroupName, "managedclusters", teamKey+":a")},
		"another group":            {at.Rule("create", permission.RegisterGroup, "managedclusters/label", teamKey+":a")},
		"join, for another key":    {at.Join("a"), at.Join("*"), at.Join("")},
		"accepting the cluster":    {at.Rule("update", cluster.GroupName, "managedclusters/accept", "c1")},
		"the label in upper case":  at.Labels(strings.ToUpper(teamKey) + ":a"),
		"the value in another way": at.Labels(teamKey+"=a", teamKey+": a"),
	}
	for what, grants := range others {
		t.Run(what, func(t *testing.T) {
			r := at.Request{Object: at.Cluster("c1", teamKey, "a"), Old: at.Cluster("c1")}
			if _, err := at.Validate(t, pluginFor(&at.Authorizer{Grants: grants}),
				r.Attributes()); !apierrors.IsForbidden(err) {
				t.Fatalf("got %v, want a 403", err)
			}
		})
	}
}

func TestValidate_ChecksMostSpecificPermissionFirst(t *testing.T) {
	r := at.Request{Object: at.Cluster("c1", teamKey, "b"), Old: at.Cluster("c1", teamKey, "a")}
	for _, c := range []struct{ grants, asked []string }{
		{[]string{teamKey + ":a", teamKey + ":b"}, []string{teamKey + ":a", teamKey + ":b"}},
		{[]string{teamKey + ":*"}, []string{teamKey + ":a", teamKey + ":*", teamKey + ":b", teamKey + ":*"}},
		{[]string{"*"}, []string{teamKey + ":a", teamKey + ":*", "*", teamKey + ":b", teamKey + ":*", "*"}},
	} {
		a := &at.Authorizer{Grants: at.Labels(c.grants...)}
		if _, err := at.Validate(t, pluginFor(a), r.Attributes()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Names(), c.asked) {
			t.Errorf("with %q: asked for %q, want %q", c.grants, a.Names(), c.asked)
		}
	}
}

func TestValidate_UnchangedLabelNeedsNoPermission(t *testing.T) {
	kept := []string{setKey, "a", teamKey, "", regionKey, "apac"}
	for name, r := range map[string]at.Request{
		"nothing changes":          {Object: at.Cluster("c1", kept...), Old: at.Cluster("c1", kept...)},
		"free labels change":       {Object: at.Cluster("c1", append(kept, "env", "x")...), Old: at.Cluster("c1", append(kept, "os", "y")...)},
		"no labels":                {Object: at.Cluster("c1"), Old: at.Cluster("c1")},
		"nil and empty are one":    {Object: &cluster.ManagedCluster{}, Old: at.Cluster("c1")},
		"created without labels":   {Object: at.Cluster("c1")},
		"created with free labels": {Object: at.Cluster("c1", "env", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			a := &at.Authorizer{Err: errors.New("must not be asked")}
			if _, err := at.Validate(t, pluginFor(a), r.Attributes()); err != nil || len(a.Asked) > 0 {
				t.Fatalf("got %v after asking for %q", err, a.Names())
			}
		})
	}
}

func TestValidate_ReservedPrefixes(t *testing.T) {
	for key, reserved := range map[string]bool{
		setKey: true, teamKey: true, regionKey: true,
		"cluster.open-cluster-management.io/": true, "info.open-cluster-management.io/x.y_z": true,
		"cluster.open-cluster-management.io":           false,
		"info.open-cluster-management.io":              false,
		"feature.open-cluster-management.io/addon-x":   false,
		"open-cluster-management.io/cluster-name":      false,
		"x.cluster.open-cluster-management.io/team":    false,
		"cluster.open-cluster-management.io.evil/team": false,
		"kubernetes.io/os":                             false,
		"clusterset":                                   false,
	} {
		r := at.Request{Object: at.Cluster("c1", key, "a")}
		_, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes())
		if apierrors.IsForbidden(err) != reserved {
			t.Errorf("%s: got %v, want refused: %t", key, err, reserved)
		}
	}
}

func TestValidate_JoinPermissionWarns(t *testing.T) {
	in := func(set string) runtime.Object { return at.Cluster("c1", setKey, set) }
	out := at.Cluster("c1")
	for name, c := range map[string]struct {
		request  at.Request
		grants   []rbac.Permission
		warnings []string
		refused  bool
	}{
		"into a set, at create": {request: at.Request{Object: in("dev")}, grants: []rbac.Permission{at.Join("dev")},
			warnings: []string{"dev"}},
		"into a set": {request: at.Request{Object: in("dev"), Old: out}, grants: []rbac.Permission{at.Join("dev")},
			warnings: []string{"dev"}},
		"out of a set": {request: at.Request{Object: out, Old: in("dev")}, grants: []rbac.Permission{at.Join("dev")},
			warnings: []string{"dev"}},
		"between sets": {request: at.Request{Object: in("qa"), Old: in("dev")}, grants: []rbac.Permission{at.Join("dev"), at.Join("qa")},
			warnings: []string{"dev", "qa"}},
		"between sets, mixed": {request: at.Request{Object: in("qa"), Old: in("dev")}, grants: []rbac.Permission{at.Join("dev"), at.Label(setKey + ":qa")},
			warnings: []string{"dev"}},
		"the label permission is better": {request: at.Request{Object: in("dev"), Old: out},
			grants: []rbac.Permission{at.Join("dev"), at.Label(setKey + ":*")}},
		"into another set": {request: at.Request{Object: in("dev"), Old: out}, grants: []rbac.Permission{at.Join("qa"), at.Join("*")},
			refused: true},
		"stolen from a set": {request: at.Request{Object: in("qa"), Old: in("dev")}, grants: []rbac.Permission{at.Join("qa")}, refused: true,
			warnings: []string{"qa"}},
		"given away": {request: at.Request{Object: in("qa"), Old: in("dev")}, grants: []rbac.Permission{at.Join("dev")}, refused: true,
			warnings: []string{"dev"}},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, err := at.Validate(t, pluginFor(&at.Authorizer{Grants: c.grants}), c.request.Attributes())
			if apierrors.IsForbidden(err) != c.refused || (err != nil) != c.refused {
				t.Fatalf("got %v, want refused: %t", err, c.refused)
			}
			if len(warnings) != len(c.warnings) {
				t.Fatalf("warned %q, want one for each of %q", warnings, c.warnings)
			}
			for i, set := range c.warnings {
				for _, want := range []string{"deprecated", `"managedclustersets/join"`, `["` + set + `"]`, `["` + setKey + ":" + set + `"]`, `"managedclusters/label"`} {
					if !strings.Contains(warnings[i], want) {
						t.Errorf("%q does not say %s", warnings[i], want)
					}
				}
			}
		})
	}
}

func TestValidate_DeniesOnAuthorizerError(t *testing.T) {
	forEveryAttempt(t, func(t *testing.T, c labelChange, r at.Request) {
		_, err := at.Validate(t, pluginFor(&at.Authorizer{Err: errors.New("connection refused")}), r.Attributes())
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Fatalf("got %v, want a 403 that says why", err)
		}
	})
}

func TestValidate_DenialOfOneSpellingIsFinal(t *testing.T) {
	a := &at.Authorizer{
		Denials: at.Labels(setKey + ":dev"),
		Grants:  append(at.Labels(setKey+":*", "*"), at.Join("dev")),
	}
	r := at.Request{Object: at.Cluster("c1", setKey, "dev"), Old: at.Cluster("c1")}
	if _, err := at.Validate(t, pluginFor(a), r.Attributes()); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "the policy says so") {
		t.Fatalf("got %v, want a 403 that says why", err)
	}
	r = at.Request{Object: at.Cluster("c1", setKey, "qa"), Old: at.Cluster("c1")}
	if _, err := at.Validate(t, pluginFor(a), r.Attributes()); err != nil {
		t.Fatalf("another label: %v", err)
	}
}

func TestValidate_ErrorNamesUserAndLabel(t *testing.T) {
	r := at.Request{Object: at.Cluster("c1", setKey, "qa"), Old: at.Cluster("c1", setKey, "dev")}
	_, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes())
	for _, want := range []string{
		`managedclusters.cluster.open-cluster-management.io "c1" is forbidden`,
		`user "ann" cannot remove the label ` + setKey + `=dev or add the label ` + setKey + `=qa`,
		`{apiGroups: ["cluster.open-cluster-management.io"], resources: ["managedclusters/label"], resourceNames: ["` + setKey + `:dev"], verbs: ["create"]}`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %s", err, want)
		}
	}
}

func TestValidate_IgnoresOtherResources(t *testing.T) {
	set := &cluster.ManagedClusterSet{ObjectMeta: at.Cluster("s", teamKey, "a").ObjectMeta}
	r := at.Request{Object: set, Resource: "managedclustersets", Version: "v1beta1"}
	if _, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes()); err != nil {
		t.Fatal(err)
	}
}

func TestValidate_RejectsOtherTypes(t *testing.T) {
	wrong := &cluster.ManagedClusterSet{}
	for name, r := range map[string]at.Request{
		"the object":     {Object: wrong, Old: at.Cluster("c1")},
		"the old object": {Object: at.Cluster("c1"), Old: wrong},
	} {
		if _, err := at.Validate(t, pluginFor(&at.Authorizer{}), r.Attributes()); !apierrors.IsInternalError(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestValidateInitialization_RequiresAuthorizer(t *testing.T) {
	p := New()
	if p.ValidateInitialization() == nil {
		t.Fatal("a plugin that can ask nobody is ready")
	}
	p.SetAuthorizer(&at.Authorizer{})
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
}

// TestValidate_LimitsChangesPerRequest verifies that the number of changes of one request is bounded: each causes a check by the front.
func TestValidate_LimitsChangesPerRequest(t *testing.T) {
	labels := func(n int) (pairs []string) {
		for i := range n {
			pairs = append(pairs, fmt.Sprintf("%s-%d", regionKey, i), "x")
		}
		return pairs
	}
	all := &at.Authorizer{Grants: []rbac.Permission{labelRule("*")}}
	most, tooMany := at.Cluster("c1", labels(maxChanges)...), at.Cluster("c1", labels(maxChanges+1)...)
	if _, err := at.Validate(t, pluginFor(all), at.Request{Object: most}.Attributes()); err != nil {
		t.Errorf("%d changes: %v", maxChanges, err)
	}
	asked := len(all.Asked)
	if _, err := at.Validate(t, pluginFor(all), at.Request{Object: tooMany}.Attributes()); !apierrors.IsBadRequest(err) || len(all.Asked) > asked {
		t.Errorf("%d changes: %v, want 400 without asking", maxChanges+1, err)
	}
	// Unchanged labels do not count.
	if _, err := at.Validate(t, pluginFor(all), at.Request{Object: tooMany, Old: most}.Attributes()); err != nil {
		t.Errorf("one change among many labels: %v", err)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

func validCluster() *cluster.ManagedCluster {
	return &cluster.ManagedCluster{
		ObjectMeta: stored("c1"),
		Spec: cluster.ManagedClusterSpec{
			ManagedClusterClientConfigs: []cluster.ClientConfig{{URL: "https://api.example.com:6443", CABundle: []byte("x")}},
			LeaseDurationSeconds:        60,
			Taints:                      []cluster.Taint{{Key: "example.com/a.b_c-D", Value: "v", Effect: "NoSelect", TimeAdded: metav1.Unix(1, 0)}},
		},
	}
}

func labelled(key, value string) func(*cluster.ManagedCluster) {
	return func(c *cluster.ManagedCluster) { c.Labels = map[string]string{key: value} }
}

func reachedAt(url string) func(*cluster.ManagedCluster) {
	return func(c *cluster.ManagedCluster) { c.Spec.ManagedClusterClientConfigs[0].URL = url }
}

func tainted(change func(*cluster.Taint)) func(*cluster.ManagedCluster) {
	return func(c *cluster.ManagedCluster) { change(&c.Spec.Taints[0]) }
}

var badURL = []string{invalid + "spec.managedClusterClientConfigs[0].url"}

// clusterCases are rules for new clusters and for changed ones alike.
var clusterCases = map[string]struct {
	change func(*cluster.ManagedCluster)
	want   []string
}{
	"valid": {change: func(*cluster.ManagedCluster) {}},
	"bare":  {change: func(c *cluster.ManagedCluster) { c.Spec = cluster.ManagedClusterSpec{} }},
	"valid labels": {change: func(c *cluster.ManagedCluster) {
		c.Labels = map[string]string{"a.b/c": strings.Repeat("x", 63), "e": ""}
	}},
	"a negative lease": {func(c *cluster.ManagedCluster) { c.Spec.LeaseDurationSeconds = -1 },
		[]string{invalid + "spec.leaseDurationSeconds"}},

	"a huge label value": {labelled("a", strings.Repeat("x", 64)), []string{invalid + "metadata.labels"}},
	"an enormous label":  {labelled("a", strings.Repeat("x", 1<<16)), []string{invalid + "metadata.labels"}},
	"a huge label name":  {labelled("a.b/"+strings.Repeat("x", 64), ""), []string{invalid + "metadata.labels"}},
	"a huge label key":   {labelled(strings.Repeat("x", 254)+"/a", ""), []string{invalid + "metadata.labels"}},
	"a wildcard label": {func(c *cluster.ManagedCluster) {
		c.Labels = map[string]string{"info.open-cluster-management.io/a": "*"}
	}, []string{invalid + "metadata.labels"}},
	"a colon in a label": {func(c *cluster.ManagedCluster) {
		c.Labels = map[string]string{"info.open-cluster-management.io/a:b": "c"}
	}, []string{invalid + "metadata.labels"}},
	"huge annotations": {func(c *cluster.ManagedCluster) { c.Annotations = map[string]string{"a": strings.Repeat("x", 1<<18)} },
		[]string{tooLong + "metadata.annotations"}},

	"no url":           {reachedAt(""), badURL},
	"an http url":      {reachedAt("http://a"), badURL},
	"a url of no host": {reachedAt("https:///a"), badURL},
	"a broken url":     {reachedAt("https://a b%"), badURL},
	"a second bad url": {func(c *cluster.ManagedCluster) {
		c.Spec.ManagedClusterClientConfigs = append(c.Spec.ManagedClusterClientConfigs, cluster.ClientConfig{URL: "x"})
	}, []string{invalid + "spec.managedClusterClientConfigs[1].url"}},
	"a url with a path": {change: reachedAt("https://[::1]:1/k8s?x")},

	"no taint key": {tainted(func(t *cluster.Taint) { t.Key = "" }),
		[]string{required + "spec.taints[0].key"}},
	"a bad taint key": {tainted(func(t *cluster.Taint) { t.Key = "A.com/x" }),
		[]string{invalid + "spec.taints[0].key"}},
	"two slashes in a key": {tainted(func(t *cluster.Taint) { t.Key = "a/b/c" }),
		[]string{invalid + "spec.taints[0].key"}},
	"a key that ends badly": {tainted(func(t *cluster.Taint) { t.Key = "a-" }),
		[]string{invalid + "spec.taints[0].key"}},
	"a key of two lines": {tainted(func(t *cluster.Taint) { t.Key = "a\n" }),
		[]string{invalid + "spec.taints[0].key"}},
	"the longest taint key": {change: tainted(func(t *cluster.Taint) { t.Key = strings.Repeat("x", 316) })},
	"a huge taint key": {tainted(func(t *cluster.Taint) { t.Key = strings.Repeat("x", 317) }),
		[]string{tooLong + "spec.taints[0].key"}},
	"no taint value":    {change: tainted(func(t *cluster.Taint) { t.Value = "" })},
	"the longest value": {change: tainted(func(t *cluster.Taint) { t.Value = strings.Repeat("x", 1024) })},
	"a huge taint value": {tainted(func(t *cluster.Taint) { t.Value = strings.Repeat("x", 1025) }),
		[]string{tooLong + "spec.taints[0].value"}},
	"no effect": {tainted(func(t *cluster.Taint) { t.Effect = "" }),
		[]string{required + "spec.taints[0].effect"}},
	"an unknown effect": {tainted(func(t *cluster.Taint) { t.Effect = "NoSchedule" }),
		[]string{unsupported + "spec.taints[0].effect"}},
	"all effects": {change: func(c *cluster.ManagedCluster) {
		c.Spec.Taints = []cluster.Taint{{Key: "a", Effect: "NoSelect"}, {Key: "a", Effect: "PreferNoSelect"}, {Key: "a", Effect: "NoSelectIfNew"}}
	}},
}

func TestValidateManagedCluster_New(t *testing.T) {
	for name, c := range clusterCases {
		t.Run(name, func(t *testing.T) {
			created := validCluster()
			c.change(created)
			wantErrors(t, boundstest.Created(t, scheme, created, ValidateManagedCluster), c.want...)
		})
	}
}

func TestValidateManagedCluster_Changed(t *testing.T) {
	for name, c := range clusterCases {
		t.Run(name, func(t *testing.T) {
			changed := validCluster()
			c.change(changed)
			wantErrors(t, boundstest.Updated(t, scheme, changed, validCluster(), ValidateManagedClusterUpdate), c.want...)
		})
	}
}

func TestValidateManagedCluster_NameIsDNSLabel(t *testing.T) {
	for name, valid := range map[string]bool{
		"c1": true, "1": true, "a-b": true, strings.Repeat("x", 63): true,
		"a.b": false, "A": false, "a_b": false, "-a": false, "a-": false, "*": false, "a/b": false,
		strings.Repeat("x", 64): false, "c:d": false, "ü": false,
		"work": false, "registration": false, "managed-clusters": false, "clusterhub-registration": false, "work-1": true, "default": true,
	} {
		// Upstream misses bad names of clusters without client configurations.
		for _, spec := range []cluster.ManagedClusterSpec{{}, validCluster().Spec} {
			errs := boundstest.Created(t, scheme, &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, ValidateManagedCluster)
			if valid {
				wantErrors(t, errs)
			} else {
				wantErrors(t, errs, invalid+"metadata.name")
			}
		}
	}
	wantErrors(t, boundstest.Created(t, scheme, &cluster.ManagedCluster{}, ValidateManagedCluster), required+"metadata.name")
	wantErrors(t, boundstest.Created(t, scheme, &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}}, ValidateManagedCluster),
		forbidden+"metadata.namespace")
}

func TestValidateManagedClusterUpdate_IdentityIsImmutable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster.ManagedCluster)
		want   string
	}{
		"name":    {func(c *cluster.ManagedCluster) { c.Name = "c2" }, invalid + "metadata.name"},
		"uid":     {func(c *cluster.ManagedCluster) { c.UID = types.UID("other") }, invalid + "metadata.uid"},
		"version": {func(c *cluster.ManagedCluster) { c.ResourceVersion = "" }, invalid + "metadata.resourceVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := validCluster()
			c.change(changed)
			wantErrors(t, boundstest.Updated(t, scheme, changed, validCluster(), ValidateManagedClusterUpdate), c.want)
			wantErrors(t, boundstest.Updated(t, scheme, changed, validCluster(), ValidateManagedClusterStatusUpdate), c.want)
		})
	}
}

func TestValidateManagedClusterStatusUpdate(t *testing.T) {
	status := func(s cluster.ManagedClusterStatus) field.ErrorList {
		changed := validCluster()
		changed.Status = s
		return boundstest.Updated(t, scheme, changed, validCluster(), ValidateManagedClusterStatusUpdate)
	}
	claims := func(name, value string) field.ErrorList {
		return status(cluster.ManagedClusterStatus{ClusterClaims: []cluster.ManagedClusterClaim{{Name: name, Value: value}}})
	}
	namespaces := func(ns ...cluster.ClusterSetManagedNamespaceConfig) field.ErrorList {
		return status(cluster.ManagedClusterStatus{ManagedNamespaces: ns})
	}
	for name, c := range map[string]struct {
		errs field.ErrorList
		want []string
	}{
		"a claim":                 {claims("a", "b"), nil},
		"the longest claim":       {claims(strings.Repeat("x", 253), strings.Repeat("x", 1024)), nil},
		"a claim without a name":  {claims("", "b"), []string{required + "status.clusterClaims[0].name"}},
		"a claim without a value": {claims("a", ""), []string{required + "status.clusterClaims[0].value"}},
		"a claim of a huge name": {claims(strings.Repeat("x", 254), "b"),
			[]string{tooLong + "status.clusterClaims[0].name"}},
		"a claim of a huge value": {claims("a", strings.Repeat("x", 1025)),
			[]string{tooLong + "status.clusterClaims[0].value"}},
		"a namespace": {namespaces(cluster.ClusterSetManagedNamespaceConfig{Name: "a", ClusterSet: "s"}), nil},
		"a namespace without name": {namespaces(cluster.ClusterSetManagedNamespaceConfig{ClusterSet: "s"}),
			[]string{required + "status.managedNamespaces[0].name"}},
		"a namespace without set": {namespaces(cluster.ClusterSetManagedNamespaceConfig{Name: "a"}),
			[]string{required + "status.managedNamespaces[0].clusterSet"}},
		"a namespace of two sets": {namespaces(
			cluster.ClusterSetManagedNamespaceConfig{Name: "a", ClusterSet: "s"}, cluster.ClusterSetManagedNamespaceConfig{Name: "a", ClusterSet: "t"}), nil},
		"a namespace twice": {namespaces(
			cluster.ClusterSetManagedNamespaceConfig{Name: "a", ClusterSet: "s"}, cluster.ClusterSetManagedNamespaceConfig{Name: "a", ClusterSet: "s"}),
			[]string{duplicate + "status.managedNamespaces[1]"}},
	} {
		t.Run(name, func(t *testing.T) { wantErrors(t, c.errs, c.want...) })
	}
	testConditions(t, "status.conditions", func(conditions []metav1.Condition) field.ErrorList {
		return status(cluster.ManagedClusterStatus{Conditions: conditions})
	})
	testConditions(t, "status.managedNamespaces[0].conditions", func(conditions []metav1.Condition) field.ErrorList {
		return namespaces(cluster.ClusterSetManagedNamespaceConfig{Name: "a", ClusterSet: "s", Conditions: conditions})
	})
}

// update prepares and validates the taints of a change as the strategy does.
func update(t *testing.T, taints, old []cluster.Taint, now time.Time) field.ErrorList {
	t.Helper()
	changed, before := validCluster(), validCluster()
	changed.Spec.Taints, before.Spec.Taints = taints, old
	PrepareTaints(changed.Spec.Taints, before.Spec.Taints, metav1.NewTime(now))
	return boundstest.Updated(t, scheme, changed, before, ValidateManagedClusterUpdate)
}

func TestTaints_ServerSetsTimeAdded(t *testing.T) {
	now, earlier := time.Unix(1_000_000, 123_456_789), metav1.Unix(500, 0)
	wire := metav1.Unix(1_000_000, 0)
	taint := func(key, value string, effect cluster.TaintEffect, added metav1.Time) cluster.Taint {
		return cluster.Taint{Key: key, Value: value, Effect: effect, TimeAdded: added}
	}
	var empty metav1.Time
	old := []cluster.Taint{taint("a", "v", "NoSelect", earlier), taint("a", "v", "PreferNoSelect", wire)}
	const refused = forbidden + "spec.taints"
	for name, c := range map[string]struct {
		old  []cluster.Taint
		sent cluster.Taint
		want metav1.Time
		err  bool
	}{
		"unchanged":                    {old: old, sent: taint("a", "v", "NoSelect", earlier), want: earlier},
		"unchanged, time left out":     {old: old, sent: taint("a", "v", "NoSelect", empty), want: earlier},
		"unchanged, second of its key": {old: old, sent: taint("a", "v", "PreferNoSelect", wire), want: wire},
		"unchanged, with another time": {old: old, sent: taint("a", "v", "NoSelect", wire), err: true},
		"new":                          {old: old, sent: taint("b", "v", "NoSelect", empty), want: wire},
		"new, with a time":             {old: old, sent: taint("b", "v", "NoSelect", earlier), err: true},
		"new, with the present": {old: old, sent: taint("b", "v", "NoSelect", metav1.NewTime(now)),
			err: true},
		"new, on a cluster without taints":  {sent: taint("b", "v", "NoSelect", empty), want: wire},
		"new, with a time, without taints":  {sent: taint("b", "v", "NoSelect", earlier), err: true},
		"another value":                     {old: old, sent: taint("a", "w", "NoSelect", empty), want: wire},
		"another value, with another time":  {old: old, sent: taint("a", "w", "NoSelect", metav1.Unix(501, 0)), err: true},
		"another effect":                    {old: old, sent: taint("a", "v", "NoSelectIfNew", empty), want: wire},
		"another effect, with another time": {old: old, sent: taint("a", "v", "NoSelectIfNew", metav1.Unix(501, 0)), err: true},
		"new, with the time of another":     {old: old, sent: taint("b", "v", "NoSelect", wire), err: true},
		// Server-side apply and strategic merge patches change what they name, and leave the time that is there.
		"another value, with the old time":   {old: old, sent: taint("a", "w", "NoSelect", earlier), want: wire},
		"another effect, with the old time":  {old: old, sent: taint("a", "v", "NoSelectIfNew", earlier), want: wire},
		"added just now, changed, time kept": {old: old[1:], sent: taint("a", "w", "PreferNoSelect", wire), want: wire},
	} {
		t.Run(name, func(t *testing.T) {
			sent := []cluster.Taint{c.sent}
			errs := update(t, sent, c.old, now)
			if c.err {
				wantErrors(t, errs, refused)
				if !strings.Contains(errs.ToAggregate().Error(),
					`It is not allowed to set TimeAdded of Taint "`+c.sent.Key+`".`) {
					t.Errorf("%v is not upstream's text", errs)
				}
				return
			}
			wantErrors(t, errs)
			if !sent[0].TimeAdded.Equal(&c.want) {
				t.Errorf("added at %v, want %v", sent[0].TimeAdded, c.want)
			}
		})
	}
	t.Run("the refusal names every taint", func(t *testing.T) {
		errs := update(t, []cluster.Taint{taint("x", "", "NoSelect", earlier), taint("y", "", "NoSelect", earlier)}, nil, now)
		if !strings.Contains(errs.ToAggregate().Error(), `"x,y"`) {
			t.Errorf("got %v", errs)
		}
	})
	t.Run("of a new cluster the client's times do not count", func(t *testing.T) {
		sent := []cluster.Taint{taint("a", "", "NoSelect", empty), taint("b", "", "NoSelect", earlier)}
		PrepareNewTaints(sent, metav1.NewTime(now))
		for _, got := range sent {
			if !got.TimeAdded.Equal(&wire) {
				t.Errorf("%s was added at %v", got.Key, got.TimeAdded)
			}
		}
	})
}

// There is one taint for each key and effect. Clusters that have more from before may keep them, and get fewer.
func TestTaints_OncePerKeyAndEffect(t *testing.T) {
	taint := func(value string, effect cluster.TaintEffect) cluster.Taint {
		return cluster.Taint{Key: "a", Value: value, Effect: effect}
	}
	twice := []cluster.Taint{taint("v", "NoSelect"), taint("w", "NoSelect")}
	const refused = duplicate + "spec.taints"
	for name, c := range map[string]struct {
		old, sent []cluster.Taint
		want      []string
	}{
		"other effects":           {sent: []cluster.Taint{taint("v", "NoSelect"), taint("v", "NoSelectIfNew")}},
		"twice":                   {sent: twice, want: []string{refused + "[1]"}},
		"one becomes two":         {old: twice[:1], sent: twice, want: []string{refused + "[1]"}},
		"two from before":         {old: twice, sent: twice},
		"two, with another value": {old: twice, sent: []cluster.Taint{taint("x", "NoSelect"), taint("w", "NoSelect")}},
		"two become one":          {old: twice, sent: twice[1:]},
		"two become three":        {old: twice, sent: append([]cluster.Taint{taint("x", "NoSelect")}, twice...), want: []string{refused + "[2]"}},
	} {
		// The times of taints are set in place, and the cases share some.
		t.Run(name, func(t *testing.T) {
			wantErrors(t, update(t, slices.Clone(c.sent), slices.Clone(c.old), time.Unix(1, 0)), c.want...)
		})
	}
	created := validCluster()
	created.Spec.Taints = twice
	wantErrors(t, boundstest.Created(t, scheme, created, ValidateManagedCluster), refused+"[1]")
	created.Spec.Taints = []cluster.Taint{taint("v", "NoSelect"), taint("v", "NoSelectIfNew"), taint("v", "PreferNoSelect"), {Key: "b", Effect: "NoSelect"}}
	if got := TaintWarnings(created); len(got) != 1 || !strings.Contains(got[0], "the key a.") {
		t.Errorf("the warnings are %q", got)
	}
}

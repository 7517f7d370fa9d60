// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

func setWith(s cluster.ManagedClusterSelector) *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{ObjectMeta: stored("s1"), Spec: cluster.ManagedClusterSetSpec{ClusterSelector: s}}
}

func exclusive(key, value string) cluster.ManagedClusterSelector {
	return cluster.ManagedClusterSelector{
		SelectorType: cluster.ExclusiveLabel, ExclusiveLabel: &cluster.ManagedClusterLabel{Key: key, Value: value},
	}
}

func matching(s *metav1.LabelSelector) cluster.ManagedClusterSelector {
	return cluster.ManagedClusterSelector{SelectorType: cluster.LabelSelector, LabelSelector: s}
}

func requirement(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: operator, Values: values}}}
}

const (
	selectorPath  = "spec.clusterSelector"
	exclusivePath = selectorPath + ".exclusiveLabel"
	labelsPath    = selectorPath + ".labelSelector"
	info          = "info.open-cluster-management.io/"
)

func TestValidateManagedClusterSet_Selector(t *testing.T) {
	label, labels := &cluster.ManagedClusterLabel{Key: info + "a", Value: "b"}, &metav1.LabelSelector{}
	for name, c := range map[string]struct {
		selector cluster.ManagedClusterSelector
		want     []string
	}{
		"by name": {selector: cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel}},
		"by name, with an exclusive label": {cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel, ExclusiveLabel: label},
			[]string{forbidden + exclusivePath}},
		"by name, with a selector": {cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel, LabelSelector: labels},
			[]string{forbidden + labelsPath}},
		"by name, with both": {cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel, ExclusiveLabel: label, LabelSelector: labels},
			[]string{forbidden + exclusivePath, forbidden + labelsPath}},

		"an unknown type": {cluster.ManagedClusterSelector{SelectorType: "Random"},
			[]string{unsupported + selectorPath + ".selectorType"}},
		"a type in lower case": {cluster.ManagedClusterSelector{SelectorType: "labelSelector", LabelSelector: labels},
			[]string{unsupported + selectorPath + ".selectorType", forbidden + labelsPath}},

		"info label":           {selector: exclusive(info+"region", "apac")},
		"cluster label":        {selector: exclusive("cluster.open-cluster-management.io/team", "a_b.C-1")},
		"the clusterset label": {selector: exclusive(cluster.ClusterSetLabel, "another")},
		"the longest label":    {selector: exclusive(info+strings.Repeat("x", 63), strings.Repeat("x", 63))},
		"no label": {cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveLabel},
			[]string{required + exclusivePath}},
		"a label of another prefix": {exclusive("example.com/region", "apac"),
			[]string{invalid + exclusivePath + ".key"}},
		"a label of no prefix": {exclusive("region", "apac"), []string{invalid + exclusivePath + ".key"}},
		"a longer prefix": {exclusive("x."+info+"region", "apac"),
			[]string{invalid + exclusivePath + ".key"}},
		"a prefix alone": {exclusive(info, "apac"),
			[]string{invalid + exclusivePath + ".key", invalid + exclusivePath + ".key"}},
		"a bad name":       {exclusive(info+"a b", "apac"), []string{invalid + exclusivePath + ".key"}},
		"a path as a name": {exclusive(info+"../x", "apac"), []string{invalid + exclusivePath + ".key"}},
		"a huge name": {exclusive(info+strings.Repeat("x", 64), "apac"),
			[]string{invalid + exclusivePath + ".key"}},
		"no key":            {exclusive("", "apac"), []string{required + exclusivePath + ".key"}},
		"no value":          {exclusive(info+"a", ""), []string{required + exclusivePath + ".value"}},
		"a wildcard value":  {exclusive(info+"a", "*"), []string{invalid + exclusivePath + ".value"}},
		"a path as a value": {exclusive(info+"a", "../x"), []string{invalid + exclusivePath + ".value"}},
		"a huge value": {exclusive(info+"a", strings.Repeat("x", 64)),
			[]string{invalid + exclusivePath + ".value"}},
		"a bad key and a bad value": {exclusive("region", "a/b"),
			[]string{invalid + exclusivePath + ".key", invalid + exclusivePath + ".value"}},
		"a label and a selector": {cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveLabel, ExclusiveLabel: label, LabelSelector: labels},
			[]string{forbidden + labelsPath}},

		"nothing":      {selector: matching(nil)},
		"everything":   {selector: matching(labels)},
		"labels":       {selector: matching(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "b", info + "c": ""}})},
		"In":           {selector: matching(requirement(metav1.LabelSelectorOpIn, "a", "b"))},
		"NotIn":        {selector: matching(requirement(metav1.LabelSelectorOpNotIn, "a"))},
		"Exists":       {selector: matching(requirement(metav1.LabelSelectorOpExists))},
		"DoesNotExist": {selector: matching(requirement(metav1.LabelSelectorOpDoesNotExist))},
		"In nothing": {matching(requirement(metav1.LabelSelectorOpIn)),
			[]string{required + labelsPath + ".matchExpressions[0].values"}},
		"Exists with a value": {matching(requirement(metav1.LabelSelectorOpExists, "a")),
			[]string{forbidden + labelsPath + ".matchExpressions[0].values"}},
		"an unknown operator": {matching(requirement("Near", "a")),
			[]string{invalid + labelsPath + ".matchExpressions[0].operator"}},
		"a bad value": {matching(requirement(metav1.LabelSelectorOpIn, "a", "b c")),
			[]string{invalid + labelsPath + ".matchExpressions[0].values[1]"}},
		"a bad match label": {matching(&metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}),
			[]string{invalid + labelsPath + ".matchLabels"}},
		"a huge match label": {matching(&metav1.LabelSelector{MatchLabels: map[string]string{"a": strings.Repeat("x", 1<<16)}}),
			[]string{invalid + labelsPath + ".matchLabels"}},
		"labels and an exclusive one": {cluster.ManagedClusterSelector{SelectorType: cluster.LabelSelector, ExclusiveLabel: label, LabelSelector: labels},
			[]string{forbidden + exclusivePath}},
	} {
		t.Run(name, func(t *testing.T) {
			wantErrors(t, boundstest.Created(t, scheme, setWith(c.selector), ValidateManagedClusterSet), c.want...)
			wantErrors(t, boundstest.Updated(t, scheme, setWith(c.selector), setWith(cluster.ManagedClusterSelector{}), ValidateManagedClusterSetUpdate), c.want...)
		})
	}
}

func TestValidateManagedClusterSet_Name(t *testing.T) {
	byName := cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel}
	long := strings.Repeat("x", 64)
	for _, c := range []struct {
		name     string
		selector cluster.ManagedClusterSelector
		want     []string
	}{
		{"a.b-c", byName, nil},
		{long, matching(nil), nil},
		{long, exclusive(info+"a", "b"), nil},
		// It is the value of a label, which can be no longer than 63.
		{long, byName, []string{invalid + "metadata.name"}},
		{"A_b", matching(nil), []string{invalid + "metadata.name"}},
		{"a/b", matching(nil), []string{invalid + "metadata.name"}},
		{"*", byName, []string{invalid + "metadata.name", invalid + "metadata.name"}},
		{"", matching(nil), []string{required + "metadata.name"}},
	} {
		set := setWith(c.selector)
		set.Name = c.name
		wantErrors(t, boundstest.Created(t, scheme, set, ValidateManagedClusterSet), c.want...)
	}
	renamed := setWith(byName)
	renamed.Name = "s2"
	wantErrors(t, boundstest.Updated(t, scheme, renamed, setWith(byName), ValidateManagedClusterSetUpdate), invalid+"metadata.name")
}

func TestValidateManagedClusterSet_ManagedNamespaces(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"a", "b"}, nil},
		{[]string{"a", "a"}, []string{duplicate + "spec.managedNamespaces[1]"}},
		{[]string{"A"}, []string{invalid + "spec.managedNamespaces[0].name"}},
		{[]string{"a", "x.y"}, []string{invalid + "spec.managedNamespaces[1].name"}},
		{[]string{strings.Repeat("x", 64)}, []string{tooLong + "spec.managedNamespaces[0].name"}},
	} {
		set := setWith(matching(nil))
		for _, name := range c.names {
			set.Spec.ManagedNamespaces = append(set.Spec.ManagedNamespaces, cluster.ManagedNamespaceConfig{Name: name})
		}
		wantErrors(t, boundstest.Created(t, scheme, set, ValidateManagedClusterSet), c.want...)
	}
}

func TestValidateManagedClusterSetStatusUpdate(t *testing.T) {
	testConditions(t, "status.conditions", func(conditions []metav1.Condition) field.ErrorList {
		changed := setWith(matching(nil))
		changed.Status.Conditions = conditions
		return boundstest.Updated(t, scheme, changed, setWith(matching(nil)), ValidateManagedClusterSetStatusUpdate)
	})
}

func binding(name, set string) *cluster.ManagedClusterSetBinding {
	b := &cluster.ManagedClusterSetBinding{ObjectMeta: stored(name), Spec: cluster.ManagedClusterSetBindingSpec{ClusterSet: set}}
	b.Namespace = "ns"
	return b
}

func TestValidateManagedClusterSetBinding_NameMatchesSet(t *testing.T) {
	for _, c := range []struct{ name, set, want string }{
		{"dev", "dev", ""},
		{"a.b", "a.b", ""},
		{"dev", "", required + "spec.clusterSet"},
		{"dev", "qa", invalid + "spec.clusterSet"},
		{"Dev", "Dev", invalid + "metadata.name"},
	} {
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		wantErrors(t, boundstest.Created(t, scheme, binding(c.name, c.set), ValidateManagedClusterSetBinding), want...)
	}
	unnamespaced := binding("dev", "dev")
	unnamespaced.Namespace = ""
	wantErrors(t, boundstest.Created(t, scheme, unnamespaced, ValidateManagedClusterSetBinding), required+"metadata.namespace")
}

func TestValidateManagedClusterSetBindingUpdate_SetIsImmutable(t *testing.T) {
	wantErrors(t, boundstest.Updated(t, scheme, binding("dev", "dev"), binding("dev", "dev"), ValidateManagedClusterSetBindingUpdate))
	wantErrors(t, boundstest.Updated(t, scheme, binding("dev", "qa"), binding("dev", "dev"), ValidateManagedClusterSetBindingUpdate), invalid+"spec.clusterSet")
	wantErrors(t, boundstest.Updated(t, scheme, binding("dev", ""), binding("dev", "dev"), ValidateManagedClusterSetBindingUpdate), required+"spec.clusterSet")
	wantErrors(t, boundstest.Updated(t, scheme, binding("qa", "dev"), binding("dev", "dev"), ValidateManagedClusterSetBindingUpdate), invalid+"metadata.name")
}

func TestValidateManagedClusterSetBindingStatusUpdate(t *testing.T) {
	testConditions(t, "status.conditions", func(conditions []metav1.Condition) field.ErrorList {
		changed := binding("dev", "dev")
		changed.Status.Conditions = conditions
		return boundstest.Updated(t, scheme, changed, binding("dev", "dev"), ValidateManagedClusterSetBindingStatusUpdate)
	})
}

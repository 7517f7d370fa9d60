// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterlabel

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
)

// labelsOf parses labels as key=value, separated by spaces. It returns nil if the API would reject them.
func labelsOf(text string) map[string]string {
	labels := map[string]string{}
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		if len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0 {
			return nil
		}
		labels[key] = value
	}
	return labels
}

// FuzzPermissionNames: no two labels have the same permission, and none has the name of a permission on several labels.
func FuzzPermissionNames(f *testing.F) {
	for _, pair := range [][2]string{
		{teamKey + "=a", teamKey + "=a"}, {teamKey + "=a", teamKey + "="}, {teamKey + "=", teamKey}, {"a=b:c", "a:b=c"}, {teamKey + "=*", "a=b"},
		{teamKey + "=a=b", teamKey + "=a"}, {"*=", "*"}, {"a/b=c", "b=c"}, {setKey + "=A", setKey + "=a"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		a, b := labelsOf(one), labelsOf(two)
		if len(a) != 1 || len(b) != 1 {
			return
		}
		for key, value := range a {
			mine := label{key, value}
			for key, value := range b {
				other := label{key, value}
				if (mine.name() == other.name()) != (mine == other) {
					t.Errorf("%v and %v are both %q", mine, other, mine.name())
				}
				if slices.Contains([]string{"*", other.key + ":*"}, mine.name()) || strings.Count(mine.name(), ":") != 1 {
					t.Errorf("%v is %q, which is a permission on several", mine, mine.name())
				}
			}
		}
	})
}

// FuzzValidate: a change of labels is admitted if and only if the user has a permission on each reserved label that is added or removed. Other labels
// are not checked.
func FuzzValidate(f *testing.F) {
	f.Add("", teamKey+"=a", uint8(0), false)
	f.Add(teamKey+"=a", teamKey+"=b env=x", uint8(0), false)
	f.Add(teamKey+"=a "+regionKey+"=apac", "env=y", uint8(1), true)
	f.Add(setKey+"=a "+teamKey+"=", setKey+"=b "+teamKey+"=a", uint8(2), false)
	f.Add(teamKey+"=a cluster.open-cluster-management.io/Team=a", teamKey+"=b", uint8(3), true)
	f.Add("x.cluster.open-cluster-management.io/team=a", "cluster.open-cluster-management.io.evil/team=a cluster.open-cluster-management.io=b", uint8(0), false)
	f.Fuzz(func(t *testing.T, before, after string, choice uint8, status bool) {
		had, has := labelsOf(before), labelsOf(after)
		if had == nil || has == nil {
			return
		}
		// These are the changes according to the documentation.
		var moved []label
		reserved := func(key string) bool {
			domain, _, ok := strings.Cut(key, "/")
			return ok && (domain == "cluster.open-cluster-management.io" || domain == "info.open-cluster-management.io")
		}
		for key, value := range had {
			if now, stays := has[key]; reserved(key) && (!stays || now != value) {
				moved = append(moved, label{key, value})
			}
		}
		for key, value := range has {
			if was, there := had[key]; reserved(key) && (!there || was != value) {
				moved = append(moved, label{key, value})
			}
		}
		slices.SortFunc(moved, func(a, b label) int { return strings.Compare(a.name(), b.name()) })
		if len(moved) > maxChanges {
			return
		}
		old, updated := at.Cluster("c1"), at.Cluster("c1")
		old.Labels, updated.Labels = maps.Clone(had), maps.Clone(has)
		request := at.Request{Object: updated, Old: old}
		if status {
			request.Subresource = "status"
		}

		var names []string
		for i, l := range moved {
			names = append(names, l.spellings()[(int(choice)+i)%2]) // one label, or all of its key
		}
		a := &at.Authorizer{Grants: at.Labels(names...)}
		if _, err := at.Validate(t, pluginFor(a), request.Attributes()); err != nil {
			t.Errorf("%q to %q with %q: %v", before, after, names, err)
		}
		if len(moved) == 0 && len(a.Asked) > 0 || len(a.Odd) > 0 {
			t.Errorf("%q to %q asks for %q, %v", before, after, a.Names(), a.Odd)
		}
		if len(moved) == 0 {
			return
		}
		lacked := moved[int(choice)%len(moved)]
		var rest []string
		for _, l := range moved {
			if l != lacked {
				rest = append(rest, l.name())
			}
		}
		if _, err := at.Validate(t, pluginFor(&at.Authorizer{Grants: at.Labels(rest...)}), request.Attributes()); !apierrors.IsForbidden(err) {
			t.Errorf("%q to %q without %q: %v, want a 403", before, after, lacked.name(), err)
		}
	})
}

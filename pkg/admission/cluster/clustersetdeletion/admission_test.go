// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetdeletion

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

type counter func(ctx context.Context, set string) (members, bindings int, err error)

func (f counter) Uses(ctx context.Context, set string) (int, int, error) { return f(ctx, set) }

// uses reports every set but "unused" as in use.
func uses(_ context.Context, set string) (int, int, error) {
	if set == "unused" {
		return 0, 0, nil
	}
	return 3, 2, nil
}

func deletion(resource, name string, old runtime.Object) admission.Attributes {
	gv := cluster.SchemeGroupVersion.WithResource(resource)
	gv.Version = "v1beta2"
	return admission.NewAttributesRecord(nil, old, gv.GroupVersion().WithKind("x"), "", name, gv, "",
		admission.Delete, &metav1.DeleteOptions{}, false, at.User)
}

func set(name string) *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func warn(t *testing.T, c Counter, a admission.Attributes) at.Warnings {
	t.Helper()
	p := New()
	p.Counter = c
	if !p.Handles(a.GetOperation()) {
		t.Fatalf("does not handle %s", a.GetOperation())
	}
	var warnings at.Warnings
	if err := p.Validate(warning.WithWarningRecorder(t.Context(), &warnings), a, nil); err != nil {
		t.Fatalf("refused: %v", err)
	}
	return warnings
}

func TestValidate_WarnsOfMembersAndBindings(t *testing.T) {
	for name, a := range map[string]admission.Attributes{
		"one set":                     deletion("managedclustersets", "dev", set("dev")),
		"one of a collection of sets": deletion("managedclustersets", "", set("dev")),
	} {
		warnings := warn(t, counter(uses), a)
		if len(warnings) != 1 {
			t.Errorf("%s: got %q, want one warning", name, warnings)
			continue
		}
		for _, want := range []string{`"dev"`, "3 member(s)", "2 binding(s)"} {
			if !strings.Contains(warnings[0], want) {
				t.Errorf("%s: %q does not say %s", name, warnings[0], want)
			}
		}
	}
}

func TestValidate_WarnsOfMembersOrBindings(t *testing.T) {
	for _, c := range [][2]int{{1, 0}, {0, 1}} {
		one := counter(func(context.Context, string) (int, int, error) { return c[0], c[1], nil })
		if warnings := warn(t, one, deletion("managedclustersets", "dev", set("dev"))); len(warnings) != 1 {
			t.Errorf("%v: got %q", c, warnings)
		}
	}
}

func TestValidate_UnusedSet(t *testing.T) {
	for name, a := range map[string]admission.Attributes{
		"an unused set":    deletion("managedclustersets", "unused", set("unused")),
		"a cluster":        deletion("managedclusters", "dev", at.Cluster("dev")),
		"a binding":        deletion("managedclustersetbindings", "dev", &cluster.ManagedClusterSetBinding{}),
		"a collection":     deletion("managedclustersets", "", nil),
		"an unnamed thing": deletion("managedclustersets", "", at.Cluster("dev")),
	} {
		if warnings := warn(t, counter(uses), a); len(warnings) > 0 {
			t.Errorf("%s: warned %q", name, warnings)
		}
	}
}

func TestValidate_AllowsDeletionWithoutCounts(t *testing.T) {
	fails := counter(func(ctx context.Context, _ string) (int, int, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("counts without a deadline")
		}
		return 3, 2, errors.New("not ready")
	})
	for name, c := range map[string]Counter{"no counter": nil, "an error": fails} {
		if warnings := warn(t, c, deletion("managedclustersets", "dev", set("dev"))); len(warnings) > 0 {
			t.Errorf("%s: warned %q", name, warnings)
		}
	}
}

func TestHandles_DeletionsOnly(t *testing.T) {
	for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Connect} {
		if New().Handles(operation) {
			t.Errorf("handles %s", operation)
		}
	}
}

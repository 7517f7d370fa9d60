// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// TestTellUpdates: observers get each written update once, by whatever route it was written.
func TestTellUpdates(t *testing.T) {
	s := newStorage(t)
	var told [][2]string
	s.OnUpdate(func(_ context.Context, updated, old runtime.Object) {
		told = append(told, [2]string{old.(*cluster.ManagedCluster).Labels["env"], updated.(*cluster.ManagedCluster).Labels["env"]})
	})
	c := registrytest.Create(t, registrytest.Context(s), s, validCluster())
	write := func(by rest.Updater, subresource, env string, dryRun ...string) error {
		stored, err := s.Get(registrytest.Context(s), c.Name, &metav1.GetOptions{})
		if err != nil {
			return err
		}
		changed := stored.(*cluster.ManagedCluster).DeepCopy()
		metav1.SetMetaDataLabel(&changed.ObjectMeta, "env", env)
		ctx := registrytest.Context(s)
		if subresource != "" {
			ctx = registrytest.Context(s, subresource)
		}
		_, _, err = by.Update(ctx, changed.Name, rest.DefaultUpdatedObjectInfo(changed), rest.ValidateAllObjectFunc,
			rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
		return err
	}
	if len(told) > 0 {
		t.Errorf("a create is told of: %v", told)
	}
	if err := write(s, "", "a"); err != nil {
		t.Fatal(err)
	}
	if err := write(s.Subresources["label"], "label", "b"); err != nil {
		t.Fatal(err)
	}
	if err := write(s, "", "c", metav1.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := write(s, "", "no/label"); err == nil {
		t.Error("what is invalid is written")
	}
	if len(told) != 2 || told[0][1] != "a" || told[1] != [2]string{"a", "b"} {
		t.Errorf("told of %q, want the first two", told)
	}
}

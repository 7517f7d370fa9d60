// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// interrupted is a driver. A function runs during its first grant.
type interrupted struct {
	*cloud
	by func()
}

func (d *interrupted) Grant(ctx context.Context, cluster string, record driver.Record) error {
	if d.by != nil {
		d.by()
		d.by = nil
	}
	return d.cloud.Grant(ctx, cluster, record)
}

// Concurrent writes to a cluster while it is being accepted cause no second attempt, unless it must not be accepted any more.
func TestAccept_UsesCurrentVersionForCondition(t *testing.T) {
	for what, test := range map[string]struct {
		change   func(*clusterv1.ManagedCluster)
		accepted bool
	}{
		"a taint": {func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = []clusterv1.Taint{{Key: registration.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect}}
		}, true},
		"a denial": {deny, false},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t, newCluster("c1"))
			f.drivers = func() driver.Drivers {
				return driver.Drivers{&interrupted{f.cloud, func() { f.change("c1", test.change) }}}
			}
			f.restart()
			if _, err := f.reconcile("c1"); err != nil {
				t.Fatal(err)
			}
			if got := meta.IsStatusConditionTrue(f.cluster("c1").Status.Conditions, registration.ConditionHubAccepted); got != test.accepted {
				t.Errorf("the cluster is said to be accepted: %t, want %t", got, test.accepted)
			}
		})
	}
}

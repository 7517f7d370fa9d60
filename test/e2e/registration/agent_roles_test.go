// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	clusterclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/cluster/v1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// byCRD makes kube-apiserver serve an additional version of the clusters' API group.
const byCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: others.cluster.open-cluster-management.io},
	spec: {group: cluster.open-cluster-management.io, scope: Cluster, names: {plural: others, singular: other, kind: Other, listKind: OtherList},
	versions: [{name: v1alpha9, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`

// roled is a hub with either mode of agents' roles, and the agent of an accepted cluster.
type roled struct {
	*localhub.Instance
	name  string
	agent clusterclient.ManagedClusterInterface
}

// inMode sets the mode of agents' roles.
func inMode(mode string) func(*localhub.Options) {
	return func(c *localhub.Options) {
		c.Components, c.HubControllerManagerArgs = []string{agentroles.PerClusterComponent}, []string{"--agent-roles=" + mode}
	}
}

// use restarts hub-controller-manager in a mode.
func (r *roled) use(t *testing.T, mode string) {
	t.Helper()
	r.Instance = control(t, r.Instance, inMode(mode))
}

// awaits waits until the cluster has or lacks a role of its own, and all agents have or lack the shared role.
func (r *roled) awaits(t *testing.T, own, shared bool) {
	t.Helper()
	rbac := harness.Kube(t, r.AdminConfig()).RbacV1()
	harness.Eventually(t, fmt.Sprintf("a role of its own: %t, the shared one: %t", own, shared), func(ctx context.Context) (bool, error) {
		role := harness.ErrorOf(rbac.ClusterRoles().Get(ctx, registration.ClusterRole(r.name), metav1.GetOptions{}))
		bound := harness.ErrorOf(rbac.ClusterRoleBindings().Get(ctx, registration.ClusterRole(r.name), metav1.GetOptions{}))
		all := harness.ErrorOf(rbac.ClusterRoleBindings().Get(ctx, agentroles.ClusterRole, metav1.GetOptions{}))
		for _, c := range []struct {
			err  error
			want bool
		}{{role, own}, {bound, own}, {all, shared}} {
			if (c.err == nil) != c.want || c.err != nil && !apierrors.IsNotFound(c.err) {
				return false, fmt.Errorf("role: %v, binding: %v, shared binding: %v", role, bound, all)
			}
		}
		return true, nil
	})
}

// get makes the requests of the agent.
func (r *roled) get(ctx context.Context) error {
	return harness.ErrorOf(r.agent.Get(ctx, r.name, metav1.GetOptions{}))
}

// meanwhile runs do while the agent makes requests, and fails the test if one of these is refused.
func (r *roled) meanwhile(t *testing.T, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			if err := r.get(ctx); apierrors.IsForbidden(err) || ctx.Err() == nil && err != nil {
				ended <- fmt.Errorf("request %d: %w", n, err)
				return
			}
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-time.After(10 * time.Millisecond): // the interval of the requests
			}
		}
	}()
	do()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAgentRoles_ChangeWithoutGap switches from one role per cluster to one role for all clusters, and back. In between, a version of the group
// appears that hub-apiserver does not serve, for which the shared role is not safe.
func TestAgentRoles_ChangeWithoutGap(t *testing.T) {
	r := &roled{Instance: controlled(t, inMode(agentroles.PerCluster)), name: "c1"}
	clusters := harness.Ours(t, r.AdminConfig()).ClusterV1().ManagedClusters()
	harness.Must(clusters.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: r.name},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}, metav1.CreateOptions{}))(t)
	r.awaits(t, true, false)
	config := r.UserConfig(registration.ClusterUser(r.name, "a"), registration.ClusterGroup(r.name), registration.ManagedClustersGroup, "system:authenticated")
	config.QPS = -1
	r.agent = harness.Ours(t, config).ClusterV1().ManagedClusters()
	agent := func(let bool) {
		t.Helper()
		harness.Eventually(t, fmt.Sprintf("the front lets the agent in: %t", let), func(ctx context.Context) (bool, error) {
			err := r.get(ctx)
			if let {
				return err == nil, err
			}
			return apierrors.IsForbidden(err), nil
		})
	}
	agent(true)
	r.meanwhile(t, func() {
		r.use(t, agentroles.Shared)
		r.awaits(t, false, true)
	})

	harness.MustKubectlOf(t, r.Instance, byCRD, "apply", "-f", "-")
	r.awaits(t, false, false)
	agent(false)
	harness.MustKubectlOf(t, r.Instance, byCRD, "delete", "-f", "-")
	r.awaits(t, false, true)
	agent(true)

	r.meanwhile(t, func() {
		r.use(t, agentroles.PerCluster)
		r.awaits(t, true, false)
	})
}

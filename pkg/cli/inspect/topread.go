// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/inspect/tree"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// listClusterUses returns the values that clusters are compared by. It keeps a row for each cluster, and two pages of objects, in memory. The notes
// list what was not visible.
func listClusterUses(ctx context.Context, h *kit.HubClient) (uses map[string]*tree.ClusterUse, notes []string, err error) {
	uses, err = kit.Reach(h, func(c kit.ManagedClusters) (map[string]*tree.ClusterUse, error) {
		found := map[string]*tree.ClusterUse{}
		return found, paging.EachItem(ctx, c.List, metav1.ListOptions{}, func(c *clusterv1.ManagedCluster) error {
			found[c.Name] = tree.UseOf(c)
			return nil
		})
	})
	if apierrors.IsForbidden(err) {
		// Users who may get a set may list its members.
		denied := err
		uses, notes = map[string]*tree.ClusterUse{}, []string{fmt.Sprintf("Not seen: the clusters themselves, except for the data of the members of sets: %s", why(denied))}
		err = h.EachMember(ctx, fields.Everything(), func(m *viewv1alpha1.ClusterSetMember) { uses[m.Spec.Cluster] = tree.UseOfMember(m) })
		if err == nil && len(uses) == 0 {
			err = denied
		}
	}
	if err != nil {
		return nil, nil, err
	}
	for _, part := range []struct {
		what string
		read func(context.Context, *kit.HubClient, map[string]*tree.ClusterUse) error
	}{{"when agents last renewed their leases", addLeases}, {"the number of works", addWorkCounts}} {
		err := part.read(ctx, h, uses)
		switch {
		case hidden(err):
			notes = append(notes, fmt.Sprintf("Not seen: %s: %s", part.what, why(err)))
		case err != nil:
			return nil, nil, err
		}
	}
	return uses, notes, nil
}

// hubVersion returns the version of hub-apiserver from its Deployment, or "" if the user may not get it.
func hubVersion(ctx context.Context, h *kit.HubClient) string {
	d, err := h.Kube.AppsV1().Deployments(deploy.ManagerNamespace).Get(ctx, "hub-apiserver", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return doctor.VersionOf(d)
}

func addLeases(ctx context.Context, h *kit.HubClient, uses map[string]*tree.ClusterUse) error {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", registration.LeaseName).String()}
	return paging.EachItem(ctx, h.Kube.CoordinationV1().Leases(metav1.NamespaceAll).List, options, func(lease *coordinationv1.Lease) error {
		if u := uses[lease.Namespace]; u != nil && lease.Spec.RenewTime != nil {
			u.Renewed = &metav1.Time{Time: lease.Spec.RenewTime.Time}
		}
		return nil
	})
}

// addWorkCounts reads only the metadata of works: the works themselves may be large.
func addWorkCounts(ctx context.Context, h *kit.HubClient, uses map[string]*tree.ClusterUse) error {
	client, err := metadata.NewForConfig(h.Config)
	if err != nil {
		return fmt.Errorf("configuring the connection to the hub: %w", err)
	}
	counts := map[string]int{}
	works := client.Resource(workv1.SchemeGroupVersion.WithResource("manifestworks"))
	err = paging.EachItem(ctx, works.List, metav1.ListOptions{}, func(w *metav1.PartialObjectMetadata) error {
		counts[w.Namespace]++
		return nil
	})
	if err != nil {
		return err
	}
	for name, u := range uses {
		n := counts[name]
		u.Works = &n
	}
	return nil
}

// listSetUses counts the members of the sets that the user may get. Sets without members are only included if the user may list sets.
func listSetUses(ctx context.Context, h *kit.HubClient) (map[string]*tree.SetUse, error) {
	uses := map[string]*tree.SetUse{}
	list, err := h.ListSets(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if err == nil {
		for i := range list.Items {
			uses[list.Items[i].Name] = &tree.SetUse{Name: list.Items[i].Name}
		}
	}
	return uses, h.EachMember(ctx, fields.Everything(), func(m *viewv1alpha1.ClusterSetMember) {
		if uses[m.Spec.ClusterSet] == nil {
			uses[m.Spec.ClusterSet] = &tree.SetUse{Name: m.Spec.ClusterSet}
		}
		uses[m.Spec.ClusterSet].Count(m)
	})
}

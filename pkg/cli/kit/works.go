// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
)

// WorkNames completes the works of all clusters.
func WorkNames(ctx context.Context, h *HubClient) (names []string, err error) {
	list, err := h.Clusters.WorkV1().ManifestWorks(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: MaxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ListWorks lists the works on some clusters or on all, or those of a name, ordered by cluster and name.
func (h *HubClient) ListWorks(ctx context.Context, clusters []string, name string) ([]workv1.ManifestWork, error) {
	if len(clusters) == 0 {
		clusters = []string{metav1.NamespaceAll}
	}
	all, options := []workv1.ManifestWork{}, metav1.ListOptions{}
	if name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	for _, cluster := range clusters {
		found, err := paging.List(ctx, h.Clusters.WorkV1().ManifestWorks(cluster).List, options)
		if err != nil {
			return nil, err
		}
		all = append(all, found.Items...)
	}
	for i := range all {
		all[i].TypeMeta = metav1.TypeMeta{APIVersion: workv1.SchemeGroupVersion.String(), Kind: "ManifestWork"}
	}
	return all, nil
}

// NoWorkError returns the error for a name that no cluster has a work of.
func NoWorkError(name string) error {
	return errors.New("there is no work " + name + " on the given clusters that you may see: kubectl hub get works shows all. The works of a ManifestWorkReplicaSet have longer names, which start with its name")
}

// WorksOfReplicaSet selects the works and the revisions of a set.
func WorksOfReplicaSet(set *workv1alpha1.ManifestWorkReplicaSet) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: work.ReplicaSetLabel + "=" + set.Namespace + "." + set.Name}
}

// Decision is a chosen cluster.
type Decision struct {
	v1beta1.ClusterDecision
	Group string
}

// ListDecisions returns the decisions of each placement of a namespace, or of one placement, in the order of their groups and numbers.
func (h *HubClient) ListDecisions(ctx context.Context, namespace string, of []string) (map[types.NamespacedName][]Decision, error) {
	options := metav1.ListOptions{LabelSelector: v1beta1.PlacementLabel}
	if len(of) == 1 {
		options.LabelSelector += "=" + of[0]
	}
	list, err := paging.List(ctx, h.Clusters.ClusterV1beta1().PlacementDecisions(namespace).List, options)
	if err != nil {
		return nil, err
	}
	// The numbers at the end of the names continue across groups.
	slices.SortFunc(list.Items, func(a, b v1beta1.PlacementDecision) int {
		if d := len(a.Name) - len(b.Name); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	decided := map[types.NamespacedName][]Decision{}
	for i := range list.Items {
		d := &list.Items[i]
		group := d.Labels[v1beta1.DecisionGroupIndexLabel]
		if name := d.Labels[v1beta1.DecisionGroupNameLabel]; name != "" {
			group += " (" + name + ")"
		}
		key := types.NamespacedName{Namespace: d.Namespace, Name: d.Labels[v1beta1.PlacementLabel]}
		for j := range d.Status.Decisions {
			decided[key] = append(decided[key], Decision{d.Status.Decisions[j], group})
		}
	}
	return decided, nil
}

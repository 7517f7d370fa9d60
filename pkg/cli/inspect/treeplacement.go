// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/tree"
)

func (o *treeOptions) readPlacement(namespace, name string) func(context.Context, *treeReader) (*tree.Node, error) {
	return func(ctx context.Context, r *treeReader) (*tree.Node, error) {
		p, err := r.Clusters.ClusterV1beta1().Placements(namespace).Get(ctx, name, metav1.GetOptions{})
		if answers.IsMissing(err, "placements") {
			return nil, fmt.Errorf("there is no placement %s in the namespace %s: kubectl hub get placements -A shows all", name, namespace)
		}
		if err != nil {
			return nil, err
		}
		root := tree.Placement(p)
		owners, err := r.addReplicaSets(ctx, root)
		if err = addHidden(root, "the replica sets of the namespace", err); err != nil {
			return nil, err
		}
		decided, err := r.ListDecisions(ctx, namespace, []string{name})
		if err = addHidden(root, "the chosen clusters", err); err != nil {
			return nil, err
		}
		chosen := decided[types.NamespacedName{Namespace: namespace, Name: name}]
		known, err := r.knownOf(ctx, p, chosen)
		if err = addHidden(root, "the state of the clusters", err); err != nil {
			return nil, err
		}
		found := map[string]*tree.Node{}
		for _, d := range chosen {
			n := tree.Chosen(d.ClusterName, d.Group, known[d.ClusterName])
			found[d.ClusterName] = n
			root.Add(n)
		}
		if len(found) == 0 {
			return root, nil
		}
		return root, r.addWorks(ctx, root, found, work.PlacementLabel+"="+name, func(w *workv1.ManifestWork) bool {
			if label := w.Labels[work.ReplicaSetLabel]; label != "" {
				return strings.HasPrefix(label, namespace+".")
			}
			return owners[w.Labels[work.ReplicaSetHashLabel]]
		})
	}
}

// addReplicaSets adds the replica sets that refer to a placement. It returns the hashes of their names, which works have as a label if the name is
// too long for one.
func (r *treeReader) addReplicaSets(ctx context.Context, root *tree.Node) (owners map[string]bool, err error) {
	owners = map[string]bool{}
	sets := r.Clusters.WorkV1alpha1().ManifestWorkReplicaSets(root.Namespace)
	return owners, paging.EachItem(ctx, sets.List, metav1.ListOptions{Limit: pageOfWorks}, func(set *workv1alpha1.ManifestWorkReplicaSet) error {
		if slices.ContainsFunc(set.Spec.PlacementRefs, func(ref workv1alpha1.LocalPlacementReference) bool { return ref.Name == root.Name }) {
			root.Add(tree.ReplicaSet(set))
			sum := sha256.Sum256([]byte(set.Namespace + "." + set.Name))
			owners[hex.EncodeToString(sum[:16])] = true
		}
		return nil
	})
}

// knownOf returns the clusters of decisions as far as the user may see them: as clusters, or as members of the placement's sets.
func (r *treeReader) knownOf(ctx context.Context, p *v1beta1.Placement, chosen []kit.Decision) (map[string]*tree.Node, error) {
	known := map[string]*tree.Node{}
	if len(chosen) == 0 {
		return known, nil
	}
	for _, d := range chosen {
		known[d.ClusterName] = nil
	}
	take := func(n *tree.Node) {
		if have, wanted := known[n.Name]; wanted && have == nil {
			known[n.Name] = n
		}
	}
	_, err := kit.Reach(r.HubClient, func(c kit.ManagedClusters) (any, error) {
		return nil, paging.EachItem(ctx, c.List, metav1.ListOptions{}, func(c *clusterv1.ManagedCluster) error {
			take(tree.Cluster(c))
			return nil
		})
	})
	if err != nil && !hidden(err) {
		return nil, err
	}
	selectors := []fields.Selector{fields.Everything()}
	if len(p.Spec.ClusterSets) > 0 {
		selectors = nil
		for _, set := range p.Spec.ClusterSets {
			selectors = append(selectors, kit.MembersOfSet(set))
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(known)), nil) {
		return known, nil
	}
	for _, selector := range selectors {
		if err := r.EachMember(ctx, selector, func(m *viewv1alpha1.ClusterSetMember) { take(tree.Member(m)) }); err != nil {
			return known, err
		}
	}
	return known, nil
}

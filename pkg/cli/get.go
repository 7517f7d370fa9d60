// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// unknown is shown for what the user may not see.
const unknown = "<unknown>"

func newGetCommand(g *global) *cobra.Command {
	return group("get", "Show the clusters, sets, placements or works of a hub, or the agents of a management cluster, or get a token for clusters to join",
		newGetClustersCommand(g), newGetClusterSetsCommand(g), newGetPlacementsCommand(g), newGetWorksCommand(g), newGetKlusterletsCommand(g), newGetTokenCommand(g))
}

func newGetClustersCommand(g *global) *cobra.Command {
	set, out := "", newTable()
	cmd := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"cluster"},
		Short:   "Show the clusters of a hub",
		Example: example("kubectl hub get clusters\nkubectl hub get clusters --clusterset production -o wide"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.validate(); err != nil {
				return err
			}
			h, err := g.hub()
			if err != nil {
				return err
			}
			list, err := listClustersOf(cmd.Context(), h, set)
			if err != nil {
				return err
			}
			if !out.isTable() {
				return out.printObjects(g.Out, list)
			}
			if len(list.Items) == 0 {
				_, err := fmt.Fprintln(g.ErrOut, "No clusters found.")
				return err
			}
			return out.printRows(g.Out, clusterRows(list))
		},
	}
	cmd.Flags().StringVar(&set, "clusterset", "", "Show only the members of this set, with any type of selector.")
	must(cmd.RegisterFlagCompletionFunc("clusterset", g.names(setNames)))
	out.addTo(cmd)
	return cmd
}

// listClustersOf returns the clusters of a set, or all clusters. The hub determines the members: sets select in several ways.
func listClustersOf(ctx context.Context, h *hub, set string) (*clusterv1.ManagedClusterList, error) {
	options := metav1.ListOptions{}
	var members *viewv1alpha1.ClusterSetMemberList
	if set != "" {
		var err error
		members, err = h.membersOf(ctx, set)
		if err != nil {
			return nil, err
		}
		if len(members.Items) == 0 {
			return &clusterv1.ManagedClusterList{Items: []clusterv1.ManagedCluster{}}, nil
		}
		options.LabelSelector = members.Items[0].Status.SelectedBy.Selector
	}
	list, err := h.listClusters(ctx, options)
	if apierrors.IsForbidden(err) && set != "" {
		return nil, fmt.Errorf("%w (kubectl hub members %s shows those that you can see)", err, set)
	}
	if err != nil {
		return nil, err
	}
	if set != "" {
		isMember := map[string]bool{}
		for i := range members.Items {
			isMember[members.Items[i].Spec.Cluster] = true
		}
		list.Items = slices.DeleteFunc(list.Items, func(c clusterv1.ManagedCluster) bool { return !isMember[c.Name] })
	}
	for i := range list.Items {
		list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: clusterv1.SchemeGroupVersion.String(), Kind: "ManagedCluster"}
	}
	return list, nil
}

// membersOf returns the members of a set. It returns an error if the set does not exist or is not shown to the user, rather than an empty list.
func (h *hub) membersOf(ctx context.Context, set string) (*viewv1alpha1.ClusterSetMemberList, error) {
	if _, err := h.clusters.ClusterV1beta2().ManagedClusterSets().Get(ctx, set, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	all, err := paging.List(ctx, h.clusters.ViewV1alpha1().ClusterSetMembers().List, metav1.ListOptions{FieldSelector: ofSet(set).String()})
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		all.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: viewv1alpha1.SchemeGroupVersion.String(), Kind: "ClusterSetMember"}
	}
	return &viewv1alpha1.ClusterSetMemberList{Items: all.Items}, nil
}

func clusterRows(list *clusterv1.ManagedClusterList) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: columns("Name", "Accepted", "Available", "ClusterSet", "CPU", "Memory",
		"Kubernetes Version", "+Joined", "+Registration", "+Age")}
	for i := range list.Items {
		c := &list.Items[i]
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			c.Name, strconv.FormatBool(c.Spec.HubAcceptsClient), status(c, registration.ConditionAvailable),
			orNone(c.Labels[cluster.ClusterSetLabel]), quantity(c, "cpu"), quantity(c, "memory"),
			orNone(c.Status.Version.Kubernetes),
			status(c, registration.ConditionJoined), registrationOf(c), age(c.CreationTimestamp),
		}})
	}
	return rows
}

// status returns the status of a condition, or Unknown if it is not set.
func status(c *clusterv1.ManagedCluster, conditionType string) string {
	if condition := meta.FindStatusCondition(c.Status.Conditions, conditionType); condition != nil {
		return string(condition.Status)
	}
	return string(metav1.ConditionUnknown)
}

func quantity(c *clusterv1.ManagedCluster, name clusterv1.ResourceName) string {
	if q, ok := c.Status.Capacity[name]; ok {
		return q.String()
	}
	return "<none>"
}

// registrationOf returns how a cluster authenticates.
func registrationOf(c *clusterv1.ManagedCluster) string {
	if arnOf(c) != "" {
		return authAWS
	}
	return authCSR
}

func arnOf(c *clusterv1.ManagedCluster) string {
	if arn := c.Annotations[registration.AnnotationManagedClusterARN]; arn != "" {
		return arn
	}
	return c.Annotations[registration.AnnotationManagedClusterARNOfSeed]
}

func age(since metav1.Time) string {
	if since.IsZero() {
		return unknown
	}
	return duration.HumanDuration(time.Since(since.Time))
}

func newGetClusterSetsCommand(g *global) *cobra.Command {
	out := newTable()
	cmd := &cobra.Command{
		Use:     "clustersets",
		Aliases: []string{"clusterset"},
		Short:   "Show the cluster sets of a hub",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.validate(); err != nil {
				return err
			}
			h, err := g.hub()
			if err != nil {
				return err
			}
			list, err := h.listSets(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: v1beta2.SchemeGroupVersion.String(), Kind: "ManagedClusterSet"}
			}
			if !out.isTable() {
				return out.printObjects(g.Out, list)
			}
			bound, err := boundNamespaces(cmd.Context(), h)
			if err != nil {
				return err
			}
			return out.printRows(g.Out, setRows(list, bound))
		},
	}
	out.addTo(cmd)
	return cmd
}

// boundNamespaces returns the namespaces in which a set may be used, by set. It returns nil if the user may not list the bindings.
func boundNamespaces(ctx context.Context, h *hub) (map[string][]string, error) {
	list, err := h.clusters.ClusterV1beta2().ManagedClusterSetBindings(corev1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bound := map[string][]string{}
	for i := range list.Items {
		set := list.Items[i].Spec.ClusterSet
		bound[set] = append(bound[set], list.Items[i].Namespace)
	}
	return bound, nil
}

func setRows(list *v1beta2.ManagedClusterSetList, bound map[string][]string) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: columns("Name", "Bound Namespaces", "Status", "Managed Namespaces",
		"+Selector", "+Age")}
	for i := range list.Items {
		s := &list.Items[i]
		namespaces, state := unknown, unknown
		if bound != nil {
			namespaces = orNone(strings.Join(bound[s.Name], ","))
		}
		if c := meta.FindStatusCondition(s.Status.Conditions, v1beta2.ManagedClusterSetConditionEmpty); c != nil {
			state = c.Message
		}
		managed := make([]string, len(s.Spec.ManagedNamespaces))
		for i := range s.Spec.ManagedNamespaces {
			managed[i] = s.Spec.ManagedNamespaces[i].Name
		}
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			s.Name, namespaces, state, orNone(strings.Join(managed, ",")),
			string(s.Spec.ClusterSelector.SelectorType), age(s.CreationTimestamp),
		}})
	}
	return rows
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

func (g *global) newWhyMemberCommand() *cobra.Command {
	o, set := g.newWhy(), ""
	cmd := &cobra.Command{
		Use:     "member CLUSTER --set SET",
		Aliases: []string{"members"},
		Short:   "Say why a cluster is in a set, or is not",
		Long: "why member compares the labels of a cluster with the selector of a set, and says which program has written the label that decides, and which set " +
			"claims it. Which user ran the program is in the audit log of the hub. This needs the permissions to get the cluster and the set." + whyExit,
		Example:           example("kubectl hub why member c1 --set payments"),
		Args:              oneArg("a cluster"),
		ValidArgsFunction: first(g.names(clusterNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := g.hub()
			if err != nil {
				return err
			}
			facts := diagnosis.MemberFacts{Cluster: args[0], Set: set, Now: time.Now()}
			if err := h.memberFacts(cmd.Context(), &facts); err != nil {
				return err
			}
			a := diagnosis.OfMember(facts)
			return o.finish(&a)
		},
	}
	cmd.Flags().StringVar(&set, "set", "", "The set. It is required.")
	must(cmd.MarkFlagRequired("set"))
	must(cmd.RegisterFlagCompletionFunc("set", g.names(setNames)))
	o.out.addTo(cmd)
	return cmd
}

func (h *hub) memberFacts(ctx context.Context, facts *diagnosis.MemberFacts) error {
	found, err := reach(h, func(c clusters) (*clusterv1.ManagedCluster, error) { return c.Get(ctx, facts.Cluster) })
	if facts.Object, err = look(found, err, "get managedclusters "+facts.Cluster+", nor is it in a set whose clusters you may get"); err != nil {
		return err
	}
	clusterSets := h.clusters.ClusterV1beta1().ManagedClusterSets()
	set, err := clusterSets.Get(ctx, facts.Set, metav1.GetOptions{})
	if facts.Selects, err = look(set, err, "get managedclustersets "+facts.Set); err != nil {
		return err
	}
	member, err := h.clusters.ViewV1alpha1().ClusterSetMembers().Get(ctx, facts.Cluster+"."+facts.Set, metav1.GetOptions{})
	if facts.Member, err = look(member, err, "get clustersetmembers"); err != nil {
		return err
	}
	if _, is := facts.Member.Get(); is {
		return nil
	}
	others, err := pages(func(options metav1.ListOptions) ([]v1beta1.ManagedClusterSet, string, error) {
		page, err := clusterSets.List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		return page.Items, page.Continue, nil
	})
	if facts.Others, err = look(others, err, "list managedclustersets, of which another one may claim the label"); err != nil {
		return err
	}
	facts.MayLabel, err = h.mayLabel(ctx, facts)
	return err
}

// mayLabel says whether the user may write the labels that would put the cluster into the set.
func (h *hub) mayLabel(ctx context.Context, facts *diagnosis.MemberFacts) (may diagnosis.Read[bool], err error) {
	object, there := facts.Object.Get()
	set, known := facts.Selects.Get()
	if !there || !known {
		return may, nil
	}
	selects, err := selector.ForV1beta1(set)
	if err != nil {
		return may, nil // the check says so
	}
	requirements, _ := selects.Requirements()
	changes, clear := diagnosis.Changes(requirements, object.Labels)
	if !clear {
		return diagnosis.Hidden[bool]("the selector of the set leaves open which label is wanted, so it was not asked whether you may write it"), nil
	}
	for _, change := range changes {
		key, value, adds := strings.Cut(strings.TrimSuffix(change, "-"), "=")
		if !cluster.IsReservedLabel(key) {
			continue
		}
		values := sets.New[string]()
		if adds {
			values.Insert(value)
		}
		if old, has := object.Labels[key]; has {
			values.Insert(old)
		}
		for value := range values {
			allowed, err := h.mayI(ctx, key+":"+value, key+":*", "*")
			if err != nil || !allowed {
				return diagnosis.Found(false), err
			}
		}
	}
	return diagnosis.Found(true), nil
}

// mayI asks whether the user may write labels of these names: one is enough.
func (h *hub) mayI(ctx context.Context, names ...string) (bool, error) {
	for _, name := range names {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: cluster.GroupName, Resource: "managedclusters", Subresource: "label", Name: name}}}
		answer, err := h.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("asking for your own rights: %w", err)
		}
		if answer.Status.Allowed {
			return true, nil
		}
	}
	return false, nil
}

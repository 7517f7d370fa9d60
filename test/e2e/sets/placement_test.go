// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// placing is a team that uses placements in a namespace.
type placing struct {
	*testing.T
	namespace string
	who       string
	client    versioned.Interface
}

// newPlacing returns a team that has the rights of a namespace admin and may bind a set, and has no other rights.
func newPlacing(t *testing.T, set string) *placing {
	t.Helper()
	who := harness.User(t, harness.Rule("create", "managedclustersets/bind", set))
	p := &placing{T: t, who: who, namespace: harness.NewNamespace(t), client: harness.Ours(t, harness.Hub(t).UserConfig(who))}
	harness.Must(harness.Kube(t, harness.Hub(t).AdminConfig()).RbacV1().RoleBindings(p.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: who},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: who}},
	}, metav1.CreateOptions{}))(t)
	return p
}

// place creates the placement web, once Kubernetes has aggregated the rights of an admin.
func (p *placing) place(predicates ...v1beta1.ClusterPredicate) {
	p.Helper()
	placement := &v1beta1.Placement{ObjectMeta: harness.Named("web"), Spec: v1beta1.PlacementSpec{Predicates: predicates}}
	harness.Eventually(p.T, "the team places", func(ctx context.Context) (bool, error) {
		_, err := p.client.ClusterV1beta1().Placements(p.namespace).Create(ctx, placement, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), err
	})
}

// change updates the placement as the team.
func (p *placing) change(change func(*v1beta1.PlacementSpec)) {
	p.Helper()
	harness.Eventually(p.T, "the placement is edited", func(ctx context.Context) (bool, error) {
		placement, err := p.client.ClusterV1beta1().Placements(p.namespace).Get(ctx, "web", metav1.GetOptions{})
		if err == nil {
			change(&placement.Spec)
			_, err = p.client.ClusterV1beta1().Placements(p.namespace).Update(ctx, placement, metav1.UpdateOptions{})
		}
		return err == nil, err
	})
}

// decided returns the clusters in the decisions, as other programs read them.
func (p *placing) decided(ctx context.Context) (clusters []string, decisions int, err error) {
	list, err := p.client.ClusterV1beta1().PlacementDecisions(p.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.PlacementLabel + "=web"})
	if err != nil {
		return nil, 0, err
	}
	for i := range list.Items {
		for _, one := range list.Items[i].Status.Decisions {
			clusters = append(clusters, one.ClusterName)
		}
	}
	slices.Sort(clusters)
	return clusters, len(list.Items), nil
}

func (p *placing) await(what string, want ...string) {
	p.Helper()
	slices.Sort(want)
	harness.Eventually(p.T, what, func(ctx context.Context) (bool, error) {
		got, decisions, err := p.decided(ctx)
		if err != nil {
			return false, err
		}
		return harness.Holds(decisions > 0 && slices.Equal(got, want), fmt.Sprintf("%d decisions with the clusters %v, want %v", decisions, got, want))
	})
}

// awaitCondition waits for "STATUS REASON" of a condition at the current generation, and returns its message.
func (p *placing) awaitCondition(condition, want string) (message string) {
	p.Helper()
	harness.Eventually(p.T, condition+" "+want, func(ctx context.Context) (bool, error) {
		placement, err := p.client.ClusterV1beta1().Placements(p.namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c := meta.FindStatusCondition(placement.Status.Conditions, condition)
		if c == nil {
			return false, nil
		}
		message = c.Message
		return harness.Holds(fmt.Sprintf("%s %s", c.Status, c.Reason) == want, fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message))
	})
	return message
}

func labelled(labels map[string]string) (p v1beta1.ClusterPredicate) {
	p.RequiredClusterSelector.LabelSelector.MatchLabels = labels
	return p
}

// dear returns a predicate that matches any cluster, and that exceeds the cost limit of a placement with two clusters.
func dear() (p v1beta1.ClusterPredicate) {
	large := `["x"]` + strings.Repeat(".map(x, x + x)", 19)
	for range 16 {
		p.RequiredClusterSelector.CelSelector.CelExpressions = append(p.RequiredClusterSelector.CelSelector.CelExpressions,
			large+`.all(x, [1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, !x.contains("y")))`)
	}
	return p
}

// changeCluster updates a cluster as an admin.
func changeCluster(t *testing.T, name string, change func(*clusterv1.ManagedCluster)) {
	t.Helper()
	clusters := harness.Admin(t).ClusterV1().ManagedClusters()
	harness.Eventually(t, name+" is changed", func(ctx context.Context) (bool, error) {
		c, err := clusters.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			change(c)
			_, err = clusters.Update(ctx, c, metav1.UpdateOptions{})
		}
		return err == nil, err
	})
}

// TestPlacement_DecisionsFollowTheSet runs the workflow of a team: it binds a set, creates a placement, and reads decisions while the clusters
// change.
func TestPlacement_DecisionsFollowTheSet(t *testing.T) {
	set := harness.Unique("placed")
	harness.NewSet(t, set)
	name := func(i int) string { return fmt.Sprintf("%s-c%d", set, i) }
	tier := map[string]string{harness.SetLabel: set, "tier": "gold"}
	for i := 1; i <= 4; i++ {
		harness.NewManagedCluster(t, name(i), tier)
	}
	harness.NewManagedCluster(t, name(5), map[string]string{harness.SetLabel: set})
	team, stranger := newPlacing(t, set), newPlacing(t, set)

	// The stranger has not bound the set. The team binds it after it has created the placement.
	stranger.place()
	team.place(labelled(map[string]string{"tier": "gold"}))
	team.await("there are no clusters without a binding")
	team.awaitCondition(v1beta1.PlacementConditionSatisfied, "False NoManagedClusterSetBindings")
	harness.Must(team.client.ClusterV1beta2().ManagedClusterSetBindings(team.namespace).
		Create(t.Context(), harness.Binding(team.namespace, set, set), metav1.CreateOptions{}))(t)
	team.await("the clusters of the set", name(1), name(2), name(3), name(4))
	team.awaitCondition(v1beta1.PlacementConditionSatisfied, "True AllDecisionsScheduled")

	harness.NewManagedCluster(t, name(6), tier)
	team.await("one joins", name(1), name(2), name(3), name(4), name(6))
	changeCluster(t, name(1), func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: "example.com/repair", Effect: clusterv1.TaintEffectNoSelect})
	})
	team.await("one is tainted", name(2), name(3), name(4), name(6))
	changeCluster(t, name(2), func(c *clusterv1.ManagedCluster) { delete(c.Labels, "tier") })
	team.await("one has lost its label", name(3), name(4), name(6))
	changeCluster(t, name(5), func(c *clusterv1.ManagedCluster) { c.Labels["tier"] = "gold" })
	team.await("one has got it", name(3), name(4), name(5), name(6))

	// A cluster that is being deleted leaves the decisions before it is gone.
	changeCluster(t, name(3), func(c *clusterv1.ManagedCluster) { c.Finalizers = append(c.Finalizers, "example.com/held") })
	release := func(c *clusterv1.ManagedCluster) {
		c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == "example.com/held" })
	}
	if err := harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name(3), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	team.await("one is being deleted", name(4), name(5), name(6))
	if c := harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name(3), metav1.GetOptions{}))(t); c.DeletionTimestamp == nil {
		t.Errorf("%s is not being deleted", name(3))
	}
	changeCluster(t, name(3), release)

	// A misconfigured placement keeps its last good decisions, except clusters that leave the set.
	team.change(func(s *v1beta1.PlacementSpec) { s.Predicates = []v1beta1.ClusterPredicate{dear()} })
	if message := team.awaitCondition(v1beta1.PlacementConditionMisconfigured, "True Misconfigured"); !strings.Contains(message, "the CEL expressions cost more than") {
		t.Errorf("the condition says %q", message)
	}
	team.awaitCondition(v1beta1.PlacementConditionSatisfied, "False NotAllDecisionsScheduled")
	team.await("a misconfigured edit", name(4), name(5), name(6))
	team.change(func(s *v1beta1.PlacementSpec) {
		s.Predicates, s.NumberOfClusters = []v1beta1.ClusterPredicate{labelled(map[string]string{"tier": "gold"})}, new(int32(2))
	})
	team.await("a good edit", name(4), name(5))
	team.awaitCondition(v1beta1.PlacementConditionMisconfigured, "False Succeedconfigured")

	harness.Eventually(t, "the events of the decisions", func(ctx context.Context) (bool, error) {
		list, err := harness.Kube(t, harness.Hub(t).AdminConfig()).EventsV1().Events(team.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		var seen []string
		for i := range list.Items {
			if e := &list.Items[i]; isOf(e, "web") {
				seen = append(seen, e.Reason)
			}
		}
		return harness.Holds(slices.Contains(seen, "DecisionCreate") && slices.Contains(seen, "DecisionUpdate"), seen)
	})

	// The scheduler has processed the stranger's placement by this time.
	stranger.await("nothing without a binding")
	stranger.awaitCondition(v1beta1.PlacementConditionSatisfied, "False NoManagedClusterSetBindings")

	// The garbage collector discovers new kinds twice a minute.
	if err := team.client.ClusterV1beta1().Placements(team.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the decisions go with their placement", func(ctx context.Context) (bool, error) {
		_, decisions, err := team.decided(ctx)
		return err == nil && decisions == 0, err
	})
}

func isOf(e *eventsv1.Event, placement string) bool {
	return e.Regarding.Kind == "Placement" && e.Regarding.Name == placement && e.ReportingController == "placementscheduler" &&
		e.Related != nil && e.Related.Kind == "PlacementDecision"
}

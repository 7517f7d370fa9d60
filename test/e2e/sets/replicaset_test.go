// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// retext writes the spec of the replica set web: a ConfigMap with a text.
func (p *placing) retext(text string) {
	p.Helper()
	sets := p.client.WorkV1alpha1().ManifestWorkReplicaSets(p.namespace)
	raw := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"default","name":"web"},"data":{"text":%q}}`, text)
	spec := workv1alpha1.ManifestWorkReplicaSetSpec{PlacementRefs: []workv1alpha1.LocalPlacementReference{{Name: "web"}}}
	spec.ManifestWorkTemplate.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}
	harness.Eventually(p.T, "the replica set is written", func(ctx context.Context) (bool, error) {
		set, err := sets.Get(ctx, "web", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = sets.Create(ctx, &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: harness.Named("web"), Spec: spec}, metav1.CreateOptions{})
		} else if err == nil {
			set.Spec = spec
			_, err = sets.Update(ctx, set, metav1.UpdateOptions{})
		}
		return err == nil, err
	})
}

// awaitSet waits for "STATUS REASON" of a condition of the replica set at the current generation, and returns its message.
func (p *placing) awaitSet(condition, want string) (message string) {
	p.Helper()
	harness.Eventually(p.T, condition+" "+want, func(ctx context.Context) (bool, error) {
		set, err := p.client.WorkV1alpha1().ManifestWorkReplicaSets(p.namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c := meta.FindStatusCondition(set.Status.Conditions, condition)
		if c == nil || c.ObservedGeneration != set.Generation {
			return harness.Holds(false, c)
		}
		message = c.Message
		return harness.Holds(fmt.Sprintf("%s %s", c.Status, c.Reason) == want, fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message))
	})
	return message
}

// works returns the works of the replica set, as an admin.
func (p *placing) works(ctx context.Context) ([]workv1.ManifestWork, error) {
	list, err := harness.Admin(p.T).WorkV1().ManifestWorks("").List(ctx, metav1.ListOptions{LabelSelector: work.ReplicaSetLabel + "=" + p.namespace + ".web"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// awaitWorks waits until exactly these clusters have works, with this text.
func (p *placing) awaitWorks(what, text string, want ...string) {
	p.Helper()
	harness.Eventually(p.T, what, func(ctx context.Context) (bool, error) {
		works, err := p.works(ctx)
		if err != nil {
			return false, err
		}
		var got []string
		for _, w := range works {
			if !strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), text) {
				return harness.Holds(false, string(w.Spec.Workload.Manifests[0].Raw))
			}
			got = append(got, w.Namespace)
		}
		slices.Sort(got)
		return harness.Holds(slices.Equal(got, want), got)
	})
}

// report sets the status of successful works, as the agents would.
func (p *placing) report() { p.tell() }

// awaitRevision waits until the hub has recorded the template with a text as a revision.
func (p *placing) awaitRevision(text string) {
	p.Helper()
	forged := &workv1alpha1.ManifestWorkReplicaSetRevision{}
	harness.Eventually(p.T, "the revision is kept", func(ctx context.Context) (bool, error) {
		list, err := p.client.WorkV1alpha1().ManifestWorkReplicaSetRevisions(p.namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false, err
		}
		forged = &list.Items[0]
		return strings.Contains(string(forged.Spec.ManifestWorkTemplate.Workload.Manifests[0].Raw), text), nil
	})
	// An admin cannot create a revision with a different template either.
	forged.ResourceVersion = ""
	forged.Spec.ManifestWorkTemplate.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"forged"}}`)
	_, err := harness.Admin(p.T).WorkV1alpha1().ManifestWorkReplicaSetRevisions(p.namespace).Create(p.Context(), forged, metav1.CreateOptions{})
	harness.WantForbidden(p.T, err)
	if err != nil {
		harness.Contains(p.T, err.Error(), "another manifestWorkTemplate")
	}
}

// undo rolls back as a user of the team does.
func (p *placing) undo() {
	p.Helper()
	out := harness.Plugin{Kubeconfig: harness.Hub(p.T).AdminKubeconfig()}.Must(p.T, "rollout", "undo", "web", "-n", p.namespace, "--as", p.who)
	harness.Contains(p.T, out, "web rolled back to revision")
	set := harness.Must(p.client.WorkV1alpha1().ManifestWorkReplicaSets(p.namespace).Get(p.Context(), "web", metav1.GetOptions{}))(p.T)
	if author := set.Annotations[work.AuthorAnnotation]; !strings.Contains(author, fmt.Sprintf("%q", p.who)) {
		p.Errorf("the author is %s", author)
	}
}

// tell sets the conditions that the works are applied and available, and additional ones, as the agents would.
func (p *placing) tell(also ...string) {
	p.Helper()
	for _, w := range harness.Must(p.works(p.Context()))(p.T) {
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Told", ObservedGeneration: w.Generation})
		}
		meta.RemoveStatusCondition(&w.Status.Conditions, workv1.WorkDegraded)
		for _, kind := range also {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Told", ObservedGeneration: w.Generation})
		}
		harness.Must(harness.Admin(p.T).WorkV1().ManifestWorks(w.Namespace).UpdateStatus(p.Context(), &w, metav1.UpdateOptions{}))(p.T)
	}
}

// TestReplicaSet_WorksOfAuthor runs the workflow of a team that uses placements, first without and then with the right to deploy to the clusters
// of its set.
func TestReplicaSet_WorksOfAuthor(t *testing.T) {
	set := harness.Unique("delivered")
	harness.NewSet(t, set)
	clusters := []string{set + "-c1", set + "-c2"}
	for _, name := range clusters {
		harness.NewManagedCluster(t, name, map[string]string{harness.SetLabel: set})
		// Registration would create it, which this hub runs without.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{registration.ClusterNameLabel: name}}}
		harness.Must(harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}))(t)
	}
	team := newPlacing(t, set)
	team.place()
	harness.Must(team.client.ClusterV1beta2().ManagedClusterSetBindings(team.namespace).
		Create(t.Context(), harness.Binding(team.namespace, set, set), metav1.CreateOptions{}))(t)
	team.await("the clusters of the set", clusters...)

	team.retext("one")
	message := team.awaitSet("Authorized", "False NotAllowed")
	if !strings.Contains(message, fmt.Sprintf("user %q", team.who)) || !strings.Contains(message, "may not create manifestworks in namespace "+clusters[0]) {
		t.Error(message)
	}
	if works := harness.Must(team.works(t.Context()))(t); len(works) > 0 {
		t.Fatalf("%d works of an author without rights", len(works))
	}

	harness.Grant(t, harness.Hub(t), harness.Unique("works"), team.who, harness.Rule("create", "managedclustersets/manifestworks", set))
	team.retext("two")
	team.awaitWorks("works by the right for the set", "two", clusters...)
	team.awaitSet("Authorized", "True AsExpected")
	harness.Eventually(t, "it says what is waited for", func(context.Context) (bool, error) {
		message := team.awaitSet("PlacementRolledOut", "False Progressing") // directly after the write, the condition reports this
		return harness.Holds(strings.Contains(message, "waits to be applied"), message)
	})
	team.report()
	team.awaitSet("PlacementRolledOut", "True Complete")
	team.awaitSet("ManifestworkApplied", "True AsExpected")
	team.awaitRevision("two")

	team.retext("three")
	team.awaitWorks("another template", "three", clusters...)
	team.tell(workv1.WorkDegraded)
	team.awaitSet("PlacementRolledOut", "False Progressing")
	team.undo()
	team.awaitWorks("back to the template that was a success", "two", clusters...)
	team.report()
	team.awaitSet("PlacementRolledOut", "True Complete")
	changeCluster(t, clusters[0], func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: "example.com/repair", Effect: clusterv1.TaintEffectNoSelect})
	})
	team.awaitWorks("a cluster leaves", "two", clusters[1])

	if err := team.client.WorkV1alpha1().ManifestWorkReplicaSets(team.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	team.awaitWorks("the set is deleted", "two")
	harness.Eventually(t, "its revisions are gone", func(ctx context.Context) (bool, error) {
		list, err := team.client.WorkV1alpha1().ManifestWorkReplicaSetRevisions(team.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
}

// TestFinishedWorks_DeletedAfterTTL verifies that hub-controller-manager has the rights to delete finished works after their TTL, and that works
// without a TTL remain.
func TestFinishedWorks_DeletedAfterTTL(t *testing.T) {
	namespace := harness.NewNamespace(t)
	works := harness.Admin(t).WorkV1().ManifestWorks(namespace)
	for name, ttl := range map[string]*int64{"kept": nil, "finished": new(int64(1))} {
		w := &workv1.ManifestWork{ObjectMeta: harness.Named(name)}
		w.Spec.DeleteOption = &workv1.DeleteOption{TTLSecondsAfterFinished: ttl}
		w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}`),
		}}}
		w = harness.Must(works.Create(t.Context(), w, metav1.CreateOptions{}))(t)
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: workv1.WorkComplete, Status: metav1.ConditionTrue, Reason: "Told"})
		harness.Must(works.UpdateStatus(t.Context(), w, metav1.UpdateOptions{}))(t)
	}
	harness.Eventually(t, "the finished work is gone", func(ctx context.Context) (bool, error) {
		_, err := works.Get(ctx, "finished", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	harness.Must(works.Get(t.Context(), "kept", metav1.GetOptions{}))(t)
}

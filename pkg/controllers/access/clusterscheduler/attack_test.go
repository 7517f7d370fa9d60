// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accesspolicy"
)

func ptrTo[T any](v T) *T { return &v }

// An exclusive cluster, or one of another profile, is not given to requests for shared ones.
func TestAttack_RequestOfOtherKind(t *testing.T) {
	other := newCluster("foo/b", "unlimited", shared)
	other.Spec.Profile = "another"
	f := newFixture(t, testConfig, newCluster("foo/a", "unlimited", exclusive), other)
	f.ask("unlimited", "foo/one")
	f.wantClusters("foo/a", "foo/b", "foo/unlimited one")
}

// The metadata that one request has for its cluster is not added to the cluster of another.
func TestAttack_MetadataDoesNotLeakIntoTheTemplate(t *testing.T) {
	const key = v1alpha1.MetadataAnnotationLabelPrefix + "secret"
	f := newFixture(t, `scheduler: {purposeMappings: {exclusive: {template: {metadata: {labels: {a: b}, annotations: {a: b}},
  spec: {profile: p, tenancy: Exclusive}}}}}`)
	first := newRequest("foo/exclusive", "exclusive")
	first.Labels, first.Annotations = map[string]string{key: "x"}, map[string]string{key: "x"}
	f.create(first)
	f.settle("foo/exclusive")
	f.ask("exclusive", "foo/second")
	c := f.cluster(f.request("foo/second").Status.Cluster.NamespacedName().String())
	if _, ok := c.Labels[key]; ok || c.Annotations[key] != "" || c.Labels["a"] != "b" {
		t.Errorf("%v %v", c.Labels, c.Annotations)
	}
}

func TestAttack_MetadataForClusterWithoutMetadata(t *testing.T) {
	const key = v1alpha1.MetadataAnnotationLabelPrefix + "note"
	f := newFixture(t, testConfig)
	f.ask("exclusive", "foo/exclusive")
	f.changeCluster("foo/exclusive-qilq5nsb", func(c *v1alpha1.Cluster) { c.Labels, c.Annotations = nil, nil })
	f.change("foo/exclusive", func(r *v1alpha1.ClusterRequest) {
		r.Labels, r.Annotations = map[string]string{key: "x"}, map[string]string{key: "x"}
	})
	f.settle("foo/exclusive")
	if c := f.cluster("foo/exclusive-qilq5nsb"); c.Labels[key] != "x" || c.Annotations[key] != "x" {
		t.Errorf("%v %v", c.Labels, c.Annotations)
	}
}

// Of the requests in the finalizers of a cluster, one that still exists is enough to keep it, wherever it stands among them.
func TestAttack_ClusterInUseIsNotReleased(t *testing.T) {
	for _, holders := range [][]string{{"alive", "gone"}, {"gone", "alive"}, {"gone", "gone2", "alive"}} {
		f := newFixture(t, testConfig, newCluster("foo/exclusive-qilq5nsb", "exclusive", exclusive, holders...), newRequest("foo/alive", "unknown"))
		f.ask("exclusive", "foo/exclusive")
		f.wantAnswer("foo/exclusive", "Pending - ClusterConflict")
		f.wantClusters("foo/exclusive-qilq5nsb " + strings.Join(slices.Sorted(slices.Values(holders)), " "))
		// Once the other one is gone, the cluster is free.
		f.delete(f.request("foo/alive"))
		f.settle("foo/exclusive")
		f.wantAnswer("foo/exclusive", "Granted foo/exclusive-qilq5nsb ClusterGranted")
		f.wantClusters("foo/exclusive-qilq5nsb exclusive")
	}
}

// A configuration that is loaded while the scheduler runs is completed and checked like the one at its start.
func TestAttack_ReloadedConfigIsCompleted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(testConfig)
	live, err := NewLiveConfig([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		changes, others := live.Changes(), live.Changes()
		go func() { _ = live.Start(t.Context()) }()
		write("scheduler: {scope: nonsense}")
		time.Sleep(3 * reloadInterval) // of the bubble
		synctest.Wait()
		if len(changes) != 0 || live.current.Load().Scope != ScopeCluster {
			t.Fatal("an invalid configuration counts")
		}
		write(`scheduler: {selectors: {clusters: {matchLabels: {g: x}}, requests: {matchLabels: {r: x}}}, purposeMappings: {new: {selector: {matchLabels: {l: x}},
  template: {metadata: {labels: {g: x, l: x}}, spec: {profile: p, tenancy: Shared}}}}}`)
		time.Sleep(3 * reloadInterval)
		synctest.Wait()
		if len(changes) != 1 || len(others) != 1 {
			t.Fatalf("those who listen were told %d and %d times", len(changes), len(others))
		}
	})
	f := newFixture(t, testConfig, newCluster("bar/unlabelled", "new", shared))
	f.config = live.current.Load()
	labelled := newRequest("foo/labelled", "new")
	labelled.Labels = map[string]string{"r": "x"}
	f.create(labelled)
	f.settle("foo/labelled")
	f.ask("new", "foo/unlabelled")
	f.wantClusters("bar/unlabelled", "foo/new labelled")
	f.wantAnswer("foo/unlabelled", " - -")
}

// A file may be half written. Half a configuration may have no policy.
func TestAttack_PartialConfigIsIgnored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(policyConfig)
	live, err := NewLiveConfig([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{testConfig, policyConfig} {
		write(step)
		if changed, err := live.reload(); changed || err != nil || !live.Policy().RestrictsClusterRequests() {
			t.Errorf("changed: %t, %v", changed, err)
		}
	}
	write(testConfig)
	for _, want := range []bool{false, true, false} {
		if changed, err := live.reload(); changed != want || err != nil {
			t.Errorf("changed: %t, %v", changed, err)
		}
	}
	if live.Policy().RestrictsClusterRequests() {
		t.Error("the change does not count")
	}
}

// If the needed name is taken, the request waits, whatever the purpose of that cluster.
func TestAttack_TakenNameIsWaitedFor(t *testing.T) {
	f := newFixture(t, testConfig, newCluster("foo/unlimited", "other", shared, "gone"), newCluster("foo/shared-twice-qilq5nsb", "other", exclusive))
	f.delete(f.cluster("foo/unlimited"))
	f.ask("unlimited", "foo/one")
	f.ask("shared", "foo/exclusive")
	f.wantAnswer("foo/one", "Pending - WaitingForClusterDeletion")
	f.wantAnswer("foo/exclusive", "Pending - ClusterConflict")
	for cluster, request := range map[string]string{"foo/unlimited": "one", "foo/shared-twice-qilq5nsb": "exclusive"} {
		if waiting := f.process.requestsOf(t.Context(), f.cluster(cluster)); len(waiting) != 1 || waiting[0].Name != request {
			t.Errorf("the end of %s is an event of %v", cluster, waiting)
		}
	}
}

// A request that waits for a purpose is enqueued when that is defined. Granted requests are not changed.
func TestAttack_NewConfigGrantsWaitingRequests(t *testing.T) {
	f := newFixture(t, testConfig)
	f.ask("unlimited", "foo/granted")
	f.ask("later", "foo/waits")
	f.wantAnswer("foo/waits", "Pending - ConfigurationProblem")
	requests := f.process.requestsBy(t.Context(), pendingIndex, anyPurpose)
	if len(requests) != 1 || requests[0].String() != "foo/waits" {
		t.Fatalf("%v", requests)
	}
	f.config = mustParse(t, "scheduler: {purposeMappings: {later: {template: {spec: {profile: p, tenancy: Shared}}}}}")
	f.settle("foo/waits", "foo/granted")
	f.wantAnswer("foo/waits", "Granted foo/later ClusterGranted")
	f.wantAnswer("foo/granted", "Granted foo/unlimited ClusterGranted")
}

// Nothing can be added to a cluster that is being deleted.
func TestAttack_DeletingClusterIsWaitedFor(t *testing.T) {
	f := newFixture(t, testConfig, newCluster("foo/unlimited", "unlimited", shared, "gone"))
	f.delete(f.cluster("foo/unlimited"))
	f.ask("unlimited", "foo/one")
	f.wantAnswer("foo/one", "Pending - WaitingForClusterDeletion")
	f.wantClusters("foo/unlimited gone deleted")
	waiting := f.process.requestsOf(t.Context(), f.cluster("foo/unlimited"))
	if len(waiting) != 1 || waiting[0].Name != "one" {
		t.Errorf("its end is no event of the request: %v", waiting)
	}
	f.changeCluster("foo/unlimited", func(c *v1alpha1.Cluster) { c.Finalizers = nil })
	f.settle("foo/one")
	f.wantClusters("foo/unlimited one")
}

// An existing cluster of the name keeps its spec, and is not given if that is different.
func TestAttack_ExistingClusterRetainsSpec(t *testing.T) {
	there := newCluster("foo/exclusive-qilq5nsb", "mine", exclusive)
	there.Spec.Kubernetes.Version, there.Labels = "1.30.0", map[string]string{v1alpha1.DeleteWithoutRequestsLabel: "false"}
	another := newCluster("foo/unlimited", "mine", shared)
	another.Spec.Profile = "another"
	f := newFixture(t, testConfig, there, another)
	f.ask("exclusive", "foo/exclusive")
	f.ask("unlimited", "foo/one")
	f.wantAnswer("foo/exclusive", "Granted foo/exclusive-qilq5nsb ClusterGranted")
	c := f.cluster("foo/exclusive-qilq5nsb")
	if c.Spec.Kubernetes.Version != "1.30.0" || !slices.Equal(c.Spec.Purposes, []string{"mine", "exclusive"}) ||
		c.Labels[v1alpha1.DeleteWithoutRequestsLabel] != "false" {
		t.Errorf("%+v %v", c.Spec, c.Labels)
	}
	f.wantAnswer("foo/one", "Pending - ClusterConflict")
	if c := f.cluster("foo/unlimited"); c.Spec.Profile != "another" || len(c.Finalizers) > 0 {
		t.Errorf("%+v", c)
	}
}

const policyConfig = testConfig + `
  policy:
    clusterRequests:
    - {name: teams, expression: "purpose == 'exclusive' && namespaceObject.metadata.labels['team'] == 'a'"}
    accessRequests:
    - {name: views, expression: "roleRefs.all(r, r.kind == 'ClusterRole' && r.name == 'view') && permissions.size() == 0"}
    - {name: platform, expression: "request.metadata.namespace == 'platform' && 'mcp' in cluster.spec.purposes"}
`

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestPolicy_DenialIsFinal(t *testing.T) {
	f := newFixture(t, policyConfig, namespace("foo", map[string]string{"team": "a"}), namespace("bar", map[string]string{"team": "b"}),
		namespace("none", nil))
	f.ask("exclusive", "foo/exclusive", "bar/denied", "none/open")
	f.ask("unlimited", "foo/denied2")
	f.wantClusters("foo/exclusive-qilq5nsb exclusive")
	f.wantAnswer("foo/exclusive", "Granted foo/exclusive-qilq5nsb ClusterGranted")
	f.wantAnswer("bar/denied", "Denied - DeniedByPolicy")
	f.wantAnswer("foo/denied2", "Denied - DeniedByPolicy")
	// A rule that cannot be evaluated decides nothing.
	f.wantAnswer("none/open", "Pending - ConfigurationProblem")
	if c := meta.FindStatusCondition(f.request("none/open").Status.Conditions, ConditionGranted); !strings.Contains(c.Message, "no such key") {
		t.Errorf("%q", c.Message)
	}
	// Another policy does not change decisions, but decides on open requests.
	f.config = mustParse(t, testConfig)
	f.settle("bar/denied", "none/open")
	f.wantAnswer("bar/denied", "Denied - DeniedByPolicy")
	f.wantAnswer("none/open", "Granted none/exclusive-z6a7ip72 ClusterGranted")
	f.config = mustParse(t, testConfig+"\n  policy: {clusterRequests: []}")
	f.settle("foo/exclusive")
	f.wantAnswer("foo/exclusive", "Granted foo/exclusive-qilq5nsb ClusterGranted")
	f.ask("exclusive", "foo/denied3")
	f.wantAnswer("foo/denied3", "Denied - DeniedByPolicy")
}

func TestPolicy_OfAccessRequests(t *testing.T) {
	policy := mustParse(t, policyConfig).policy
	cluster := newCluster("foo/a", "mcp", shared)
	role := func(kind, name string) v1alpha1.AccessRequestSpec {
		return v1alpha1.AccessRequestSpec{Token: &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{{Kind: kind, Name: name}}}}
	}
	byOIDC := v1alpha1.AccessRequestSpec{OIDC: &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
		RoleBindings: []v1alpha1.RoleBindings{{RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "cluster-admin"}}}},
	}}}
	brings := v1alpha1.AccessRequestSpec{Token: &v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{{}}}}
	// Without roles, the request has the cluster trust an issuer of its author, who can then authenticate as any user that the cluster gives roles
	// to.
	trust := v1alpha1.AccessRequestSpec{OIDC: &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
		Issuer: "https://mine", UsernamePrefix: new(""), RoleBindings: []v1alpha1.RoleBindings{},
	}}}
	for _, test := range []struct {
		namespace string
		spec      v1alpha1.AccessRequestSpec
		want      bool
	}{
		{"foo", trust, false}, {"foo", v1alpha1.AccessRequestSpec{Token: &v1alpha1.TokenConfig{}}, false}, {"platform", trust, true},
		{"foo", role("ClusterRole", "view"), true}, {"foo", role("ClusterRole", "admin"), false}, {"foo", role("Role", "view"), false},
		{"foo", byOIDC, false}, {"platform", byOIDC, true}, {"foo", brings, false}, {"platform", brings, true},
	} {
		request := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace}, Spec: test.spec}
		got, err := policy.AccessRequestAllowed(t.Context(), request, cluster, nil, namespace(test.namespace, nil))
		if err != nil || got != test.want {
			t.Errorf("%s %+v: %t, %v", test.namespace, test.spec, got, err)
		}
	}
	if ok, err := (*accesspolicy.Policy)(nil).AccessRequestAllowed(t.Context(), &v1alpha1.AccessRequest{}, cluster, nil, nil); !ok || err != nil {
		t.Error("no policy denies")
	}
}

// An approver's denial stays, with the approver's message, and revokes what the request was just being given.
func TestPolicy_ApproverIsRespected(t *testing.T) {
	f := newFixture(t, testConfig)
	f.create(newRequest("foo/exclusive", "exclusive"))
	f.killAfter = 2 // the finalizer, and the cluster
	_, _ = f.process.Reconcile(t.Context(), requestFor("foo", "exclusive"))
	f.wantClusters("foo/exclusive-qilq5nsb exclusive")
	f.change("foo/exclusive", func(r *v1alpha1.ClusterRequest) {
		r.Status.Phase = v1alpha1.REQUEST_DENIED
		r.Status.Conditions = []metav1.Condition{{Type: ConditionGranted, Status: metav1.ConditionFalse, Reason: "TooExpensive"}}
	})
	f.restart()
	f.settle("foo/exclusive")
	f.wantAnswer("foo/exclusive", "Denied - TooExpensive")
	f.wantClusters()
	f.delete(f.request("foo/exclusive"))
	f.settle("foo/exclusive")
	if requests := f.process.requestsBy(t.Context(), uidIndex, "uid-of-exclusive"); len(requests) > 0 {
		t.Error("it cannot be deleted")
	}
}

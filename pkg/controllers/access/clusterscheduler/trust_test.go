// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// trustConfig has a purpose whose clusters are in a namespace of their own, and one whose clusters are in the namespaces of the requests.
const trustConfig = `
scheduler:
  purposeMappings:
    central:
      selector: {matchLabels: {a: b}}
      template: {metadata: {namespace: clusters, labels: {a: b}}, spec: {profile: p, tenancy: Shared}}
    beside: {template: {spec: {profile: p, tenancy: Shared}}}
    own: {template: {spec: {profile: p, tenancy: Exclusive}}}
`

// bait returns a cluster that matches all requests for a purpose, in the namespace of an attacker who wants the secrets of others.
func bait(name, purpose string, holders ...string) *v1alpha1.Cluster {
	c := newCluster("eve/"+name, purpose, shared, holders...)
	c.Labels = map[string]string{"a": "b", v1alpha1.DeleteWithoutRequestsLabel: "true"}
	return c
}

// The clusters of users who may create Clusters in some namespace must not be given to others.
func TestAttack_UsersCannotOfferClusters(t *testing.T) {
	for name, scope := range map[string]string{
		"as it is":          "",
		"Cluster":           "scope: Cluster",
		"Cluster, Simple":   "scope: Cluster, strategy: Simple",
		"Cluster, Random":   "scope: Cluster, strategy: Random",
		"Namespaced":        "scope: Namespaced",
		"Cluster, Balanced": "scope: Cluster, strategy: Balanced",
	} {
		t.Run(name, func(t *testing.T) {
			config := trustConfig
			if scope != "" {
				config = strings.Replace(config, "scheduler:", "scheduler:\n  "+strings.ReplaceAll(scope, ", ", "\n  "), 1)
			}
			f := newFixture(t, config, bait("a", "central"), bait("b", "beside"), bait("central", "central"), bait("z", "central"),
				newCluster("clusters/full", "central", shared, "x", "y"))
			f.changeCluster("clusters/full", func(c *v1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"} })
			f.ask("central", "foo/one", "bar/two")
			f.ask("beside", "foo/three", "bar/four", "eve/five")
			f.wantClusters("bar/beside four", "clusters/full one two x y", "eve/a", "eve/b five", "eve/central", "eve/z", "foo/beside three")
		})
	}
}

// The UIDs of requests are not secret. A user who adds the UID of another's request to a cluster has no effect on the request.
func TestAttack_ForgedClusterOfRequest(t *testing.T) {
	for _, purpose := range []string{"central", "beside", "own", "unknown"} {
		t.Run(purpose, func(t *testing.T) {
			forged := bait("forged", purpose, "victim")
			f := newFixture(t, trustConfig, forged)
			f.ask(purpose, "foo/victim")
			if c := f.request("foo/victim").Status.Cluster; c != nil && c.Namespace == "eve" {
				t.Errorf("it is given %v", c)
			}
			if purpose == "unknown" {
				f.wantAnswer("foo/victim", "Pending - ConfigurationProblem")
			}
		})
	}
	// It does not replace what the request has, either, if the process ended before it could write the status.
	f := newFixture(t, trustConfig, bait("forged", "beside", "victim"))
	f.create(newRequest("foo/victim", "beside"))
	f.killAfter = 2 // the finalizer, and the cluster
	_, _ = f.process.Reconcile(t.Context(), requestFor("foo", "victim"))
	f.restart()
	f.settle("foo/victim")
	f.wantAnswer("foo/victim", "Granted foo/beside ClusterGranted")
}

// A request without a cluster does not wait, when it is deleted, for a cluster to which an attacker adds its finalizer and another one.
func TestAttack_DeletionIsNotBlockedByForgedFinalizer(t *testing.T) {
	for _, purpose := range []string{"own", "unknown"} {
		forged := newCluster("eve/forged", purpose, exclusive, "victim")
		forged.Labels = map[string]string{v1alpha1.DeleteWithoutRequestsLabel: "true"}
		forged.Finalizers = append(forged.Finalizers, "example.com/for-ever")
		f := newFixture(t, trustConfig, forged)
		f.create(newRequest("foo/victim", purpose))
		f.change("foo/victim", func(r *v1alpha1.ClusterRequest) { r.Finalizers = []string{v1alpha1.ClusterRequestFinalizer} })
		f.delete(f.request("foo/victim"))
		f.settle("foo/victim")
		left := &v1alpha1.ClusterRequestList{}
		if err := f.client.List(t.Context(), left); err != nil || len(left.Items) > 0 {
			t.Errorf("%s: it is kept, %s, %v", purpose, f.answer("foo/victim"), err)
		}
	}
}

// Clusters of other namespaces are given if the configuration trusts the namespace, for that purpose alone.
func TestTrust_IsPerPurpose(t *testing.T) {
	for trusted, want := range map[string][]string{
		"[eve]":       {"eve/a one", "eve/b", "foo/beside two"},
		"[ops, eve]":  {"eve/a one", "eve/b", "foo/beside two"},
		"['*']":       {"eve/a one", "eve/b", "foo/beside two"},
		"[ops, eves]": {"clusters/central one", "eve/a", "eve/b", "foo/beside two"},
		"[]":          {"clusters/central one", "eve/a", "eve/b", "foo/beside two"},
	} {
		config := strings.Replace(trustConfig, "central:", "central:\n      trustedNamespaces: "+trusted, 1)
		f := newFixture(t, config, bait("a", "central"), bait("b", "beside"))
		f.ask("central", "foo/one")
		f.ask("beside", "foo/two")
		if got := f.clusters(); !slices.Equal(got, want) {
			t.Errorf("%s: the clusters are %q, want %q", trusted, got, want)
		}
	}
}

// A request keeps its cluster when the namespace is not trusted any more.
func TestTrust_RevocationAffectsNewRequests(t *testing.T) {
	f := newFixture(t, strings.Replace(trustConfig, "central:", "central:\n      trustedNamespaces: [eve]", 1), bait("a", "central"))
	f.ask("central", "foo/one")
	f.config = mustParse(t, trustConfig)
	f.settle("foo/one")
	f.ask("central", "foo/two")
	f.wantClusters("clusters/central two", "eve/a one")
	f.wantAnswer("foo/one", "Granted eve/a ClusterGranted")
}

func TestTrust_OfConfiguration(t *testing.T) {
	const spec = "template: {spec: {profile: p, tenancy: "
	for config, want := range map[string]string{
		"{scope: Namespaced, purposeMappings: {a: {trustedNamespaces: [x], " + spec + "Shared}}}}}": "scheduler.purposeMappings[a].trustedNamespaces: Forbidden: must be empty, as scheduler.scope is Namespaced",
		"{purposeMappings: {a: {trustedNamespaces: [x], " + spec + "Exclusive}}}}}":                 "scheduler.purposeMappings[a].trustedNamespaces: Forbidden: must be empty for the tenancy Exclusive",
		"{purposeMappings: {a: {trustedNamespaces: [x, A_b], " + spec + "Shared}}}}}":               `scheduler.purposeMappings[a].trustedNamespaces[1]: Invalid value: "A_b"`,
		"{purposeMappings: {a: {trustedNamespaces: ['x*'], " + spec + "Shared}}}}}":                 `scheduler.purposeMappings[a].trustedNamespaces[0]: Invalid value: "x*"`,
		"{purposeMappings: {a: {trustedNamespaces: [''], " + spec + "Shared}}}}}":                   `scheduler.purposeMappings[a].trustedNamespaces[0]: Invalid value: ""`,
	} {
		if _, err := parse([]byte("scheduler: " + config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// A file of openMCP is read as it is. The log has a warning where it asks for more than it gets.
func TestTrust_WarnsOfDifferencesToOpenMCP(t *testing.T) {
	const purposes = ` purposeMappings: {a: {template: {spec: {profile: p, tenancy: Shared}}}, b: {template: {spec: {profile: p, tenancy: Exclusive}}},
  c: {trustedNamespaces: ['*'], template: {spec: {profile: p, tenancy: Shared}}}}}`
	for config, want := range map[string]int{"{scope: Cluster,": 1, "{": 0} {
		warnings := mustParse(t, "scheduler: "+config+purposes).warnings
		if len(warnings) != want || want > 0 && !strings.Contains(warnings[0], "scheduler.purposeMappings[a].trustedNamespaces") {
			t.Errorf("%s: %q", config, warnings)
		}
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// quickTries is a number of retries after which the next retry, with a backoff that doubles from 100 ms, is more than six seconds away. An action
// within that time is not caused by a retry.
const quickTries = 7

// guarded is a preparation with a policy that grants teams all access to the clusters that were granted to them, and grants every user the right to
// view.
type guarded struct {
	*preparation
	config, profile, metrics string
}

const guardedPolicy = `
scheduler:
  purposeMappings:
    mcp: {template: {metadata: {namespace: clusters, generateName: mcp-}, spec: {profile: PROFILE, tenancy: Exclusive}}}
  policy:
    accessRequests:
    - {name: own, expression: "clusterRequests.exists(r, r.metadata.namespace == request.metadata.namespace && r.spec.purpose == 'mcp')"}
    - {name: view, expression: "has(request.spec.token) && permissions.size() == 0 && roleRefs.all(r, r.kind == 'ClusterRole' && r.name == 'view')"}
    - {name: words, expression: "has(request.metadata.labels) || has(request.metadata.annotations) || has(request.spec.requestRef)"}
`

func (g *guarded) configure(policy string) {
	g.Helper()
	if err := os.WriteFile(g.config, []byte(strings.ReplaceAll(policy, "PROFILE", g.profile)), 0o600); err != nil {
		g.Fatal(err)
	}
}

// follow makes a running controller use a different policy.
func (g *guarded) follow(policy string) {
	g.Helper()
	const changed = "The configuration has changed"
	before := strings.Count(g.said.String(), changed)
	g.configure(policy)
	harness.Eventually(g.T, "the policy is known", func(context.Context) (bool, error) {
		return strings.Count(g.said.String(), changed) > before, nil
	})
}

func (g *guarded) start() {
	g.Helper()
	g.preparation.start("--scheduler-config="+g.config, "--metrics-bind-address="+g.metrics)
}

func (g *guarded) restart() {
	g.Helper()
	g.kill()
	g.start()
}

// team requests a cluster in a namespace.
func (g *guarded) team(namespace string) (*v1alpha1.ClusterRequest, *v1alpha1.Cluster) {
	g.Helper()
	r, c := clusterRequest(namespace), &v1alpha1.Cluster{}
	g.create(r)
	g.await("it has a cluster", r, func() bool { return r.Status.IsGranted() && r.Status.Cluster != nil })
	if err := g.Get(g.Context(), r.Status.Cluster.NamespacedName(), c); err != nil {
		g.Fatal(err)
	}
	return r, c
}

func (g *guarded) awaitDenied(a *v1alpha1.AccessRequest, reason string) {
	g.Helper()
	g.await(a.Name+" is denied", a, func() bool {
		condition := meta.FindStatusCondition(a.Status.Conditions, "Prepared")
		return a.Status.IsDenied() && a.Status.ObservedGeneration == a.Generation && condition != nil && condition.Reason == reason
	})
	if v1alpha1.IsClusterProviderResponsibleForAccessRequest(a, "") {
		g.Errorf("a provider is responsible for %+v", a)
	}
}

func forRole(a *v1alpha1.AccessRequest, role string) *v1alpha1.AccessRequest {
	a.Spec.Token.RoleRefs = []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: role}}
	return a
}

func TestAccessPrepare_UnderAttack(t *testing.T) {
	p := newPreparation(t)
	g := &guarded{
		preparation: p, config: filepath.Join(t.TempDir(), "config.yaml"), profile: p.profile().Name, metrics: localserver.Address(harness.FreePort(t)),
	}
	g.configure(guardedPolicy)
	g.start()
	run := func(name string, f func(*guarded)) {
		t.Run(name, func(t *testing.T) {
			part := *g
			part.preparation = &preparation{T: t, Client: p.Client, hub: p.hub, kill: g.kill, said: g.said}
			f(&part)
		})
	}
	run("the clusters of others", theClustersOfOthers)
	run("a rule that becomes right", aRuleThatBecomesRight)
	run("a provider that is gone", aProviderThatIsGone)
	run("no requests at rest", noRequestsAtRest)
	t.Run("another thing after the grant", func(t *testing.T) { // its restarts affect the other parts
		g.T = t
		anotherThingAfterTheGrant(g)
	})
}

// theClustersOfOthers verifies that the policy denies the clusters of others to users who reference a request of their own as well, or claim an
// identity.
func theClustersOfOthers(g *guarded) {
	mine, own := g.team("clusters")
	theirs, foreign := g.team("teams")
	honest, direct := forRole(toRequest(accessRequest("teams"), theirs), "cluster-admin"), forRole(toCluster(accessRequest("teams"), foreign), "cluster-admin")
	viewer := forRole(toCluster(accessRequest("clusters"), foreign), "view")
	g.create(honest, direct, viewer)
	for _, a := range []*v1alpha1.AccessRequest{honest, direct, viewer} {
		g.awaitPrepared(a)
	}
	// Neither the namespace of the Cluster nor other references matter.
	plain := forRole(toCluster(accessRequest("clusters"), foreign), "cluster-admin")
	behind := forRole(toRequest(toCluster(accessRequest("clusters"), foreign), mine), "cluster-admin")
	through := forRole(toRequest(accessRequest("clusters"), theirs), "cluster-admin")
	liar := forRole(toCluster(accessRequest("clusters"), foreign), "cluster-admin")
	liar.Labels = map[string]string{v1alpha1.ProviderLabel: "kind", v1alpha1.ProfileLabel: foreign.Spec.Profile, "team": "admins"}
	liar.Annotations, liar.Finalizers = map[string]string{"approved": "true"}, []string{holder}
	// The identity of the users of a custom OIDC provider is unknown.
	oidc := toCluster(accessRequest("clusters"), foreign)
	oidc.Spec.Token, oidc.Spec.OIDC = nil, &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
		Name: "mine", Issuer: "https://mine.example.com", ClientID: "c", GroupsPrefix: new(""), RoleBindings: []v1alpha1.RoleBindings{},
	}}
	for _, a := range []*v1alpha1.AccessRequest{plain, behind, through, liar, oidc} {
		g.create(a)
		g.awaitDenied(a, "DeniedByPolicy")
	}
	// The deletion of a Cluster does not wait for denied requests, whatever their status claims.
	if err := g.Delete(g.Context(), liar); err != nil {
		g.Fatal(err)
	}
	for _, a := range []client.Object{honest, direct, viewer, theirs} {
		if err := g.Delete(g.Context(), a); err != nil {
			g.Fatal(err)
		}
	}
	g.awaitGone(foreign)
	g.patch(liar, `{"metadata":{"finalizers":null}}`)
	g.await("a cluster of one's own", own, func() bool { return own.DeletionTimestamp.IsZero() })
}

func anotherThingAfterTheGrant(g *guarded) {
	_, c := g.team("teams")
	edited, denied := forRole(toCluster(accessRequest("clusters"), c), "view"), forRole(toCluster(accessRequest("clusters"), c), "view")
	edited.Finalizers = []string{holder} // of its provider
	g.create(edited, denied)
	for _, a := range []*v1alpha1.AccessRequest{edited, denied} {
		g.awaitPrepared(a)
		g.patchStatus(a, `{"phase":"Granted","observedGeneration":1,"secretRef":{"name":"s"}}`)
	}
	g.patch(edited, `{"spec":{"token":{"roleRefs":[{"kind":"ClusterRole","name":"cluster-admin"}]}}}`)
	g.awaitDenied(edited, "DeniedByPolicy")
	g.patchStatus(denied, `{"phase":"Denied","observedGeneration":null}`)
	for _, a := range []*v1alpha1.AccessRequest{edited, denied} {
		reason := meta.FindStatusCondition(a.Status.Conditions, "Prepared").Reason
		g.awaitDenied(a, reason)
		g.patch(a, `{"spec":{"token":{"roleRefs":[{"kind":"ClusterRole","name":"view"}]},"ttl":"24h"},`+
			`"metadata":{"labels":null,"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
		g.awaitDenied(a, reason)
		g.restart()
		g.patch(a, `{"spec":{"ttl":"48h"}}`)
		g.awaitDenied(a, reason)
		if len(a.Labels)+len(a.Annotations) > 0 {
			g.Errorf("labels %v, annotations %v", a.Labels, a.Annotations)
		}
	}
	// Its provider revokes access that was granted before.
	g.patch(edited, fmt.Sprintf(`{"metadata":{"labels":{%q:"kind",%q:%q}}}`, v1alpha1.ProviderLabel, v1alpha1.ProfileLabel, c.Spec.Profile))
	if err := g.Delete(g.Context(), edited); err != nil {
		g.Fatal(err)
	}
	g.await("the deletion is handed over", edited, func() bool {
		return v1alpha1.IsClusterProviderResponsibleForAccessRequest(edited, "kind") && edited.Status.ObservedGeneration == edited.Generation
	})
	g.patch(edited, `{"metadata":{"finalizers":null}}`)
}

// aRuleThatBecomesRight verifies that a corrected rule immediately decides the requests that it left undecided.
func aRuleThatBecomesRight(g *guarded) {
	_, c := g.team("teams")
	wrong := strings.Replace(guardedPolicy, "    - {name: own,", "    - {name: wrong, expression: \"request.spec.nothing == 1\"}\n    - {name: own,", 1)
	g.follow(wrong)
	before := g.metric(failures)
	a := forRole(toCluster(accessRequest("clusters"), c), "cluster-admin")
	g.create(a)
	g.awaitProblem(a, "ConfigurationProblem", `the rule "wrong" of the policy cannot be evaluated`)
	harness.Eventually(g.T, "the next try is far away", func(context.Context) (bool, error) {
		return harness.Holds(g.metric(failures) >= before+quickTries, "it is not")
	})
	g.follow(strings.Replace(wrong, "request.spec.nothing == 1", "request.metadata.namespace == 'clusters'", 1))
	if took := g.awaitPrepared(a); took > promptly {
		g.Errorf("prepared %s after the rule was right", took)
	}
	g.follow(guardedPolicy)
}

// aProviderThatIsGone verifies that a missing provider blocks nothing forever: the status states what is awaited, and the controllers react when a
// user removes it by hand.
func aProviderThatIsGone(g *guarded) {
	r, c := g.team("teams")
	g.patch(c, `{"metadata":{"finalizers":["`+r.FinalizerForCluster()+`","`+holder+`"]}}`)
	elsewhere, here := forRole(toCluster(accessRequest("teams"), c), "edit"), forRole(toCluster(accessRequest("clusters"), c), "view")
	for _, a := range []*v1alpha1.AccessRequest{elsewhere, here} {
		a.Finalizers = []string{holder}
		g.create(a)
		g.awaitPrepared(a)
	}
	for _, object := range []client.Object{r, elsewhere} {
		if err := g.Delete(g.Context(), object); err != nil {
			g.Fatal(err)
		}
	}
	waits := func(message string) {
		g.Helper()
		g.await("the Cluster waits: "+message, c, func() bool {
			condition := meta.FindStatusCondition(c.Status.Conditions, "AccessRequestsDeleted")
			return condition != nil && condition.Status == "False" && strings.HasSuffix(condition.Message, message)
		})
	}
	const already = " already being deleted, until the provider has revoked the access"
	waits(": 2 (" + here.Name + ", and 1 more); 1" + already)
	if err := g.Delete(g.Context(), here); err != nil {
		g.Fatal(err)
	}
	waits(": 2 (" + here.Name + ", and 1 more); 2" + already)
	g.patch(here, `{"metadata":{"finalizers":null}}`)
	waits(": 1; 1" + already)
	g.await("the request waits for the Cluster", r, func() bool {
		condition := meta.FindStatusCondition(r.Status.Conditions, "Granted")
		return condition.Reason == "WaitingForClusterDeletion" && strings.Contains(condition.Message, c.Name)
	})
	g.patch(c, `{"metadata":{"finalizers":null}}`) // forced, without any cleanup
	g.awaitGone(c)
	g.awaitGone(r)
	g.patch(elsewhere, `{"metadata":{"finalizers":null}}`)
	g.awaitGone(elsewhere)
}

// noRequestsAtRest creates objects in all states, and verifies that the controllers send no requests when they have nothing to do.
func noRequestsAtRest(g *guarded) {
	_, c := g.team("teams")
	going := g.cluster()
	unknown := clusterRequest("teams")
	unknown.Spec.Purpose = "unknown"
	prepared, granted := forRole(toCluster(accessRequest("teams"), c), "edit"), forRole(toCluster(accessRequest("teams"), c), "view")
	denied, keeps := forRole(toCluster(accessRequest("clusters"), c), "edit"), forRole(toCluster(accessRequest("clusters"), going), "view")
	waits := toRequest(accessRequest("teams"), unknown)
	g.create(unknown, prepared, granted, denied, keeps, waits)
	for _, a := range []*v1alpha1.AccessRequest{prepared, granted, keeps} {
		g.awaitPrepared(a)
	}
	g.patchStatus(granted, `{"phase":"Granted","observedGeneration":1}`)
	g.awaitDenied(denied, "DeniedByPolicy")
	g.awaitProblem(waits, "InvalidReference", "is not granted")
	if err := g.Delete(g.Context(), going); err != nil {
		g.Fatal(err)
	}
	g.await("it waits", going, func() bool { return meta.IsStatusConditionFalse(going.Status.Conditions, "AccessRequestsDeleted") })
	g.await("nobody knows the purpose", unknown, func() bool { return unknown.Status.Phase == "Pending" })

	before := 0.0
	eventuallyQuiet := time.Now().Add(harness.Timeout)
	for { // waits for the cleanup of the other parts; only time can show rest, as below
		before = g.metric(requests)
		time.Sleep(3 * time.Second)
		if g.metric(requests) == before {
			break
		}
		if time.Now().After(eventuallyQuiet) {
			g.Fatal("there is no rest")
		}
	}
	time.Sleep(10 * time.Second) // only time can show a request by a timer of a different process
	if after := g.metric(requests); after != before || before == 0 {
		g.Errorf("%v requests in ten seconds of rest, after %v", after-before, before)
	}
}

// These are counters of hub-controller-manager since it started: the requests that it sent, and the number of retries of AccessRequests.
const (
	requests = "rest_client_requests_total{"
	failures = `controller_runtime_reconcile_errors_total{controller="accessrequest"}`
)

// metric returns the sum of the metrics with a prefix.
func (g *guarded) metric(name string) (sum float64) {
	g.Helper()
	answer, err := http.Get("http://" + g.metrics + "/metrics")
	if err != nil {
		g.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body := harness.Must(io.ReadAll(answer.Body))(g.T)
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, name) {
			sum += harness.Must(strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64))(g.T)
		}
	}
	return sum
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// promptly is less than the time to the next retry after quickTries, and far above the needs of a busy machine.
const promptly = 5 * time.Second

func TestAccessPrepare(t *testing.T) {
	p := newPreparation(t)
	run := func(name string, f func(*preparation)) {
		t.Run(name, func(t *testing.T) { f(&preparation{T: t, Client: p.Client, hub: p.hub}) })
	}
	run("it is switched off", switchedOff)
	run("only what is selected", onlyWhatIsSelected)
	run("denied stays", deniedStays)
	run("what the policy does not allow", deniedByPolicy)
	run("kills", survivesKills)
	run("access by a ClusterRequest ends with it", endsWithTheClusterRequest)
	p.start()
	run("a Cluster is asked for access", func(p *preparation) {
		c := p.cluster()
		a := toCluster(accessRequest("teams"), c)
		p.create(a)
		p.awaitPrepared(a)
		if a.Labels[v1alpha1.ProfileLabel] != c.Spec.Profile {
			p.Errorf("labels %v", a.Labels)
		}
		p.await("the Cluster stays", c, func() bool { return slices.Contains(c.Finalizers, v1alpha1.AccessFinalizer) })
	})
	run("a late grant", func(p *preparation) {
		r, c := clusterRequest("teams"), p.cluster()
		a := toRequest(accessRequest("teams"), r)
		p.create(a)
		p.awaitProblem(a, "InvalidReference", fmt.Sprintf(`ClusterRequest "teams/%s" not found`, r.Name))
		p.create(r)
		p.awaitProblem(a, "InvalidReference", "is not granted")
		p.grant(r, c)
		if took := p.awaitPrepared(a); took > promptly {
			p.Errorf("prepared %s after the grant", took)
		}
		if a.Spec.ClusterRef == nil || a.Spec.ClusterRef.Name != c.Name || a.Generation != 2 {
			p.Errorf("clusterRef %v, generation %d", a.Spec.ClusterRef, a.Generation)
		}
	})
	run("a late Cluster", func(p *preparation) {
		c := harness.OpenMCPCluster("clusters", p.profile().Name)
		a := toCluster(accessRequest("teams"), c)
		p.create(a)
		p.awaitProblem(a, "InvalidReference", fmt.Sprintf(`referenced Cluster "clusters/%s" not found`, c.Name))
		p.create(c)
		if took := p.awaitPrepared(a); took > promptly {
			p.Errorf("prepared %s after the Cluster came", took)
		}
	})
	run("a late profile", func(p *preparation) {
		c, profile, r := p.cluster(), &v1alpha1.ClusterProfile{}, clusterRequest("teams")
		if err := p.Get(p.Context(), client.ObjectKey{Name: c.Spec.Profile}, profile); err != nil {
			p.Fatal(err)
		}
		if err := p.Delete(p.Context(), profile); err != nil {
			p.Fatal(err)
		}
		a := toRequest(accessRequest("teams"), r)
		p.create(r, a)
		p.grant(r, c)
		p.awaitProblem(a, "InvalidReference", fmt.Sprintf("ClusterProfile %q of the Cluster", profile.Name))
		profile.ResourceVersion = ""
		p.create(profile)
		if took := p.awaitPrepared(a); took > promptly {
			p.Errorf("prepared %s after the profile came", took)
		}
	})
	run("a ClusterRequest that is denied", func(p *preparation) {
		r := clusterRequest("teams")
		a := toRequest(accessRequest("teams"), r)
		p.create(r, a)
		p.patchStatus(r, `{"phase":"Denied","observedGeneration":1}`)
		p.awaitProblem(a, "InvalidReference", "is not granted")
		if len(a.Labels) != 0 || a.Spec.ClusterRef != nil {
			p.Errorf("labels %v, clusterRef %v", a.Labels, a.Spec.ClusterRef)
		}
	})
	run("neither reference, then both", func(p *preparation) {
		a, c := accessRequest("teams"), p.cluster()
		p.create(a)
		p.awaitProblem(a, "ConfigurationProblem", "neither spec.clusterRef nor spec.requestRef is set")
		p.patch(a, fmt.Sprintf(`{"spec":{"clusterRef":{"namespace":%q,"name":%q},"requestRef":{"namespace":"teams","name":"nobody"}}}`, c.Namespace, c.Name))
		p.awaitPrepared(a)
	})
	run("one label is there already", func(p *preparation) {
		c := p.cluster()
		for key, value := range map[string]string{v1alpha1.ProviderLabel: "kind", v1alpha1.ProfileLabel: c.Spec.Profile} {
			a := toCluster(accessRequest("teams"), c)
			a.Labels = map[string]string{key: value}
			p.create(a)
			p.awaitPrepared(a)
		}
	})
	run("a wrong label is kept until its owner removes it", func(p *preparation) {
		a := toCluster(accessRequest("teams"), p.cluster())
		a.Labels = map[string]string{v1alpha1.ProviderLabel: "wrong"}
		p.create(a)
		p.awaitProblem(a, "ConfigurationProblem", `is "wrong"`)
		if len(a.Labels) != 1 || a.Labels[v1alpha1.ProviderLabel] != "wrong" {
			p.Errorf("labels %v", a.Labels)
		}
		p.patch(a, `{"metadata":{"labels":null}}`)
		p.awaitPrepared(a)
	})
	run("the end of its time", func(p *preparation) {
		c := p.cluster()
		waiting, granted := accessRequest("teams"), toCluster(accessRequest("teams"), c)
		waiting.Spec.TTL = &duration.Duration{Duration: 2 * time.Second}
		p.create(waiting, granted)
		p.awaitPrepared(granted)
		p.patchStatus(granted, `{"phase":"Granted","observedGeneration":%d}`, granted.Generation)
		p.awaitGone(waiting)
		// The ttl changes the request for the provider, too: it grants the access again.
		p.patch(granted, `{"spec":{"ttl":"4s"}}`)
		p.await("the change is handed over", granted, func() bool { return isPrepared(granted) && granted.Generation == 2 })
		p.patchStatus(granted, `{"phase":"Granted","observedGeneration":%d}`, granted.Generation)
		p.awaitGone(granted)
	})
	run("what was granted is handed over when it changes, and when it goes", func(p *preparation) {
		a := toCluster(accessRequest("teams"), p.cluster())
		a.Finalizers = []string{holder}
		p.create(a)
		p.awaitPrepared(a)
		p.patchStatus(a, `{"phase":"Granted","observedGeneration":1}`)
		p.patch(a, `{"spec":{"token":{"roleRefs":[{"kind":"ClusterRole","name":"view"}]}}}`)
		p.await("the change is handed over", a, func() bool { return isPrepared(a) && a.Generation == 2 })
		p.patchStatus(a, `{"phase":"Granted","observedGeneration":2}`)
		if err := p.Delete(p.Context(), a); err != nil {
			p.Fatal(err)
		}
		p.await("the deletion is handed over", a, func() bool {
			return a.DeletionTimestamp != nil && a.Status.Phase == "Pending" && a.Status.ObservedGeneration == 3
		})
		p.patch(a, `{"metadata":{"finalizers":null}}`)
	})
	run("operations", func(p *preparation) {
		ignored, c := accessRequest("teams"), p.cluster()
		toCluster(ignored, c).Annotations = map[string]string{"openmcp.cloud/operation": "ignore"}
		ignored.Spec.TTL = &duration.Duration{Duration: time.Second}
		again := toCluster(accessRequest("teams"), c)
		again.Annotations = map[string]string{"openmcp.cloud/operation": "reconcile"}
		p.create(ignored, again)
		p.awaitPrepared(again)
		if len(again.Annotations) != 0 {
			p.Errorf("annotations %v", again.Annotations)
		}
		p.outlives(time.Second, nil)
		p.await("the ignored one is there", ignored, func() bool { return true })
		if ignored.Status.Phase != "" || ignored.Status.ObservedGeneration != 0 || len(ignored.Labels) != 0 {
			p.Errorf("it is %+v", ignored)
		}
		p.patch(ignored, `{"metadata":{"annotations":null}}`)
		p.awaitGone(ignored)
	})
	run("a deleted Cluster stays for those who have access", func(p *preparation) {
		c := p.cluster()
		own, others, late := toCluster(accessRequest("clusters"), c), toCluster(accessRequest("teams"), c), toCluster(accessRequest("teams"), c)
		p.create(own, others)
		p.awaitPrepared(own)
		p.awaitPrepared(others)
		if err := p.Delete(p.Context(), c); err != nil {
			p.Fatal(err)
		}
		waits := func(message string) func() bool {
			return func() bool {
				condition := meta.FindStatusCondition(c.Status.Conditions, "AccessRequestsDeleted")
				return condition != nil && condition.Status == "False" && condition.Reason == "WaitingForAccessRequestDeletion" &&
					strings.HasSuffix(condition.Message, message)
			}
		}
		p.await("the Cluster waits", c, waits(fmt.Sprintf("2 (%s, and 1 more)", own.Name)))
		p.create(late)
		p.awaitProblem(late, "WaitingForAccessRequestDeletion", "is being deleted")
		p.patch(c, `{"metadata":{"finalizers":["`+v1alpha1.AccessFinalizer+`"]}}`) // the provider is ready to delete it
		if err := p.Delete(p.Context(), own); err != nil {
			p.Fatal(err)
		}
		p.await("the Cluster waits on", c, waits(": 1"))
		if err := p.Delete(p.Context(), others); err != nil {
			p.Fatal(err)
		}
		p.awaitGone(c)
		p.awaitProblem(late, "InvalidReference", "not found")
	})
}

func deniedStays(p *preparation) {
	p.start()
	defer func() { p.kill() }()
	c := p.cluster()
	early, late := toRequest(accessRequest("teams"), clusterRequest("teams")), toCluster(accessRequest("teams"), c)
	p.create(early, late)
	p.awaitProblem(early, "InvalidReference", "not found")
	p.awaitPrepared(late)
	for _, a := range []*v1alpha1.AccessRequest{early, late} {
		p.patchStatus(a, `{"phase":"Denied"}`)
	}
	p.kill()
	p.start()
	r := clusterRequest("teams")
	r.Name = early.Spec.RequestRef.Name
	p.create(r)
	p.grant(r, c)
	p.patch(late, `{"metadata":{"labels":{"touched":"true"},"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
	canary := toRequest(accessRequest("teams"), r)
	p.create(canary)
	p.awaitPrepared(canary)
	for _, a := range []*v1alpha1.AccessRequest{early, late} {
		p.await("it is denied", a, func() bool { return a.Status.Phase == "Denied" })
	}
	if len(early.Labels) != 0 || early.Spec.ClusterRef != nil {
		p.Errorf("a denied request is prepared: %v, %v", early.Labels, early.Spec.ClusterRef)
	}
	// A change of the request or a restart of the controllers makes no difference.
	p.patch(late, `{"spec":{"ttl":"24h"}}`)
	p.kill()
	p.start()
	p.await("the change was seen", late, func() bool { return late.Status.ObservedGeneration == late.Generation })
	if late.Generation != 2 || !late.Status.IsDenied() {
		p.Errorf("generation %d, phase %q", late.Generation, late.Status.Phase)
	}
	// Requests without access delay nothing.
	if err := p.Delete(p.Context(), canary); err != nil {
		p.Fatal(err)
	}
	p.patch(c, `{"metadata":{"finalizers":["`+v1alpha1.AccessFinalizer+`"]}}`)
	if err := p.Delete(p.Context(), c); err != nil {
		p.Fatal(err)
	}
	p.awaitGone(c)
}

func deniedByPolicy(p *preparation) {
	config := filepath.Join(p.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(`
scheduler:
  purposeMappings: {mcp: {template: {spec: {profile: kind, tenancy: Exclusive}}}}
  policy:
    accessRequests:
    - name: read the Clusters of others, do anything with one's own
      expression: cluster.metadata.namespace == request.metadata.namespace || permissions.size() == 0 && roleRefs.all(r, r.name == 'view')
`), 0o600); err != nil {
		p.Fatal(err)
	}
	p.start("--scheduler-config=" + config)
	defer p.kill()
	c := p.cluster()
	allowed, denied, own := toCluster(accessRequest("teams"), c), toCluster(accessRequest("teams"), c), toCluster(accessRequest("clusters"), c)
	allowed.Spec.Token.RoleRefs = []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}}
	denied.Spec.Token.RoleRefs = []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "cluster-admin"}}
	denied.Labels = map[string]string{v1alpha1.ProviderLabel: "kind", v1alpha1.ProfileLabel: c.Spec.Profile}
	own.Spec.Token.RoleRefs = denied.Spec.Token.RoleRefs
	p.create(allowed, denied, own)
	p.awaitPrepared(allowed)
	p.awaitPrepared(own)
	p.await("it is denied", denied, func() bool {
		condition := meta.FindStatusCondition(denied.Status.Conditions, "Prepared")
		return denied.Status.Phase == "Denied" && condition != nil && condition.Reason == "DeniedByPolicy"
	})
}

// survivesKills kills the controllers at random moments, while requests are created, granted and deleted.
func survivesKills(p *preparation) {
	const rounds, perRound = 6, 20
	var all []*v1alpha1.AccessRequest
	var clusters []*v1alpha1.Cluster
	half := 0
	for round := range rounds {
		p.start()
		c, r := p.cluster(), clusterRequest("teams")
		clusters = append(clusters, c)
		p.create(r)
		batch := []*v1alpha1.AccessRequest{}
		for i := range perRound {
			a := toRequest(accessRequest("teams"), r)
			if i%2 == 0 {
				a = toCluster(accessRequest("teams"), c)
			}
			batch = append(batch, a)
			p.create(a)
		}
		p.await("the first is being looked at", batch[0], func() bool { return batch[0].Status.Phase != "" })
		p.grant(r, c)
		time.Sleep(rand.N(100 * time.Millisecond)) // a random moment
		p.kill()
		all = append(all, batch...)
		unprepared := 0
		for _, a := range batch {
			if err := p.Get(p.Context(), client.ObjectKeyFromObject(a), a); err != nil {
				p.Fatal(err)
			}
			if v1alpha1.IsClusterProviderResponsibleForAccessRequest(a, "") {
				if !isPrepared(a) {
					p.Errorf("round %d: a provider acts on %+v", round, a)
				}
				if err := p.Get(p.Context(), client.ObjectKeyFromObject(c), c); err != nil || !slices.Contains(c.Finalizers, v1alpha1.AccessFinalizer) {
					p.Errorf("round %d: a provider acts, and its Cluster can go: %v, %v", round, c.Finalizers, err)
				}
			} else {
				unprepared++
			}
		}
		if unprepared > 0 && unprepared < perRound {
			half++
		}
	}
	if half == 0 {
		p.Errorf("none of %d kills was in the middle: this shows nothing", rounds)
	}
	p.start()
	defer func() { p.kill() }()
	for _, a := range all {
		p.awaitPrepared(a)
	}
	for i, c := range clusters {
		p.patch(c, `{"metadata":{"finalizers":["`+v1alpha1.AccessFinalizer+`"]}}`)
		for _, a := range all[i*perRound : (i+1)*perRound] {
			if err := p.Delete(p.Context(), a); err != nil {
				p.Fatal(err)
			}
		}
		if err := p.Delete(p.Context(), c); err != nil {
			p.Fatal(err)
		}
		if i%2 == 0 {
			p.kill()
			p.start()
		}
		p.awaitGone(c)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"crypto/x509/pkix"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TestWorth_OfAgent makes requests as the agents of an accepted cluster and of a denied one, whose certificate is still valid. The shared role
// allows the requests, so that hub-apiserver and the front's policies decide.
func TestWorth_OfAgent(t *testing.T) {
	t.Parallel()
	w := newWorth(t, &ofAllAgents)
	w.accept()
	const denied = "an agent of c2"
	w.add(denied, registration.ClusterUser("c2", "agent"), registration.ClusterGroup("c2"), registration.ManagedClustersGroup)
	subject := func(cluster string) pkix.Name {
		return pkix.Name{CommonName: registration.ClusterUser(cluster, "agent"), Organization: []string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup}}
	}
	accepted := `{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: other}, spec: {hubAcceptsClient: true}}`
	w.asAdmin().create(accepted)
	for _, name := range []string{"c2", "other"} {
		w.asAdmin().create(clusterNamespace(name, name))
		w.asAdmin().create(workOf(name, "web", "", registration.WorkFinalizer))
	}
	w.asAdmin().create(workOf("c1", "web", "", registration.WorkFinalizer))
	w.asAdmin().create(w.request("of-c1", "c1", subject("c1")))
	for who, own := range map[string]string{hubAgent: "c1", denied: "c2"} {
		as := w.as(who)
		for what, err := range map[string]error{
			"update another cluster":           as.update(managedCluster("other"), "b", "metadata", "annotations", "a"),
			"its status":                       as.patchStatus(managedCluster("other"), `{"status":{"version":{"kubernetes":"v1.0.0"}}}`),
			"have it leave":                    as.update(managedCluster("other"), false, "spec", "hubAcceptsClient"),
			"make a cluster":                   as.create(managedCluster("new")),
			"ask for another's certificate":    as.create(w.request("new", "other", subject("other"))),
			"ask for a certificate of nobody":  as.create(w.request("new", "", subject(own))),
			"change a request":                 as.patch(w.request("of-c1", "c1", subject("c1")), `{"metadata":{"labels":{"a":"b"}}}`),
			"list what is in another's place":  as.list("Secret", "c1"),
			"bind what it has to somebody":     as.create(sharedBinding(asUser("eve"))),
			"accept itself":                    as.update(managedCluster(own), true, "spec", "hubAcceptsClient"),
			"its own status, not accepted yet": as.patchStatus(managedCluster(own), `{"status":{"version":{"kubernetes":"v1.0.0"}}}`),
		} {
			w.want(who, what, false, err)
		}
		w.tryWorksAsAgent(who, own, "other", false)
		// An agent with rights in its namespace belongs to an accepted cluster.
		w.want(who, "renew its certificate", who == hubAgent, as.create(w.request("new", own, subject(own))))
		w.want(who, "see its own cluster", true, as.see(managedCluster(own)))
		w.want(who, "see another", false, as.see(managedCluster("other")))
	}
	const letIn = "an agent of an accepted cluster"
	w.add(letIn, registration.ClusterUser("other", "agent"), registration.ClusterGroup("other"), registration.ManagedClustersGroup)
	w.tryWorksAsAgent(letIn, "other", "c1", true)
}

// tryWorksAsAgent makes requests as an agent that the role of all agents allows, so that hub-apiserver decides: on works of all namespaces. The
// rights of an agent on its own works depend on whether its cluster is accepted.
func (w *worth) tryWorksAsAgent(who, own, other string, letIn bool) {
	w.Helper()
	as := w.as(who)
	const spec, letGo, status = `{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`, `{"metadata":{"finalizers":null}}`, `{"status":{"conditions":[]}}`
	mine, others := workOf(own, "web", "", ""), workOf(other, "web", "", "")
	for what, err := range map[string]error{
		"see a work of another cluster":     as.see(others),
		"list the works of another cluster": as.listWorks(other),
		"list the works of all":             as.listWorks(""),
		"change a work of another cluster":  as.patch(others, spec),
		"let go of it":                      as.patch(others, letGo),
		"report on it":                      as.patchStatus(others, status),
		"delete it":                         as.delete(others),
		"make one":                          as.create(workOf(other, "eve", "", "")),
		"change a work of its own":          as.patch(mine, spec),
		"label it":                          as.patch(mine, `{"metadata":{"labels":{"a":"b"}}}`),
		"hold it for good":                  as.patch(mine, `{"metadata":{"finalizers":["example.com/eve"]}}`),
		"delete one of its own":             as.delete(mine),
		"make one of its own":               as.create(workOf(own, "eve", "", "")),
	} {
		w.want(who, what, false, err)
	}
	for what, err := range map[string]error{
		"see a work of its own": as.see(mine), "list the works of its own": as.listWorks(own), "let go of a work of its own": as.patch(mine, letGo),
		"report on a work of its own": as.patchStatus(mine, status),
	} {
		w.want(who, what, letIn, err)
	}
}

// listWorks lists the works of a namespace, or of all namespaces.
func (a actor) listWorks(namespace string) error {
	a.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(workv1.SchemeGroupVersion.WithKind("ManifestWorkList"))
	return a.List(a.Context(), list, client.InNamespace(namespace))
}

// see gets an object.
func (a actor) see(manifest string) error {
	a.Helper()
	object := a.object(manifest)
	return a.Get(a.Context(), client.ObjectKeyFromObject(object), object)
}

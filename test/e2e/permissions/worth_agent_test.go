// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"crypto/x509/pkix"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TestWorth_OfAnAgent has the agents of an accepted cluster and of a denied one, whose certificate lives on, try what the shared role lets
// through to those who decide: hub-apiserver, and the front's policies.
func TestWorth_OfAnAgent(t *testing.T) {
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
		// Who is let in its namespace is of an accepted cluster.
		w.want(who, "renew its certificate", who == hubAgent, as.create(w.request("new", own, subject(own))))
		w.want(who, "see its own cluster", true, as.see(managedCluster(own)))
		w.want(who, "see another", false, as.see(managedCluster("other")))
	}
}

// see reads an object.
func (a actor) see(manifest string) error {
	a.Helper()
	object := a.object(manifest)
	return a.Get(a.Context(), client.ObjectKeyFromObject(object), object)
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// endsWithTheClusterRequest verifies that access by a ClusterRequest ends with it, even if the ClusterRequest is replaced and the shared Cluster
// remains.
func endsWithTheClusterRequest(p *preparation) {
	p.start()
	defer func() { p.kill() }()
	c, r := p.cluster(), clusterRequest("teams")
	p.create(r)
	p.grant(r, c)
	// One of them has a finalizer of its provider, which revokes the access.
	byRequest, held, direct := toRequest(accessRequest("teams"), r), toRequest(accessRequest("teams"), r), toCluster(accessRequest("teams"), c)
	held.Finalizers = []string{holder}
	all := []*v1alpha1.AccessRequest{byRequest, held, direct}
	for _, a := range all {
		p.create(a)
		p.awaitPrepared(a)
		p.patchStatus(a, `{"phase":"Granted","observedGeneration":%d}`, a.Generation)
	}
	if !meta.IsStatusConditionTrue(held.Status.Conditions, r.FinalizerForCluster()) {
		p.Errorf("it does not say by which ClusterRequest it is: %+v", held.Status)
	}
	// While no controller runs, the ClusterRequest is replaced by a different one that has the same Cluster.
	p.kill()
	old := r.UID
	if err := p.Delete(p.Context(), r); err != nil {
		p.Fatal(err)
	}
	p.awaitGone(r)
	again := clusterRequest("teams")
	again.Name = r.Name
	p.create(again)
	p.grant(again, c)
	p.start()
	p.awaitGone(byRequest)
	p.await("the deletion is handed over", held, func() bool {
		return held.DeletionTimestamp != nil && held.Status.Phase == "Pending" && held.Status.ObservedGeneration == held.Generation
	})
	p.patch(held, `{"metadata":{"finalizers":null}}`)
	p.awaitGone(held)

	// A user who requests again has access by the new ClusterRequest, until that is denied. The provider's status of the others remains.
	anew := toRequest(accessRequest("teams"), again)
	anew.Name = byRequest.Name
	p.create(anew)
	p.awaitPrepared(anew)
	if again.UID == old || !meta.IsStatusConditionTrue(anew.Status.Conditions, again.FinalizerForCluster()) {
		p.Errorf("it is %+v", anew.Status)
	}
	p.patchStatus(again, `{"phase":"Denied"}`)
	p.awaitGone(anew)
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(direct), direct); err != nil || !direct.Status.IsGranted() {
		p.Errorf("access that was asked for by the name of the Cluster: %+v, %v", direct.Status, err)
	}
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(c), c); err != nil || !slices.Contains(c.Finalizers, v1alpha1.AccessFinalizer) {
		p.Errorf("the Cluster is %+v, %v", c.ObjectMeta, err)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func switchedOff(p *preparation) {
	p.start("--access-controllers=")
	defer p.kill()
	c := p.cluster()
	a := toCluster(accessRequest("teams"), c)
	p.create(a)
	for range 10 { // more sequential writes than a preparation has
		p.await("the Cluster is kept all the same", c, func() bool { return slices.Contains(c.Finalizers, v1alpha1.AccessFinalizer) })
		p.patch(c, `{"metadata":{"finalizers":["`+holder+`"]}}`)
	}
	p.await("the Cluster is kept on", c, func() bool { return slices.Contains(c.Finalizers, v1alpha1.AccessFinalizer) })
	p.await("the request", a, func() bool { return true })
	if len(a.Labels) != 0 || a.Status.Phase != "" {
		p.Errorf("the request is prepared: %+v", a)
	}
	p.patch(c, `{"metadata":{"finalizers":["`+v1alpha1.AccessFinalizer+`"]}}`)
	for _, object := range []client.Object{c, a} {
		if err := p.Delete(p.Context(), object); err != nil {
			p.Fatal(err)
		}
	}
	p.awaitGone(c)
}

func onlyWhatIsSelected(p *preparation) {
	p.start("--access-request-selector=landscape in (dev, test), !frozen")
	defer p.kill()
	c := p.cluster()
	other, frozen, selected := toCluster(accessRequest("teams"), c), toCluster(accessRequest("teams"), c), toCluster(accessRequest("teams"), c)
	selected.Labels, frozen.Labels = map[string]string{"landscape": "dev"}, map[string]string{"landscape": "test", "frozen": ""}
	frozen.Spec.TTL = &duration.Duration{Duration: time.Second}
	p.create(other, frozen, selected)
	p.awaitPrepared(selected)
	p.outlives(time.Second, map[string]string{"landscape": "dev"})
	for _, a := range []*v1alpha1.AccessRequest{other, frozen} {
		p.await("it is there", a, func() bool { return true })
		if a.Labels[v1alpha1.ProviderLabel] != "" || a.Status.Phase != "" {
			p.Errorf("it is prepared: %+v", a)
		}
	}
	p.patch(other, `{"metadata":{"labels":{"landscape":"test"}}}`)
	p.awaitPrepared(other)
	p.patch(frozen, `{"metadata":{"labels":{"frozen":null}}}`)
	p.awaitGone(frozen)
}

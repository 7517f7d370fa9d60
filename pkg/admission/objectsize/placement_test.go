// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package objectsize_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// placement returns a placement with these sizes in bytes of its metadata and its status.
func placement(metadata, status int) *cluster.Placement {
	p := &cluster.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Annotations: map[string]string{"a": strings.Repeat("x", metadata)}}}
	p.Status.Conditions = []metav1.Condition{{Message: strings.Repeat("x", status)}}
	return p
}

// TestAdmission_PlacementReservesSpaceForStatus verifies that the scheduler has room for the status, whatever a tenant writes.
func TestAdmission_PlacementReservesSpaceForStatus(t *testing.T) {
	const own, room = objectsize.Limit - objectsize.StatusReserve, objectsize.StatusReserve
	p := objectsize.New(func(_ schema.GroupResource, object runtime.Object) (int, error) {
		size := len(object.(*cluster.Placement).Annotations["a"])
		for _, c := range object.(*cluster.Placement).Status.Conditions {
			size += len(c.Message)
		}
		return size, nil
	})
	p.SetAuthorizer(&at.Authorizer{})
	for name, c := range map[string]struct {
		now, before *cluster.Placement
		subresource string
		refused     bool
	}{
		"a new one":                      {now: placement(own, 0)},
		"a new one above":                {now: placement(own+1, 0), refused: true},
		"larger, with a status":          {now: placement(own, room), before: placement(1, room)},
		"too large, with a small status": {now: placement(own+1, 1), before: placement(own, 1), refused: true},
		"from before, as it was":         {now: placement(own+9, 1), before: placement(own+9, 1)},
		"from before, larger":            {now: placement(own+10, 1), before: placement(own+9, 1), refused: true},
		"the status":                     {now: placement(own, room), before: placement(own, 1), subresource: "status"},
		"a status above":                 {now: placement(own, room+1), before: placement(own, 1), subresource: "status", refused: true},
		"the status of one from before":  {now: placement(own+9, room-9), before: placement(own+9, 1), subresource: "status"},
	} {
		request := at.Request{Object: c.now, Resource: "placements", Version: "v1beta1", Subresource: c.subresource}
		if c.before != nil {
			request.Old = c.before
		}
		if _, err := at.Validate(t, p, request.Attributes()); apierrors.IsRequestEntityTooLargeError(err) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

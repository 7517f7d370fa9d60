// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package objectsize_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// sized returns a cluster of this size in bytes.
func sized(n int) *cluster.ManagedCluster {
	c := at.Cluster("c1")
	c.Annotations = map[string]string{"a": strings.Repeat("x", n)}
	return c
}

func plugin(a *at.Authorizer) *objectsize.Plugin {
	p := objectsize.New(func(_ schema.GroupResource, object runtime.Object) (int, error) {
		return len(object.(metav1.Object).GetAnnotations()["a"]), nil
	})
	p.SetAuthorizer(a)
	return p
}

func TestAdmission_LimitsObjectSize(t *testing.T) {
	const limit, most = objectsize.Limit, objectsize.Limit + objectsize.Reserve
	end := at.Rule("update", cluster.GroupName, "managedclusters/finalizers", "c1")
	accept := at.Rule("update", permission.RegisterGroup, "managedclusters/accept", "c1")
	for name, c := range map[string]struct {
		now, before      int
		refused, toOwner bool
		dying            bool
	}{
		"a new one":                     {now: limit - objectsize.Reserve},
		"a new one above":               {now: limit - objectsize.Reserve + 1, refused: true},
		"a huge one":                    {now: most + 1, refused: true, toOwner: true},
		"up to the limit":               {now: limit, before: 1},
		"above it":                      {now: limit + 1, before: limit, refused: true},
		"above the reserve":             {now: most + 1, before: limit, refused: true, toOwner: true},
		"further into the reserve":      {now: limit + 2, before: limit + 1, refused: true},
		"back below":                    {now: limit, before: most},
		"in the reserve, as it was":     {now: limit + 1, before: limit + 1, refused: true},
		"in the reserve, a bit less":    {now: limit + 1, before: limit + 2, refused: true},
		"let go, in the reserve":        {now: limit + 1, before: limit + 2, dying: true},
		"let go, and filled":            {now: limit + 3, before: limit + 2, dying: true, refused: true},
		"from before, as it was":        {now: most + 9, before: most + 9},
		"from before, a bit less":       {now: most + 8, before: most + 9},
		"from before, into the reserve": {now: limit + 1, before: most + 9},
		"from before, larger":           {now: most + 10, before: most + 9, refused: true, toOwner: true},
	} {
		for _, subresource := range []string{"", "status", "label", "accept"} {
			request := at.Request{Object: sized(c.now), Subresource: subresource}
			if c.before > 0 {
				request.Old = sized(c.before)
				if c.dying {
					request.Object.(*cluster.ManagedCluster).DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
				}
			} else if subresource != "" {
				continue
			}
			for who, try := range map[string]struct {
				a       *at.Authorizer
				refused bool
			}{
				"who may write":         {&at.Authorizer{}, c.refused},
				"who cannot be asked":   {&at.Authorizer{Err: errors.New("connection refused")}, c.refused},
				"who has its end":       {&at.Authorizer{Grants: []rbac.Permission{end}}, c.toOwner},
				"upstream's controller": {&at.Authorizer{Grants: []rbac.Permission{accept}}, c.toOwner},
			} {
				_, err := at.Validate(t, plugin(try.a), request.Attributes())
				if apierrors.IsRequestEntityTooLargeError(err) != try.refused || err != nil && !try.refused {
					t.Errorf("%s, %s, /%s: got %v", name, who, subresource, err)
				}
				if !c.refused && c.now <= limit && len(try.a.Asked) > 0 {
					t.Errorf("%s: asked %v", name, try.a.Asked)
				}
			}
		}
	}
	_, err := at.Validate(t, plugin(&at.Authorizer{}), at.Request{Object: sized(limit + 1)}.Attributes())
	for _, want := range []string{"262145", "196608", `"c1"`, "make its metadata, spec or status smaller"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	// The reserve is not for the user who filled the rest: the hub's next write must have room.
	c := sized(limit + 400)
	c.Annotations["a"] = strings.Repeat("y", limit+400)
	_, err = at.Validate(t, plugin(&at.Authorizer{}), at.Request{Object: c, Old: sized(limit + 400)}.Attributes())
	if !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("got %v", err)
	}
	if err := objectsize.New(nil).ValidateInitialization(); err == nil {
		t.Error("it starts without an authorizer")
	}
}

// TestAdmission_LargerLimitForWorks: works contain other objects.
func TestAdmission_LargerLimitForWorks(t *testing.T) {
	const limit = objectsize.WorkLimit
	for name, c := range map[string]struct {
		resource string
		object   func(metav1.ObjectMeta) runtime.Object
	}{
		"a work":        {"manifestworks", func(m metav1.ObjectMeta) runtime.Object { return &work.ManifestWork{ObjectMeta: m} }},
		"a replica set": {"manifestworkreplicasets", func(m metav1.ObjectMeta) runtime.Object { return &work.ManifestWorkReplicaSet{ObjectMeta: m} }},
	} {
		for size, refused := range map[int]bool{objectsize.Limit + 1: false, limit: false, limit + 1: true} {
			request := at.Request{Group: work.GroupName, Resource: c.resource,
				Object: c.object(metav1.ObjectMeta{Name: "a", Namespace: "c1", Annotations: map[string]string{"a": strings.Repeat("x", size)}})}
			_, err := at.Validate(t, plugin(&at.Authorizer{}), request.Attributes())
			if apierrors.IsRequestEntityTooLargeError(err) != refused || err != nil && !refused {
				t.Errorf("%s of %d bytes: %v", name, size, err)
			}
		}
	}
}

// TestAdmission_ReservesSpaceBesideAgents verifies that a team can label and taint the cluster of an agent that fills it.
func TestAdmission_ReservesSpaceBesideAgents(t *testing.T) {
	const limit = objectsize.Limit
	const own = limit - objectsize.Reserve
	agent := func(cluster string) user.Info {
		return &user.DefaultInfo{Name: registration.ClusterUser(cluster, "a"), Groups: []string{registration.ClusterGroup(cluster)}}
	}
	byAWS := &user.DefaultInfo{Name: "a", Groups: []string{registration.AWSGroup("c1"), registration.AWSManagedClustersGroup}}
	for name, c := range map[string]struct {
		by          user.Info
		now, before int
		refused     bool
	}{
		"up to its share":                 {by: agent("c1"), now: own, before: 1},
		"above it":                        {by: agent("c1"), now: own + 1, before: own, refused: true},
		"above it, an agent by AWS":       {by: byAWS, now: own + 1, before: own, refused: true},
		"others":                          {by: at.User, now: limit, before: own},
		"as others have left it":          {by: agent("c1"), now: own + 9, before: own + 9},
		"a bit less than that":            {by: agent("c1"), now: own + 8, before: own + 9},
		"a bit more than that":            {by: agent("c1"), now: own + 10, before: own + 9, refused: true},
		"in the reserve of the hub":       {by: agent("c1"), now: limit + 1, before: limit + 1, refused: true},
		"out of the reserve of the hub":   {by: agent("c1"), now: limit, before: limit + 1},
		"a new one, with its name to be":  {by: agent("c1"), now: own + 1, refused: true},
		"a new one, by a bootstrap token": {by: at.User, now: own + 1, refused: true},
	} {
		for _, subresource := range []string{"", "status"} {
			request := at.Request{Object: sized(c.now), Subresource: subresource, By: c.by}
			if c.before > 0 {
				request.Old = sized(c.before)
			} else if subresource != "" {
				continue
			}
			_, err := at.Validate(t, plugin(&at.Authorizer{}), request.Attributes())
			if apierrors.IsRequestEntityTooLargeError(err) != c.refused || err != nil && !c.refused {
				t.Errorf("%s, /%s: got %v", name, subresource, err)
			}
		}
	}
}

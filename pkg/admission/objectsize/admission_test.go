// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package objectsize_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// sized is a cluster of so many bytes.
func sized(n int) *cluster.ManagedCluster {
	c := at.Cluster("c1")
	c.Annotations = map[string]string{"a": strings.Repeat("x", n)}
	return c
}

func plugin(a *at.Authorizer) *objectsize.Plugin {
	p := objectsize.New()
	p.SetAuthorizer(a)
	p.SetSizer(func(_ schema.GroupResource, object runtime.Object) (int, error) {
		return len(object.(*cluster.ManagedCluster).Annotations["a"]), nil
	})
	return p
}

func TestAdmission_AnObjectGrowsUpToTheLimit(t *testing.T) {
	const limit, most = objectsize.Limit, objectsize.Limit + objectsize.Reserve
	end := at.Rule("update", cluster.GroupName, "managedclusters/finalizers", "c1")
	accept := at.Rule("update", permission.RegisterGroup, "managedclusters/accept", "c1")
	for name, c := range map[string]struct {
		now, before      int
		refused, toOwner bool
	}{
		"a new one":                     {limit, 0, false, false},
		"a new one above":               {limit + 1, 0, true, false},
		"a huge one":                    {most + 1, 0, true, true},
		"up to the limit":               {limit, 1, false, false},
		"above it":                      {limit + 1, limit, true, false},
		"above the reserve":             {most + 1, limit, true, true},
		"further above":                 {limit + 2, limit + 1, true, false},
		"as before":                     {limit + 1, limit + 1, false, false},
		"less than before":              {most + 1, most + 2, false, false},
		"back below":                    {1, most + 1, false, false},
		"beyond the reserve, as it was": {most + 9, most + 9, false, false},
	} {
		for _, subresource := range []string{"", "status", "label", "accept"} {
			request := at.Request{Object: sized(c.now), Subresource: subresource}
			if c.before > 0 {
				request.Old = sized(c.before)
			} else if subresource != "" {
				continue
			}
			for who, try := range map[string]struct {
				a       *at.Authorizer
				refused bool
			}{
				"who may write":         {&at.Authorizer{}, c.refused},
				"who cannot be asked":   {&at.Authorizer{Err: errors.New("connection refused")}, c.refused},
				"who has its end":       {&at.Authorizer{Grants: []permission.Rule{end}}, c.toOwner},
				"upstream's controller": {&at.Authorizer{Grants: []permission.Rule{accept}}, c.toOwner},
			} {
				_, err := at.Validate(t, plugin(try.a), request.Attributes())
				if apierrors.IsRequestEntityTooLargeError(err) != try.refused || err != nil && !try.refused {
					t.Errorf("%s, %s, /%s: got %v", name, who, subresource, err)
				}
				if c.now <= limit && len(try.a.Asked) > 0 {
					t.Errorf("%s: asked %v", name, try.a.Asked)
				}
			}
		}
	}
	_, err := at.Validate(t, plugin(&at.Authorizer{}), at.Request{Object: sized(limit + 1)}.Attributes())
	for _, want := range []string{"262145", "262144", `"c1"`, "leave out"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	if err := objectsize.New().ValidateInitialization(); err == nil {
		t.Error("it starts without a sizer")
	}
}

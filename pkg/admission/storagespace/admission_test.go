// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package storagespace

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// plugin returns a plugin that measures clusters by an annotation.
func plugin() *Plugin {
	return New(func(_ schema.GroupResource, object runtime.Object) (int, error) {
		c := object.(*cluster.ManagedCluster)
		if c.Annotations["unknown"] != "" {
			return 0, errors.New("no codec")
		}
		return len(c.Annotations["a"]), nil
	})
}

func TestValidate(t *testing.T) {
	alive := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	dying := alive.DeepCopy()
	dying.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		operation      admission.Operation
		subresource    string
		old, new       runtime.Object
		dryRun, passes bool
	}{
		"create":                                {operation: admission.Create, new: alive},
		"create, dry run":                       {operation: admission.Create, new: alive, dryRun: true},
		"create of what says that it is dying":  {operation: admission.Create, new: dying},
		"update":                                {operation: admission.Update, old: alive, new: alive},
		"update, dry run":                       {operation: admission.Update, old: alive, new: alive, dryRun: true},
		"update of the status":                  {operation: admission.Update, subresource: "status", old: alive, new: alive},
		"update that says that it is dying":     {operation: admission.Update, old: alive, new: dying},
		"update of what is being deleted":       {operation: admission.Update, old: dying, new: dying, passes: true},
		"status of what is being deleted":       {operation: admission.Update, subresource: "status", old: dying, new: dying, passes: true},
		"create of a token, which is no object": {operation: admission.Create, subresource: "token", new: alive, passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := plugin()
			p.SetAuthorizer(&at.Authorizer{})
			request := admission.NewAttributesRecord(c.new, c.old, schema.GroupVersionKind{Kind: "ManagedCluster"}, "", "a",
				cluster.Resource("managedclusters").WithVersion("v1"), c.subresource, c.operation, nil, c.dryRun, at.User)
			if err := p.Validate(t.Context(), request, nil); err != nil {
				t.Errorf("while there is room: %v", err)
			}
			p.CheckSpace = func() error { return errors.New("the etcd is full") }
			err := p.Validate(t.Context(), request, nil)
			if c.passes {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "the etcd is full") {
				t.Errorf("without room: %v", err)
			}
		})
	}
	if p := plugin(); p.Handles(admission.Delete) || p.Handles(admission.Connect) {
		t.Error("it looks at deletions")
	}
}

// TestValidate_AllowsUpdatesBeforeDeletion verifies that the reserve is only for updates that lead to the deletion of objects, and not for users who grow
// them on the way.
func TestValidate_AllowsUpdatesBeforeDeletion(t *testing.T) {
	state := func(size int, accepted, dying bool, finalizers ...string) *cluster.ManagedCluster {
		c := at.Cluster("c1")
		c.Annotations, c.Finalizers, c.Spec.HubAcceptsClient = map[string]string{"a": strings.Repeat("x", size)}, finalizers, accepted
		if dying {
			c.DeletionTimestamp = new(metav1.Now())
		}
		return c
	}
	odd := state(9, false, true)
	odd.Annotations["unknown"] = "x"
	for name, c := range map[string]struct {
		old, new    *cluster.ManagedCluster
		all, holder bool
	}{
		"denied":                            {old: state(9, true, false), new: state(9+slack, false, false), holder: true},
		"denied, and filled":                {old: state(9, true, false), new: state(10+slack, false, false)},
		"accepted":                          {old: state(9, false, false), new: state(9, true, false)},
		"denied as before":                  {old: state(9, false, false), new: state(9, false, false)},
		"a finalizer less":                  {old: state(9, true, false, "a", "b"), new: state(9, true, false, "b"), holder: true},
		"a finalizer less, and filled":      {old: state(9, true, false, "a"), new: state(10+slack, true, false)},
		"another finalizer":                 {old: state(9, true, false, "a"), new: state(9, true, false, "b")},
		"smaller, and alive":                {old: state(9, true, false), new: state(1, true, false)},
		"being deleted":                     {old: state(9, true, true, "a"), new: state(9+slack, true, true), all: true, holder: true},
		"being deleted, and filled":         {old: state(9, true, true, "a"), new: state(10+slack, true, true, "a"), holder: true},
		"being deleted, and not measurable": {old: odd, new: odd, holder: true},
	} {
		for _, subresource := range []string{"", "status"} {
			for _, rule := range []rbac.Permission{
				{}, at.Rule("update", cluster.GroupName, "managedclusters/finalizers", "c1"),
				at.Rule("update", permission.RegisterGroup, "managedclusters/accept", "c1"),
			} {
				p := plugin()
				p.SetAuthorizer(&at.Authorizer{Grants: []rbac.Permission{rule}})
				p.CheckSpace = func() error { return errors.New("the etcd is full") }
				want := c.all
				if rule.Verb != "" {
					want = c.holder
				}
				_, err := at.Validate(t, p, at.Request{Object: c.new, Old: c.old, Subresource: subresource}.Attributes())
				if (err == nil) != want {
					t.Errorf("%s, /%s, holding %q: got %v", name, subresource, rule.Verb+" "+rule.Subresource, err)
				}
			}
		}
	}
	if err := plugin().ValidateInitialization(); err == nil {
		t.Error("it starts without an authorizer")
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusteraccept"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusterlabel"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// guard has the label and the accept plugin, for a user with the grants.
type guard []admission.ValidationInterface

func guardFor(grants ...rbac.Permission) guard {
	a := &at.Authorizer{Grants: grants}
	labels, accept := managedclusterlabel.New(), managedclusteraccept.New()
	labels.SetAuthorizer(a)
	accept.SetAuthorizer(a)
	accept.SetExternalKubeInformerFactory(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	accept.SetReadyFunc(func() bool { return true })
	return guard{labels, accept}
}

// write sends an object to a storage like the handlers of update, patch and server-side apply: with the validations of a create and of an update, of
// which the storage calls the applicable one.
func (g guard) write(t *testing.T, s *generic.Resource, u rest.Updater, subresource string, object *cluster.ManagedCluster, mayCreate bool) error {
	t.Helper()
	attributes := func(op admission.Operation, object, old runtime.Object) admission.Attributes {
		return admission.NewAttributesRecord(object, old, cluster.SchemeGroupVersion.WithKind("ManagedCluster"), "", "c1",
			cluster.Resource("managedclusters").WithVersion("v1"), subresource, op, nil, false, at.User)
	}
	create := func(ctx context.Context, object runtime.Object) error {
		for _, plugin := range g {
			validate := rest.AdmissionToValidateObjectFunc(plugin, attributes(admission.Create, object, nil), nil)
			if err := validate(ctx, object); err != nil {
				return err
			}
		}
		return nil
	}
	update := func(ctx context.Context, object, old runtime.Object) error {
		for _, plugin := range g {
			validate := rest.AdmissionToValidateObjectUpdateFunc(plugin, attributes(admission.Update, object, old), nil)
			if err := validate(ctx, object, old); err != nil {
				return err
			}
		}
		return nil
	}
	_, _, err := u.Update(registrytest.Context(s, subresource), "c1", rest.DefaultUpdatedObjectInfo(object),
		create, update, mayCreate, &metav1.UpdateOptions{})
	return err
}

func spec(accepts bool, labels ...string) *cluster.ManagedCluster {
	c := at.Cluster("c1", labels...)
	c.Spec.HubAcceptsClient, c.Spec.LeaseDurationSeconds = accepts, 60
	return c
}

const teamKey = "cluster.open-cluster-management.io/team"

func TestWrites_CreatingApplyIsValidatedAsCreate(t *testing.T) {
	accept := at.Rule("update", cluster.GroupName, "managedclusters/accept", "c1")
	for name, c := range map[string]struct {
		object  *cluster.ManagedCluster
		grants  []rbac.Permission
		refused bool
	}{
		"plain":                     {object: spec(false)},
		"labelled":                  {object: spec(false, teamKey, "a"), refused: true},
		"labelled, with permission": {object: spec(false, teamKey, "a"), grants: at.Labels(teamKey + ":a")},
		"accepted":                  {object: spec(true), refused: true},
		"accepted, with permission": {object: spec(true), grants: []rbac.Permission{accept}},
		"both, with one of two rights": {object: spec(true, teamKey, "a"), grants: []rbac.Permission{accept},
			refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t)
			err := guardFor(c.grants...).write(t, s, s, "", c.object, true)
			if apierrors.IsForbidden(err) != c.refused || (err != nil) != c.refused {
				t.Fatalf("got %v, want refused: %t", err, c.refused)
			}
			_, err = s.Get(registrytest.Context(s), "c1", &metav1.GetOptions{})
			if apierrors.IsNotFound(err) != c.refused {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestWrites_SubresourcesNeedPermissionForProtectedFields(t *testing.T) {
	s := newStorage(t)
	stored := registrytest.Create(t, registrytest.Context(s), s, spec(false, teamKey, "a"))
	for name, u := range map[string]rest.Updater{"": s, "label": s.Subresources["label"], "accept": s.Subresources["accept"], "status": s.Subresources["status"]} {
		for what, change := range map[string]func(*cluster.ManagedCluster){
			"gain a label": func(c *cluster.ManagedCluster) { c.Labels["info.open-cluster-management.io/region"] = "apac" },
			"lose a label": func(c *cluster.ManagedCluster) { delete(c.Labels, teamKey) },
			"swap a label": func(c *cluster.ManagedCluster) { c.Labels[teamKey] = "b" },
			"be accepted":  func(c *cluster.ManagedCluster) { c.Spec.HubAcceptsClient = true },
		} {
			changed := stored.DeepCopy()
			change(changed)
			err := guardFor().write(t, s, u, name, changed, false)
			if err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%q, %s: %v", name, what, err)
			}
			read, err := s.Get(registrytest.Context(s), "c1", &metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := read.(*cluster.ManagedCluster)
			if len(got.Labels) != 1 || got.Labels[teamKey] != "a" || got.Spec.HubAcceptsClient {
				t.Fatalf("%q, %s: became %v, accepted %t", name, what, got.Labels, got.Spec.HubAcceptsClient)
			}
		}
	}
}

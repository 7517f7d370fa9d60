// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// causes returns the number of errors in a response.
func causes(err error) int {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return 0
	}
	return len(status.Status().Details.Causes)
}

// TestWrites_ManyErrors: a few bytes of a request can cause several errors, and Kubernetes takes minutes to join a hundred thousand
// of them.
func TestWrites_ManyErrors(t *testing.T) {
	const many, most = 600, 100
	for name, r := range resources(t) {
		spoilt := map[string]func(metav1.Object){
			"labels": func(m metav1.Object) { m.SetLabels(badKeys(many)) },
			"annotations": func(m metav1.Object) {
				m.SetAnnotations(badKeys(many))
			},
			"owners":     func(m metav1.Object) { m.SetOwnerReferences(make([]metav1.OwnerReference, many)) },
			"finalizers": func(m metav1.Object) { m.SetFinalizers(make([]string, many)) },
			"managers":   func(m metav1.Object) { m.SetManagedFields(make([]metav1.ManagedFieldsEntry, many)) },
			"a manager with many faults": func(m metav1.Object) {
				m.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: strings.Repeat("\x7f", many), Operation: metav1.ManagedFieldsOperationUpdate}})
			},
		}
		if name == "managedclusters" {
			spoilt["taints"] = func(m metav1.Object) { m.(*cluster.ManagedCluster).Spec.Taints = make([]cluster.Taint, many) }
			spoilt["a request full of taints"] = func(m metav1.Object) { m.(*cluster.ManagedCluster).Spec.Taints = make([]cluster.Taint, 100*many) }
		}
		for what, spoil := range spoilt {
			made := r.object.DeepCopyObject()
			registrytest.Meta(made).SetName("many")
			spoil(registrytest.Meta(made))
			_, err := r.Create(r.ctx, made, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			wantBrief(t, name+": create with many "+what, err, most)
		}
		registrytest.Create(t, r.ctx, r, r.object.DeepCopyObject())
		for what, spoil := range spoilt {
			changed := func() runtime.Object {
				stored, err := r.Get(r.ctx, "dev", &metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				changed := stored.DeepCopyObject()
				spoil(registrytest.Meta(changed))
				return changed
			}
			_, err := registrytest.Update(r.ctx, r, changed())
			wantBrief(t, name+": update with many "+what, err, most)
			for i, sub := range r.subresources {
				_, err := registrytest.Update(r.ctx, sub.(rest.Updater), changed())
				if what == "a request full of taints" && !apierrors.IsRequestEntityTooLargeError(err) {
					t.Errorf("%s, subresource %d: with %s: got %v", name, i, what, short(err))
				}
				if err != nil { // the others retain what they must not change
					wantBrief(t, fmt.Sprintf("%s, subresource %d: with many %s", name, i, what), err, most)
				}
			}
		}
	}
	r := resources(t)["managedclusters"]
	registrytest.Create(t, r.ctx, r, r.object.DeepCopyObject())
	stored, err := r.Get(r.ctx, "dev", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims := stored.DeepCopyObject().(*cluster.ManagedCluster)
	claims.Status.ClusterClaims = make([]cluster.ManagedClusterClaim, many)
	_, err = registrytest.Update[runtime.Object](r.ctx, r.status, claims)
	wantBrief(t, "status with many claims", err, most)
}

func wantBrief(t *testing.T, what string, err error, most int) {
	t.Helper()
	if !apierrors.IsInvalid(err) && !apierrors.IsRequestEntityTooLargeError(err) && !apierrors.IsBadRequest(err) {
		t.Errorf("%s: got %v", what, short(err))
	}
	if n := causes(err); n > most {
		t.Errorf("%s: the answer tells %d faults", what, n)
	}
}

func short(err error) string {
	text := fmt.Sprint(err)
	return text[:min(len(text), 300)]
}

func badKeys(n int) map[string]string {
	keys := map[string]string{}
	for i := range n {
		keys[fmt.Sprintf("!%d", i)] = ""
	}
	return keys
}

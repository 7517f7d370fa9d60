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

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

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
			p := New()
			request := admission.NewAttributesRecord(c.new, c.old, schema.GroupVersionKind{Kind: "ManagedCluster"}, "", "a",
				cluster.Resource("managedclusters").WithVersion("v1"), c.subresource, c.operation, nil, c.dryRun, nil)
			if err := p.Validate(t.Context(), request, nil); err != nil {
				t.Errorf("while there is room: %v", err)
			}
			p.SetRoom(func() error { return errors.New("the etcd is full") })
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
	if New().Handles(admission.Delete) || New().Handles(admission.Connect) {
		t.Error("it looks at deletions")
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentworks

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const foreign = "example.com/keep"

func there() *work.ManifestWork {
	return &work.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web", Labels: map[string]string{"a": "b"}, Finalizers: []string{foreign}},
		Spec: work.ManifestWorkSpec{Workload: work.ManifestsTemplate{Manifests: []work.Manifest{
			{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}},
		}}},
	}
}

func TestValidate_AgentChanges(t *testing.T) {
	agents := map[string]user.Info{
		"by certificate": &user.DefaultInfo{Name: registration.ClusterUser("c1", "a"), Groups: []string{registration.ClusterGroup("c1"), registration.ManagedClustersGroup}},
		"by AWS":         &user.DefaultInfo{Name: registration.AWSGroup("c1"), Groups: []string{registration.AWSGroup("c1"), registration.AWSManagedClustersGroup}},
	}
	for name, c := range map[string]struct {
		change func(*work.ManifestWork)
		says   string
	}{
		"nothing":             {func(*work.ManifestWork) {}, ""},
		"its finalizer":       {func(w *work.ManifestWork) { w.Finalizers = []string{work.ManifestWorkFinalizer, foreign} }, ""},
		"the status":          {func(w *work.ManifestWork) { w.Status.Conditions = []metav1.Condition{{Type: "Applied"}} }, ""},
		"a manifest":          {func(w *work.ManifestWork) { w.Spec.Workload.Manifests[0].Raw = []byte(`{}`) }, "cannot change spec:"},
		"an executor":         {func(w *work.ManifestWork) { w.Spec.Executor = &work.ManifestWorkExecutor{} }, "cannot change spec:"},
		"another's finalizer": {func(w *work.ManifestWork) { w.Finalizers = nil }, "cannot change metadata.finalizers:"},
		"a new finalizer":     {func(w *work.ManifestWork) { w.Finalizers = append(w.Finalizers, "example.com/x") }, "cannot change metadata.finalizers:"},
		"the replica set of it": {func(w *work.ManifestWork) { w.Labels = map[string]string{work.ReplicaSetLabel: "shop.web"} },
			"cannot change metadata.labels:"},
		"an owner and an annotation": {func(w *work.ManifestWork) {
			w.OwnerReferences, w.Annotations = make([]metav1.OwnerReference, 1), map[string]string{work.CleanupPriorityAnnotation: "100"}
		}, "cannot change metadata.annotations and metadata.ownerReferences:"},
	} {
		for how, who := range agents {
			for _, subresource := range []string{"", "status", "anything"} {
				w := there()
				c.change(w)
				request := at.Request{Object: w, Old: there(), Group: work.GroupName, Resource: "manifestworks", Subresource: subresource, By: who}
				_, err := at.Validate(t, New(), request.Attributes())
				if (c.says == "") != (err == nil) || err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%s by an agent %s, /%s: %v, want %q", name, how, subresource, err, c.says)
				}
				request.By = at.User
				if _, err := at.Validate(t, New(), request.Attributes()); err != nil {
					t.Errorf("%s by who is no agent: %v", name, err)
				}
			}
		}
	}
	for how, who := range agents {
		request := at.Request{Object: there(), Group: work.GroupName, Resource: "manifestworks", By: who}
		if _, err := at.Validate(t, New(), request.Attributes()); !apierrors.IsForbidden(err) {
			t.Errorf("a new work by an agent %s: %v", how, err)
		}
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// prepared sets the status that a generation of a request has after its preparation.
func (p *providing) prepared(t *testing.T, ar *v1alpha1.AccessRequest, status string, generation int64) {
	t.Helper()
	p.patchStatus(t, ar, fmt.Sprintf(`{"status":{"phase":"Pending","observedGeneration":%[1]d,"conditions":[{"type":"Prepared",`+
		`"status":%[2]q,"reason":"Test","message":"","observedGeneration":%[1]d,"lastTransitionTime":%[3]q}]}}`,
		generation, status, time.Now().UTC().Format(time.RFC3339)))
}

// grantsOnlyWhatIsPrepared verifies that a user who may write a request cannot bypass the policy by an edit after the policy decided.
func (p *providing) grantsOnlyWhatIsPrepared(t *testing.T) {
	const toAdmin = `{"spec":{"token":{"roleRefs":[{"kind":"ClusterRole","name":"cluster-admin"}]}}}`
	ar := p.unprepared(t, "edited", p.cluster, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	p.patch(t, ar, toAdmin)
	nothing := func(when string) {
		t.Helper()
		p.past(t, p.cluster)
		if left := p.left(t, "existing", "edited"); len(left) > 0 {
			t.Fatalf("%s, there is %v", when, left)
		}
	}
	p.prepared(t, ar, "True", 1)
	nothing("edited after its preparation")
	p.patch(t, ar, `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
	nothing("asked to look again")
	p.prepared(t, ar, "False", 2)
	nothing("not prepared")
	p.prepared(t, ar, "True", 2)
	p.granted(t, ar)
	if left := p.left(t, "existing", "edited"); len(left) != 2 {
		t.Errorf("got %v", left)
	}
	p.delete(t, ar)
	p.awaitGone(t, ar)
}

func (p *providing) takesBackWhatIsDenied(t *testing.T) {
	ar := p.request(t, "denied", p.cluster, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	secret := p.granted(t, ar)
	user := p.as(t, secret)
	p.patchStatus(t, ar, `{"status":{"phase":"Denied"}}`)
	p.awaitGone(t, secret)
	if left := p.left(t, "existing", "denied"); len(left) > 0 {
		t.Errorf("the Secret is gone, and there is still %v", left)
	}
	harness.Eventually(t, "the token is of no use", func(ctx context.Context) (bool, error) {
		_, err := user.CoreV1().Pods("default").List(ctx, listOptions())
		return err != nil, nil
	})
	harness.Eventually(t, "the request says so", func(context.Context) (bool, error) {
		p.get(t, ar)
		condition := meta.FindStatusCondition(ar.Status.Conditions, "AccessReady")
		if ar.Status.Phase != v1alpha1.REQUEST_DENIED || ar.Status.SecretRef != nil ||
			condition.Reason != "Denied" || len(ar.Finalizers) > 0 {
			return false, fmt.Errorf("finalizers %v, status %+v", ar.Finalizers, ar.Status)
		}
		return true, nil
	})
	// openMCP's operator prepares the request again after the change.
	p.patch(t, ar, `{"spec":{"token":{"roleRefs":[]}}}`)
	p.patchStatus(t, ar, `{"status":{"phase":"Pending","observedGeneration":2}}`)
	harness.Eventually(t, "it is denied again", func(context.Context) (bool, error) {
		p.get(t, ar)
		return ar.Status.Phase == v1alpha1.REQUEST_DENIED && ar.Status.ObservedGeneration == 2, nil
	})
	if left := p.left(t, "existing", "denied"); len(left) > 0 || len(ar.Finalizers) > 0 {
		t.Errorf("there is %v, and the finalizers %v", left, ar.Finalizers)
	}
	p.delete(t, ar)
	p.awaitGone(t, ar)
}

// TestAccessProvider_EditBeforeGrant verifies that a request that is changed before it is granted is prepared again, and granted with its current
// spec.
func TestAccessProvider_EditBeforeGrant(t *testing.T) {
	p := newProviding(t)
	startControllers(t, p.hub)
	p.create(&corev1.Namespace{ObjectMeta: harness.Named(harness.ProvidersNamespace)})
	config := p.admit("existing", "late", []byte("not yet"))
	p.run("existing")
	c := p.newCluster("test.existing.late", "late")
	ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "edited"}}
	ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}
	ar.Spec.Token = &v1alpha1.TokenConfig{}
	p.create(ar)
	p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "ClusterNotReady")
	p.patch(t, ar, `{"spec":{"token":{"roleRefs":[{"kind":"ClusterRole","name":"view"}]}}}`)
	p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "ClusterNotReady")
	p.readmit(t, config, harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t))
	p.granted(t, ar)
	prepared := meta.FindStatusCondition(ar.Status.Conditions, "Prepared")
	if ar.Generation != 2 || prepared == nil || prepared.ObservedGeneration != 2 || len(p.left(t, "existing", "edited")) != 2 {
		t.Errorf("generation %d, %+v, in the cluster: %v", ar.Generation, prepared, p.left(t, "existing", "edited"))
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// These rights do not include the right to update the finalizers of Eve's requests, but all related rights.
const evesOtherRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: finalizers, namespace: eve}
rules:
- {apiGroups: [clusters.openmcp.cloud], resources: [accessrequests/status], verbs: ["*"]}
- {apiGroups: [clusters.openmcp.cloud], resources: [accessrequests/finalizers], verbs: [get, patch, delete]}
- {apiGroups: [clusters.openmcp.cloud], resources: [accessrequests/finalizers], resourceNames: [other], verbs: [update]}
- {apiGroups: [clusters.openmcp.cloud], resources: [clusters/finalizers], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: finalizers, namespace: eve}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: finalizers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: finalizers, namespace: teams}
rules:
- {apiGroups: [clusters.openmcp.cloud], resources: [accessrequests/finalizers], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: finalizers, namespace: teams}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: finalizers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
`

const ofProvider, ofKind = "default.kubeconfig.clusters.openmcp.cloud/accessrequest", "clusters.openmcp.cloud/finalizer"

// doing returns the annotation that requests an operation of controllers.
func doing(operation string) map[string]string {
	return map[string]string{v1alpha1.OperationAnnotation: operation}
}

// held is a request with metadata that Eve owns by server-side apply, so that Eve can remove them by omission.
func (p *policed) held(name string, annotations map[string]string, finalizers ...string) *v1alpha1.AccessRequest {
	p.Helper()
	ar := asking(name, `{`+anyToken+`}`)
	ar.Annotations, ar.Finalizers = annotations, finalizers
	body := harness.Must(json.Marshal(ar))(p.T)
	if err := p.eve.Patch(p.Context(), ar, client.RawPatch(types.ApplyYAMLPatchType, body), client.FieldOwner("eve")); err != nil {
		p.Fatal(err)
	}
	return ar
}

// changes returns all ways by which Eve can set these annotations and finalizers on an existing request.
func (p *policed) changes(
	there *v1alpha1.AccessRequest, annotations map[string]string, finalizers []string, dryRun bool,
) map[string]func() error {
	var onPatch []client.PatchOption
	var onUpdate []client.UpdateOption
	if dryRun {
		onPatch, onUpdate = append(onPatch, client.DryRunAll), append(onUpdate, client.DryRunAll)
	}
	wanted := there.DeepCopy()
	wanted.Annotations, wanted.Finalizers = annotations, finalizers
	patch := func(kind types.PatchType, body any, more ...client.PatchOption) func() error {
		data := harness.Must(json.Marshal(body))(p.T)
		return func() error {
			return p.eve.Patch(p.Context(), wanted.DeepCopy(), client.RawPatch(kind, data), append(more, onPatch...)...)
		}
	}
	applied := asking(there.Name, `{`+anyToken+`}`)
	applied.Annotations, applied.Finalizers = annotations, finalizers
	type object = map[string]any
	return map[string]func() error{
		"update": func() error { return p.eve.Update(p.Context(), wanted.DeepCopy(), onUpdate...) },
		"json patch": patch(types.JSONPatchType, []object{
			{"op": "add", "path": "/metadata/annotations", "value": annotations},
			{"op": "add", "path": "/metadata/finalizers", "value": finalizers},
		}),
		"merge patch": patch(types.MergePatchType, object{"metadata": object{"annotations": annotations, "finalizers": finalizers}}),
		"strategic merge patch": patch(types.StrategicMergePatchType, object{"metadata": object{
			"annotations": annotations, "finalizers": finalizers,
			"$deleteFromPrimitiveList/finalizers": slices.DeleteFunc(slices.Clone(there.Finalizers), func(f string) bool {
				return slices.Contains(finalizers, f)
			}),
		}}),
		"apply": patch(types.ApplyYAMLPatchType, applied, client.FieldOwner("eve"), client.ForceOwnership),
	}
}

func (p *policed) allowed(there *v1alpha1.AccessRequest, annotations map[string]string, finalizers ...string) {
	p.Helper()
	for how, change := range p.changes(there, annotations, finalizers, true) {
		if err := change(); err != nil {
			p.Errorf("%s of %s to %v, %v: %v", how, there.Name, annotations, finalizers, err)
		}
	}
}

func (p *policed) refused(there *v1alpha1.AccessRequest, annotations map[string]string, finalizers ...string) {
	p.Helper()
	for _, dryRun := range []bool{true, false} {
		for how, change := range p.changes(there, annotations, finalizers, dryRun) {
			err := change()
			if err == nil {
				p.Errorf("%s of %s to %v, %v: not refused", how, there.Name, annotations, finalizers)
			}
			harness.WantForbidden(p.T, err,
				`the user "eve" may neither remove finalizers nor set the annotation openmcp.cloud/operation to ignore`,
				`resources: ["accessrequests/finalizers"], resourceNames: ["`+there.Name+`"], verbs: ["update"]} in the namespace eve`)
		}
	}
	now := asking(there.Name, `{}`)
	err := p.Get(p.Context(), client.ObjectKeyFromObject(there), now)
	if err != nil || now.ResourceVersion != there.ResourceVersion {
		p.Errorf("it has not been left as it was: %v, %+v", err, now)
	}
}

// TestAccessPolicy_End applies artifacts/policies/accessrequest-end, and tries to bypass it.
func TestAccessPolicy_End(t *testing.T) {
	p := newEve(t)
	p.kubectl(evesOtherRights, "apply", "-f", "-")
	there := p.held("there", nil, ofProvider, ofKind)
	enforce(t, p.hub, "accessrequest-end", p.changes(there, doing("ignore"), there.Finalizers, true)["update"])

	reconciled := p.held("reconciled", doing("reconcile"), ofProvider, ofKind)
	dying := p.held("dying", nil, ofProvider, ofKind)
	p.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ // the garbage collector waits for it
		Namespace: "eve", Name: "dependent", Finalizers: []string{holder}, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "AccessRequest", Name: dying.Name, UID: dying.UID, BlockOwnerDeletion: new(true),
		}},
	}})
	if err := p.eve.Delete(t.Context(), dying.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	p.await("it is being deleted", dying, func() bool { return !dying.DeletionTimestamp.IsZero() && len(dying.Finalizers) == 3 })
	for _, ar := range []*v1alpha1.AccessRequest{there, reconciled, dying} {
		p.refused(ar, doing("ignore"), ar.Finalizers...)
		p.refused(ar, ar.Annotations)
		p.refused(ar, ar.Annotations, ofProvider)
		p.refused(ar, ar.Annotations, ofKind)
	}
	p.refused(there, nil, "example.com/a", "example.com/b")
	p.refused(there, doing("ignore"))

	p.allowed(there, nil, ofProvider, ofKind, "example.com/a")
	p.allowed(there, map[string]string{"a": "b"}, there.Finalizers...)
	p.allowed(there, doing("reconcile"), there.Finalizers...)
	p.allowed(reconciled, nil, there.Finalizers...)
	// The garbage collector's finalizers do not protect access.
	p.allowed(dying, nil, ofProvider, ofKind)
	p.allowed(p.held("orphan", nil, ofProvider, metav1.FinalizerOrphanDependents), nil, ofProvider)
	// Without access, the policy has nothing to protect yet.
	ignored := p.held("ignored", doing("ignore"), ofProvider)
	p.allowed(ignored, map[string]string{v1alpha1.OperationAnnotation: "ignore", "a": "b"}, ofProvider)
	p.allowed(ignored, nil, ofProvider)
	p.allowed(ignored, doing("reconcile"), ofProvider)
	p.refused(ignored, ignored.Annotations)
	p.throughStatus()

	right := `[{"op":"add","path":"/rules/-","value":{"apiGroups":["clusters.openmcp.cloud"],` +
		`"resources":["accessrequests/finalizers"],"resourceNames":["there"],"verbs":["update"]}}]`
	p.kubectl("", "patch", "role", "finalizers", "-n", "eve", "--type=json", "-p", right)
	harness.Eventually(t, "with the right Eve may", func(context.Context) (bool, error) {
		err := p.changes(there, doing("ignore"), nil, true)["update"]()
		return err == nil, err
	})
	p.allowed(there, doing("ignore"))
	p.refused(reconciled, nil)
}

// throughStatus verifies that a user who may write the status of a request cannot change metadata thereby.
func (p *policed) throughStatus() {
	p.Helper()
	ar := p.held("status", nil, ofProvider)
	evading := ar.DeepCopy()
	evading.Annotations, evading.Finalizers, evading.Status.Phase = doing("ignore"), nil, v1alpha1.REQUEST_PENDING
	applied := asking(ar.Name, `{`+anyToken+`}`)
	applied.Annotations, applied.Status.Phase = doing("ignore"), v1alpha1.REQUEST_PENDING
	status, ctx := p.eve.Status(), p.Context()
	patch := func(kind types.PatchType, body []byte, options ...client.SubResourcePatchOption) error {
		return status.Patch(ctx, ar.DeepCopy(), client.RawPatch(kind, body), options...)
	}
	for how, err := range map[string]error{
		"update": status.Update(ctx, evading.DeepCopy()),
		"merge patch": patch(types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null,"annotations":{"openmcp.cloud/operation":"ignore"}},"status":{"phase":"Pending"}}`)),
		"json patch": patch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`)),
		"apply": patch(types.ApplyYAMLPatchType, harness.Must(json.Marshal(applied))(p.T),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: "eve", Force: new(true)}}),
	} {
		if err != nil {
			p.Errorf("%s of the status: %v", how, err)
		}
	}
	if err := p.Get(ctx, client.ObjectKeyFromObject(ar), ar); err != nil {
		p.Fatal(err)
	}
	if !slices.Equal(ar.Finalizers, []string{ofProvider}) || len(ar.Annotations) > 0 || ar.Status.Phase != v1alpha1.REQUEST_PENDING {
		p.Errorf("writes of the status have made it %+v", ar)
	}
}

// TestAccessPolicy_EndProvider verifies that with the policy, the provider of artifacts/deploy grants and revokes access, whatever Eve writes, and
// however Eve ends the request.
func TestAccessPolicy_EndProvider(t *testing.T) {
	p := newProviding(t)
	startControllers(t, p.hub)
	p.env = "default"
	p.kubectl(t, "apply", "-k", harness.Overlay("cluster-provider"))
	p.admit("kubeconfig", "plain", harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t))
	deployments := harness.Kube(t, p.hub.AdminConfig()).AppsV1().Deployments(harness.ProvidersNamespace)
	p.startDeployed(t, harness.Must(deployments.Get(t.Context(), deployedProvider, metav1.GetOptions{}))(t))
	p.awaitPhase(p.newCluster("default.kubeconfig.plain", "blue"), v1alpha1.StatusPhaseReady)
	harness.MustKubectlOf(t, p.hub, evesRights, "apply", "-f", "-")
	p.kubectl(t, "create", "rolebinding", "secrets", "-n", "eve", "--clusterrole=clusterhub:cluster-provider-secrets",
		"--serviceaccount="+harness.ProvidersNamespace+":"+deployedProvider)
	eve := harness.Must(client.New(p.hub.UserConfig("eve"), client.Options{Scheme: scheme.Scheme}))(t)
	patch := func(ar *v1alpha1.AccessRequest, body string, options ...client.PatchOption) error {
		return eve.Patch(t.Context(), ar.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), options...)
	}
	const ignore, free = `{"metadata":{"annotations":{"openmcp.cloud/operation":"ignore"}}}`, `{"metadata":{"finalizers":null}}`
	begin := func(name string) *v1alpha1.AccessRequest {
		t.Helper()
		ar := asking(name, `{"clusterRef":{"namespace":"teams","name":"blue"},`+anyToken+`}`)
		if err := eve.Create(t.Context(), ar); err != nil {
			t.Fatal(err)
		}
		p.granted(t, ar)
		if len(p.left(t, "kubeconfig", name)) == 0 || !slices.Equal(ar.Finalizers, []string{ofProvider}) {
			t.Errorf("there is nothing to take back: %+v", ar)
		}
		return ar
	}
	first := begin("first")
	enforce(t, p.hub, "accessrequest-end", func() error { return patch(first, ignore, client.DryRunAll) })
	gone := func(ar *v1alpha1.AccessRequest) {
		t.Helper()
		p.awaitGone(t, ar)
		if left := p.left(t, "kubeconfig", ar.Name); len(left) > 0 {
			t.Errorf("left of %s: %v", ar.Name, left)
		}
	}
	ends := map[string]func(*v1alpha1.AccessRequest) error{
		"time": func(ar *v1alpha1.AccessRequest) error { return patch(ar, `{"spec":{"ttl":"1s"}}`) },
		"denial": func(ar *v1alpha1.AccessRequest) error {
			p.patchStatus(t, ar, `{"status":{"phase":"Denied"}}`)
			p.awaitAccess(t, ar, v1alpha1.REQUEST_DENIED, "Denied")
			return eve.Delete(t.Context(), ar)
		},
	}
	for _, policy := range []metav1.DeletionPropagation{"Background", "Foreground", "Orphan"} {
		ends[strings.ToLower(string(policy))] = func(ar *v1alpha1.AccessRequest) error {
			return eve.Delete(t.Context(), ar, client.PropagationPolicy(policy))
		}
	}
	for name, end := range ends {
		ar := begin(name)
		harness.WantForbidden(t, patch(ar, ignore), "accessrequest-end")
		harness.WantForbidden(t, patch(ar, free), "accessrequest-end")
		if err := end(ar); err != nil {
			t.Fatal(err)
		}
		gone(ar)
	}
	if err := patch(first, `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the provider has looked", func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(first), first)
		return len(first.Annotations) == 0, err
	})
	namespace := &corev1.Namespace{ObjectMeta: harness.Named("eve")}
	p.delete(t, namespace)
	p.awaitGone(t, namespace)
	gone(first)
	sources := harness.Must(harness.Kube(t, p.hub.AdminConfig()).CoreV1().Secrets(v1alpha1.TokenSourceNamespace).List(t.Context(), listOptions()))(t)
	if len(sources.Items) > 0 {
		t.Errorf("left: %d token sources", len(sources.Items))
	}
}

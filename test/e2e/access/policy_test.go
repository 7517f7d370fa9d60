// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// Eve may write AccessRequests in the namespace eve, and has the right to access one Cluster and one ClusterRequest of a different namespace.
const evesRights = `
apiVersion: v1
kind: Namespace
metadata: {name: eve}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: asker, namespace: eve}
rules:
- {apiGroups: [clusters.openmcp.cloud], resources: [accessrequests], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: asker, namespace: eve}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: asker}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: public, namespace: teams}
rules:
- {apiGroups: [clusters.openmcp.cloud], resources: [clusters, clusterrequests], resourceNames: [public], verbs: [access]}
- {apiGroups: [clusters.openmcp.cloud], resources: [clusters, clusterrequests], verbs: [get, list, watch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: public, namespace: teams}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: public}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
`

// policed is a hub with one of the policies as in its file.
type policed struct {
	*preparation
	eve client.Client
}

func newPoliced(t *testing.T, policy string) *policed {
	t.Helper()
	p := newEve(t)
	enforce(t, p.hub, policy, func() error {
		probe := `{"clusterRef":{"namespace":"teams","name":"private"},"token":{"roleRefs":[{"kind":"ClusterRole","name":"cluster-admin"}]}}`
		return p.eve.Create(t.Context(), asking("probe", probe), client.DryRunAll)
	})
	return p
}

// newEve returns a hub without a policy.
func newEve(t *testing.T) *policed {
	t.Helper()
	p := &policed{preparation: newPreparation(t)}
	p.eve = harness.Must(client.New(p.hub.UserConfig("eve"), client.Options{Scheme: scheme.Scheme}))(t)
	p.kubectl(evesRights, "apply", "-f", "-")
	return p
}

// enforce applies a policy, and waits until it rejects an attack.
func enforce(t *testing.T, h *localhub.Instance, policy string, attack func() error) {
	t.Helper()
	harness.MustKubectlOf(t, h, "", "apply", "-k", filepath.Join(harness.Root, "artifacts", "policies", policy))
	harness.Eventually(t, "the policy is in force", func(context.Context) (bool, error) {
		err := attack()
		return err != nil && strings.Contains(err.Error(), policy+".clusterhub.dev"), nil
	})
}

func (p *policed) kubectl(stdin string, args ...string) {
	p.Helper()
	harness.MustKubectlOf(p.T, p.hub, stdin, args...)
}

// asking returns an AccessRequest in Eve's namespace.
func asking(name, spec string) *v1alpha1.AccessRequest {
	ar := &v1alpha1.AccessRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "AccessRequest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "eve", Name: name},
	}
	if err := json.Unmarshal([]byte(spec), &ar.Spec); err != nil {
		panic(err)
	}
	return ar
}

const anyToken = `"token":{"roleRefs":[{"kind":"ClusterRole","name":"view"}]}`

// writes returns all ways by which Eve can set the spec of a request to a JSON object: by creating a request, and by changing an existing one.
func (p *policed) writes(there *v1alpha1.AccessRequest, spec string, options ...client.CreateOption) map[string]func() error {
	var onPatch []client.PatchOption
	var onUpdate []client.UpdateOption
	for range options { // only dry run applies to both
		onPatch, onUpdate = append(onPatch, client.DryRunAll), append(onUpdate, client.DryRunAll)
	}
	ctx := p.Context()
	patch := func(name string, kind types.PatchType, body string, more ...client.PatchOption) func() error {
		return func() error {
			return p.eve.Patch(ctx, asking(name, `{}`), client.RawPatch(kind, []byte(body)), append(more, onPatch...)...)
		}
	}
	apply := func(name string) func() error {
		return patch(name, types.ApplyYAMLPatchType, `{"apiVersion":"clusters.openmcp.cloud/v1alpha1","kind":"AccessRequest","metadata":{"name":"`+name+
			`"},"spec":`+spec+`}`, client.FieldOwner("eve"), client.ForceOwnership)
	}
	return map[string]func() error{
		"create": func() error { return p.eve.Create(ctx, asking(harness.Unique("new"), spec), options...) },
		"create with a generated name": func() error {
			ar := asking("", spec)
			ar.GenerateName = "new-"
			return p.eve.Create(ctx, ar, options...)
		},
		"apply what is new": apply(harness.Unique("new")),
		"update": func() error {
			ar := asking(there.Name, spec)
			ar.ResourceVersion = there.ResourceVersion
			return p.eve.Update(ctx, ar, onUpdate...)
		},
		"json patch":            patch(there.Name, types.JSONPatchType, `[{"op":"add","path":"/spec","value":`+spec+`}]`),
		"merge patch":           patch(there.Name, types.MergePatchType, `{"spec":`+spec+`}`),
		"strategic merge patch": patch(there.Name, types.StrategicMergePatchType, `{"spec":`+spec+`}`),
		"apply what is there":   apply(there.Name),
	}
}

// stays fails the test if rejected writes changed an existing request or created a new one.
func (p *policed) stays(there *v1alpha1.AccessRequest) {
	p.Helper()
	now := &v1alpha1.AccessRequestList{}
	if err := p.List(p.Context(), now, client.InNamespace("eve")); err != nil {
		p.Fatal(err)
	}
	if len(now.Items) != 1 || now.Items[0].Generation != there.Generation {
		p.Errorf("there are %d requests, want 1 that has not changed: %+v", len(now.Items), now.Items)
	}
}

// TestAccessPolicy_Clusters applies artifacts/policies/accessrequest-clusters, and tries to bypass it.
func TestAccessPolicy_Clusters(t *testing.T) {
	p := newPoliced(t, "accessrequest-clusters")
	there := asking("there", `{`+anyToken+`}`)
	p.create(there)
	for field, resource := range map[string]string{"clusterRef": "clusters", "requestRef": "clusterrequests"} {
		spec := fmt.Sprintf(`{%q:{"namespace":"teams","name":"private"},%s}`, field, anyToken)
		for _, options := range [][]client.CreateOption{nil, {client.DryRunAll}} {
			for how, write := range p.writes(there, spec, options...) {
				err := write()
				harness.WantForbidden(t, err, "spec."+field+`: the user "eve"`, "teams/private",
					`resources: ["`+resource+`"], resourceNames: ["private"], verbs: ["access"]} in the namespace teams`)
				if err == nil {
					t.Errorf("%s %s: not refused", how, spec)
				}
			}
		}
		p.stays(there)
		// An allowed reference does not cover the other one.
		other := map[string]string{"clusterRef": "requestRef", "requestRef": "clusterRef"}[field]
		both := fmt.Sprintf(`{%q:{"namespace":"eve","name":"own"},%q:{"namespace":"teams","name":"private"},%s}`, other, field, anyToken)
		harness.WantForbidden(t, p.eve.Create(t.Context(), asking("both", both)), "spec."+field)
		for name, ref := range map[string]string{"own": "eve", "public": "teams"} {
			allowed := fmt.Sprintf(`{%q:{"namespace":%q,"name":%q},%s}`, field, ref, name, anyToken)
			for how, write := range p.writes(there, allowed, client.DryRunAll) {
				if err := write(); err != nil {
					t.Errorf("%s %s: %v", how, allowed, err)
				}
			}
		}
	}
	p.elsewhere()
	p.ofOthers()
	p.prepared()
}

// elsewhere verifies that Eve cannot use a different namespace.
func (p *policed) elsewhere() {
	p.Helper()
	ar := asking("theirs", `{"clusterRef":{"namespace":"teams","name":"private"},`+anyToken+`}`)
	ar.Namespace = "teams"
	if err := p.eve.Create(p.Context(), ar); !apierrors.IsForbidden(err) {
		p.Errorf("in the namespace of the Cluster: %v", err)
	}
	body := harness.Must(json.Marshal(ar))(p.T)
	err := harness.Kube(p.T, p.hub.UserConfig("eve")).Discovery().RESTClient().Post().
		AbsPath("/apis/clusters.openmcp.cloud/v1alpha1/namespaces/eve/accessrequests").Body(body).
		SetHeader("Content-Type", "application/json").Do(p.Context()).Error()
	if !apierrors.IsBadRequest(err) {
		p.Errorf("with that namespace in the body: %v", err)
	}
}

// ofOthers verifies that Eve cannot change the spec of an admin's request in Eve's namespace, and that Eve can make all other writes.
func (p *policed) ofOthers() {
	p.Helper()
	ar := asking("admins", `{"clusterRef":{"namespace":"teams","name":"private"},"ttl":"2h",`+anyToken+`}`)
	p.create(ar)
	patch := func(body string) error {
		return p.eve.Patch(p.Context(), ar.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
	}
	for _, body := range []string{
		`{"spec":{"ttl":"3h"}}`, `{"spec":{"ttl":null}}`, `{"spec":{"token":{"roleRefs":[{"kind":"ClusterRole","name":"cluster-admin"}]}}}`,
		`{"spec":{"requestRef":{"namespace":"eve","name":"own"}}}`,
	} {
		harness.WantForbidden(p.T, patch(body), "spec.clusterRef", "only a change that takes rights or time away needs none")
	}
	if err := patch(`{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/a"]}}`); err != nil {
		p.Errorf("labels and finalizers: %v", err)
	}
	if err := patch(`{"metadata":{"finalizers":null}}`); err != nil {
		p.Errorf("finalizers: %v", err)
	}
	for _, body := range []string{`{"spec":{"ttl":"1h"}}`, `{"spec":{"token":{"roleRefs":[]}}}`} {
		if err := patch(body); err != nil {
			p.Errorf("less: %s: %v", body, err)
		}
	}
	if err := p.eve.Delete(p.Context(), ar); err != nil {
		p.Errorf("deletion: %v", err)
	}
}

// prepared verifies that hub-controller-manager sets the Cluster that was granted to a ClusterRequest, in any namespace.
func (p *policed) prepared() {
	p.Helper()
	p.start()
	c, r := p.cluster(), clusterRequest("eve")
	p.create(r)
	p.grant(r, c)
	ar := toRequest(asking("through", `{`+anyToken+`}`), r)
	if err := p.eve.Create(p.Context(), ar); err != nil {
		p.Fatal(err)
	}
	p.awaitPrepared(ar)
	if ar.Spec.ClusterRef.Namespace != c.Namespace {
		p.Errorf("it is for %+v", ar.Spec.ClusterRef)
	}
	// A user with such a request can reduce it, and cannot extend it.
	patch := func(spec string) error {
		return p.eve.Patch(p.Context(), ar.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))
	}
	for _, less := range []string{`{"ttl":"24h"}`, `{"ttl":"1h"}`, `{"token":{"roleRefs":[]}}`} {
		if err := patch(less); err != nil {
			p.Errorf("%s: %v", less, err)
		}
	}
	for _, more := range []string{`{"ttl":"24h"}`, `{"ttl":null}`, `{` + anyToken + `}`} {
		harness.WantForbidden(p.T, patch(more), `spec.clusterRef: the user "eve"`)
	}
}

// TestAccessPolicy_Roles applies artifacts/policies/accessrequest-roles, and tries to bypass it.
func TestAccessPolicy_Roles(t *testing.T) {
	p := newPoliced(t, "accessrequest-roles")
	there := asking("there", `{"token":{"roleRefs":[{"kind":"ClusterRole","name":"view"}]}}`)
	p.create(there)
	roleRefs := func(refs string) string { return `{"token":{"roleRefs":[` + refs + `]}}` }
	const (
		view, admin = `{"kind":"ClusterRole","name":"view"}`, `{"kind":"ClusterRole","name":"cluster-admin"}`
		reader      = `{"kind":"Role","namespace":"web","name":"reader"}`
		rules       = `{"token":{"permissions":[{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}]}}`
		oidc        = `{"token":null,"oidc":{"name":"corp","issuer":"https://oidc.example.com","clientID":"hub","roleBindings":[]}}`
	)
	refused := map[string]string{
		roleRefs(admin):              "spec.token.roleRefs: the namespace eve may not request cluster-admin, only: view",
		roleRefs(view + "," + admin): "may not request cluster-admin",
		roleRefs(reader):             "may not request web/reader",
		// A Role does not count as the ClusterRole of the same name.
		roleRefs(`{"kind":"Role","namespace":"kube-system","name":"view"}`): "may not request kube-system/view",
		rules: "spec.token.permissions: the namespace eve may not request its own rules",
		oidc:  "spec.oidc: the namespace eve may only request tokens",
	}
	for spec, why := range refused {
		for _, options := range [][]client.CreateOption{nil, {client.DryRunAll}} {
			for how, write := range p.writes(there, spec, options...) {
				if spec == oidc && (strings.HasPrefix(how, "update") || how == "apply what is there") {
					continue // these cannot remove the token
				}
				err := write()
				if err == nil {
					t.Errorf("%s %s: not refused", how, spec)
				}
				harness.WantForbidden(t, err, why)
			}
		}
	}
	p.stays(there)
	harness.WantForbidden(t, p.eve.Create(t.Context(), asking("none", `{"token":{}}`)), "the namespace eve requests no role; it may request: view")
	allows := func(what string, specs ...string) {
		t.Helper()
		for _, spec := range specs {
			harness.Eventually(t, what+": "+spec, func(ctx context.Context) (bool, error) {
				err := p.eve.Create(ctx, asking(harness.Unique("new"), spec), client.DryRunAll)
				return err == nil, err
			})
		}
	}
	list := func(data string) {
		t.Helper()
		p.kubectl("", "patch", "configmap", "accessrequest-roles", "-n", "clusterhub-system", "--type=merge", "-p", `{"data":`+data+`}`)
	}
	allows("the default", roleRefs(view))
	list(`{"eve":"cluster-admin\n  web/reader"}`)
	allows("its own list", roleRefs(admin), roleRefs(reader), roleRefs(admin+","+reader))
	harness.WantForbidden(t, p.eve.Create(t.Context(), asking("new", roleRefs(view))), "may not request view, only: cluster-admin, web/reader")
	list(`{"eve":"*"}`)
	allows("everything", rules, oidc, roleRefs(view))
	granted := asking("granted", roleRefs(admin))
	granted.Spec.RequestRef = &v1alpha1.ObjectReference{Namespace: "eve", Name: "own"}
	if err := p.eve.Create(t.Context(), granted); err != nil {
		t.Fatal(err)
	}
	// Without an entry for the namespace, nothing is allowed; existing requests can still be completed and kept.
	list(`null`)
	harness.Eventually(t, "the list is empty", func(ctx context.Context) (bool, error) {
		err := p.eve.Create(ctx, asking("new", roleRefs(view)), client.DryRunAll)
		return apierrors.IsForbidden(err), nil
	})
	p.patch(granted, `{"spec":{"clusterRef":{"namespace":"teams","name":"private"}}}`)
	p.kubectl("", "delete", "configmap", "-n", "clusterhub-system", "accessrequest-roles")
	harness.Eventually(t, "the list is gone", func(ctx context.Context) (bool, error) {
		err := p.eve.Create(ctx, asking("new", `{"token":{}}`), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "accessrequest-roles"), nil
	})
}

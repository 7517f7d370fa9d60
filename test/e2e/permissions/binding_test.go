// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"encoding/json"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// bindingWrite is a way to write the binding `name` with the set, whether the binding exists or not.
type bindingWrite struct {
	name string
	// creates reports whether the write creates a binding; the others change an existing one.
	creates bool
	do      func(r *bindingRequest) *rest.Request
}

type bindingRequest struct {
	client                           rest.Interface
	version, subresource             string
	namespace, name, set, existingRV string
	dryRun                           bool
}

func (r *bindingRequest) to(verb *rest.Request) *rest.Request {
	request := verb.Namespace(r.namespace).Resource("managedclustersetbindings")
	if r.subresource != "" {
		request = request.SubResource(r.subresource)
	}
	return request
}

func (r *bindingRequest) body(metadata map[string]any) []byte {
	data, _ := json.Marshal(map[string]any{
		"apiVersion": harness.ClusterGroup + "/" + r.version, "kind": "ManagedClusterSetBinding", "metadata": metadata,
		"spec": map[string]any{"clusterSet": r.set},
	})
	return data
}

func (r *bindingRequest) post(metadata map[string]any) *rest.Request {
	return r.to(r.client.Post()).VersionedParams(&metav1.CreateOptions{DryRun: harness.DryRun(r.dryRun)}, scheme.ParameterCodec).Body(r.body(metadata))
}

func (r *bindingRequest) patch(kind types.PatchType, data []byte) *rest.Request {
	opts := &metav1.PatchOptions{DryRun: harness.DryRun(r.dryRun)}
	if kind == types.ApplyYAMLPatchType {
		opts.Force, opts.FieldManager = new(true), harness.FieldManager
	}
	return r.to(r.client.Patch(kind)).Name(r.name).VersionedParams(opts, scheme.ParameterCodec).Body(data)
}

func bindingWrites() []bindingWrite {
	merge := func(kind types.PatchType) func(*bindingRequest) *rest.Request {
		return func(r *bindingRequest) *rest.Request {
			return r.patch(kind, fmt.Appendf(nil, `{"spec":{"clusterSet":%q}}`, r.set))
		}
	}
	return []bindingWrite{
		{"create", true, func(r *bindingRequest) *rest.Request { return r.post(map[string]any{"name": r.name}) }},
		{"apply", true, func(r *bindingRequest) *rest.Request {
			return r.patch(types.ApplyYAMLPatchType, r.body(map[string]any{"name": r.name}))
		}},
		{"update", false, func(r *bindingRequest) *rest.Request {
			return r.to(r.client.Put()).Name(r.name).VersionedParams(&metav1.UpdateOptions{DryRun: harness.DryRun(r.dryRun)}, scheme.ParameterCodec).
				Body(r.body(map[string]any{"name": r.name, "namespace": r.namespace, "resourceVersion": r.existingRV}))
		}},
		{"json patch", false, func(r *bindingRequest) *rest.Request {
			return r.patch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"add","path":"/spec/clusterSet","value":%q}]`, r.set))
		}},
		{"merge patch", false, merge(types.MergePatchType)},
		{"strategic merge patch", false, merge(types.StrategicMergePatchType)},
	}
}

// eachBindingWrite tries all ways, in both versions and on both routes, in dry run and for real.
func eachBindingWrite(t *testing.T, who, namespace, name, set string, try func(t *testing.T, w bindingWrite, r *bindingRequest)) {
	for route, config := range map[string]*rest.Config{
		"front": harness.Hub(t).UserConfig(who), "direct": harness.Hub(t).HubAPIServerUserConfig(1, who, "system:authenticated"),
	} {
		for version, client := range map[string]rest.Interface{
			"v1beta1": harness.Ours(t, config).ClusterV1beta1().RESTClient(), "v1beta2": harness.Ours(t, config).ClusterV1beta2().RESTClient(),
		} {
			for _, w := range bindingWrites() {
				for _, subresource := range []string{"", "status"} {
					for _, dryRun := range []bool{true, false} {
						if w.name == "create" && subresource != "" {
							continue
						}
						r := &bindingRequest{client: client, version: version, subresource: subresource,
							namespace: namespace, name: name, set: set, dryRun: dryRun}
						t.Run(fmt.Sprintf("%s, %s, %s /%s, dry run %t", route, version, w.name, subresource, dryRun), func(t *testing.T) { try(t, w, r) })
					}
				}
			}
		}
	}
}

// TestBindings_RequireBindPermission tries to create a binding in every way, without the right and with it.
func TestBindings_RequireBindPermission(t *testing.T) {
	namespace, others, mine := harness.NewNamespace(t), harness.Unique("set"), harness.Unique("set")
	harness.NewSet(t, others)
	harness.NewSet(t, mine)
	who := harness.User(t, harness.Rule("get,create,update,patch,delete", "managedclustersetbindings"), harness.Rule("update,patch", "managedclustersetbindings/status"),
		harness.Rule("create", "managedclustersets/bind", mine))
	bindings := harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace)
	for _, set := range []string{others, mine} {
		eachBindingWrite(t, who, namespace, set, set, func(t *testing.T, w bindingWrite, r *bindingRequest) {
			err := w.do(r).Do(t.Context()).Error()
			creates := w.creates && r.subresource == ""
			switch {
			case !creates && !apierrors.IsNotFound(err):
				t.Errorf("got %v, want a 404", err)
			case creates && set == others:
				harness.WantForbidden(t, err, "managedclustersets/bind", others)
			case creates && err != nil:
				t.Error(err)
			}
			b, err := bindings.Get(t.Context(), set, metav1.GetOptions{})
			if made := creates && set == mine && !r.dryRun; made != (err == nil) || err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("the binding is %+v, %v", b, err)
			}
			if err == nil && b.Spec.ClusterSet != mine {
				t.Errorf("it binds %q", b.Spec.ClusterSet)
			}
			if err := bindings.Delete(t.Context(), set, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		})
	}
	// The right to one set does not permit a different set under its name, nor under a generated name.
	for _, metadata := range []map[string]any{{"name": mine}, {"generateName": mine}} {
		r := &bindingRequest{client: harness.Ours(t, harness.Hub(t).UserConfig(who)).ClusterV1beta2().RESTClient(), version: "v1beta2", namespace: namespace, set: others}
		if err := r.post(metadata).Do(t.Context()).Error(); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("a binding of %s with %v: %v", others, metadata, err)
		}
	}
	if list := harness.Must(bindings.List(t.Context(), metav1.ListOptions{}))(t); len(list.Items) != 0 {
		t.Errorf("there are %+v", list.Items)
	}
}

// TestBindings_SetIsImmutable tries to change the set of a binding as a user who may bind every set.
func TestBindings_SetIsImmutable(t *testing.T) {
	namespace, set, other := harness.NewNamespace(t), harness.Unique("set"), harness.Unique("set")
	harness.NewSet(t, set)
	harness.NewSet(t, other)
	who := harness.User(t, harness.Rule("get,create,update,patch", "managedclustersetbindings"), harness.Rule("update,patch", "managedclustersetbindings/status"),
		harness.Rule("create", "managedclustersets/bind"))
	bindings := harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace)
	harness.Must(bindings.Create(t.Context(), harness.Binding(namespace, set, set), metav1.CreateOptions{}))(t)
	eachBindingWrite(t, who, namespace, set, other, func(t *testing.T, w bindingWrite, r *bindingRequest) {
		if w.name == "create" {
			return
		}
		r.existingRV = harness.Must(bindings.Get(t.Context(), set, metav1.GetOptions{}))(t).ResourceVersion
		err := w.do(r).Do(t.Context()).Error()
		if r.subresource == "" && !apierrors.IsInvalid(err) {
			t.Errorf("got %v, want a 422", err)
		}
		now := harness.Must(bindings.Get(t.Context(), set, metav1.GetOptions{}))(t)
		if now.Spec.ClusterSet != set {
			t.Errorf("it binds %q now, after %v", now.Spec.ClusterSet, err)
		}
	})
}

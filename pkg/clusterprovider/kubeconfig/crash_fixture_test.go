// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/test/await"
)

func TestMain(m *testing.M) { os.Exit(operatortest.Shared.Main(m)) }

const (
	providers = "crash-providers"
	teams     = "crash-teams"
	web       = "crash-web"
)

var own = hub.Identity{Name: "crash", Environment: "test"}

// world is a hub, and a cluster with access: the same server is both.
type world struct {
	t      *testing.T
	config *rest.Config
	mapper meta.RESTMapper
	client client.Client
	target client.Client
	// trusted are the OIDC issuers that the cluster trusts.
	trusted sets.Set[string]
	// tokens maps each token that was issued for a request to the path of the TokenRequest.
	tokens map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	w := &world{t: t, config: operatortest.Shared.Config(t, "crash"), trusted: sets.New[string](), tokens: map[string]string{}}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Cluster", "AccessRequest"} {
		mapper.Add(v1alpha1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(v1alpha1.SchemeGroupVersion.WithKind("ClusterProfile"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	w.mapper = mapper
	w.client = w.connect(w.config)
	var err error
	w.target, err = client.New(w.config, client.Options{Scheme: rights.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	w.serve("Cluster", "AccessRequest", "ClusterProfile")
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: own.ProfileName("berlin")}}
	profile.Spec.ProviderRef.Name, profile.Spec.ProviderConfigRef.Name = own.Name, "berlin"
	w.create(profile)
	for _, name := range []string{providers, teams, v1alpha1.TokenSourceNamespace} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	kubeconfig, err := operatortest.Kubeconfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: providers, Name: "berlin", Labels: map[string]string{v1alpha1.ProviderLabel: own.Name},
			Annotations: map[string]string{NamespacesAnnotation: teams},
		},
		Type: SecretType, Data: map[string][]byte{v1alpha1.SecretKeyKubeconfig: kubeconfig},
	})
	return w
}

// connect returns a client of the hub, with the index that the caches of the provider have.
func (w *world) connect(config *rest.Config) client.WithWatch {
	w.t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: hub.Scheme, Mapper: w.mapper})
	if err != nil {
		w.t.Fatal(err)
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			requests, ok := list.(*v1alpha1.AccessRequestList)
			if !ok || options.FieldSelector == nil {
				return c.List(ctx, list, opts...)
			}
			selector := options.FieldSelector
			options.FieldSelector = nil
			err := c.List(ctx, list, options)
			requests.Items = slices.DeleteFunc(requests.Items, func(ar v1alpha1.AccessRequest) bool {
				return !selector.Matches(fields.Set{hub.ByCluster: ar.Spec.ClusterRef.NamespacedName().String()})
			})
			return err
		},
	})
}

// serve makes the server serve kinds of the hub, with any fields.
func (w *world) serve(kinds ...string) {
	w.t.Helper()
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range kinds {
		scope, plural := "Namespaced", strings.ToLower(kind)+"s"
		if kind == "ClusterProfile" {
			scope = "Cluster"
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s}
spec:
  group: %[1]s
  scope: %[3]s
  names: {kind: %[4]s, plural: %[2]s}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.profile}]
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
        properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {profile: {type: string}}}}
`, v1alpha1.GroupName, plural, scope, kind), &crd.Object); err != nil {
			w.t.Fatal(err)
		}
		if err := c.Create(w.t.Context(), crd); err != nil {
			w.t.Fatal(err)
		}
		w.eventually(kind+" is served", func() string {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
			return text(w.client.List(w.t.Context(), list))
		})
	}
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// eventually waits until complaint returns an empty string.
func (w *world) eventually(what string, complaint func() string) {
	w.t.Helper()
	last := ""
	if await.Until(w.t.Context(), await.Limit, func(context.Context) (bool, error) {
		last = complaint()
		return last == "", nil
	}) != nil {
		w.t.Fatalf("%s: %s", what, last)
	}
}

// settles runs a process that is not killed, until it returns no error.
func (w *world) settles() {
	w.t.Helper()
	p, last := w.process(long), error(nil)
	for range 5 {
		last = p.look()
		if last == nil {
			return
		}
	}
	w.t.Fatalf("the provider is not done after %q: %v", p.written, last)
}

func (w *world) must(errs ...error) {
	w.t.Helper()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.must(w.client.Create(w.t.Context(), object))
}

// patch changes an object, and the status of a request, as users and the hub's own controllers do.
func patch[T client.Object](w *world, object T, change func(T)) {
	w.t.Helper()
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopyObject().(client.Object)
	change(object)
	changed := object.DeepCopyObject().(client.Object)
	w.must(w.client.Patch(w.t.Context(), object, client.MergeFrom(before)))
	if ar, ok := any(object).(*v1alpha1.AccessRequest); ok {
		stored := ar.DeepCopy()
		ar.Status = changed.(*v1alpha1.AccessRequest).Status
		ar.Status.ObservedGeneration = ar.Generation
		w.must(w.client.Status().Patch(w.t.Context(), ar, client.MergeFrom(stored)))
	}
}

func newCluster() *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: teams, Name: "blue"}}
	c.Spec.Profile = own.ProfileName("berlin")
	return c
}

func named(name string) *v1alpha1.AccessRequest {
	return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: teams, Name: name}}
}

// request creates a request as it is after its preparation.
func (w *world) request(name string, ask func(*v1alpha1.AccessRequestSpec)) {
	w.t.Helper()
	ar := named(name)
	ar.Labels = map[string]string{v1alpha1.ProviderLabel: own.Name, v1alpha1.ProfileLabel: own.ProfileName("berlin")}
	ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: teams, Name: "blue"}
	ask(&ar.Spec)
	w.create(ar)
	patch(w, ar, func(ar *v1alpha1.AccessRequest) { ar.Status.Phase = v1alpha1.REQUEST_PENDING })
}

func rulesOf(verb, resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{verb}}}
}

func aToken(spec *v1alpha1.AccessRequestSpec) {
	spec.OIDC, spec.Token = nil, &v1alpha1.TokenConfig{
		Permissions: []v1alpha1.PermissionsRequest{{Namespace: web, Rules: rulesOf("list", "configmaps")}},
		RoleRefs:    []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}},
	}
}

func anotherToken(spec *v1alpha1.AccessRequestSpec) {
	spec.OIDC, spec.Token = nil, &v1alpha1.TokenConfig{
		Permissions: []v1alpha1.PermissionsRequest{{Rules: rulesOf("list", "namespaces")}},
		RoleRefs:    []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "edit"}},
	}
}

const issuer = "https://issuer.invalid"

func byOIDC(spec *v1alpha1.AccessRequestSpec) {
	spec.Token, spec.OIDC = nil, &v1alpha1.OIDCConfig{
		OIDCProviderConfig: v1alpha1.OIDCProviderConfig{Name: "issuer", Issuer: issuer, ClientID: "hub", RoleBindings: []v1alpha1.RoleBindings{{
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "ann"}}, RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}},
		}}},
		Roles: []v1alpha1.PermissionsRequest{{Namespace: web, Rules: rulesOf("list", "configmaps")}},
	}
}

// allow sets the namespaces that may have the cluster.
func (w *world) allow(namespaces string) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: providers, Name: "berlin"}}
	patch(w, secret, func(secret *corev1.Secret) { secret.Annotations[NamespacesAnnotation] = namespaces })
}

// delete deletes an object, if it exists.
func (w *world) delete(object client.Object) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(w.client.Delete(w.t.Context(), object)))
}

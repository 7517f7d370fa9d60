// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/access"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/cluster"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/remote"
	"github.com/clusterhub/clusterhub/test/await"
)

func TestMain(m *testing.M) { os.Exit(operatortest.Shared.Main(m)) }

var errKilled = errors.New("the process was killed")

// life is how long a process lives: it ends when it is about to make its next write, and does nothing from then on.
type life struct {
	w *world
	// left is how many writes the process still makes.
	left    int
	dead    bool
	written []string
}

// noWrite matches the paths of questions that are asked by POST. A token of a ServiceAccount is asked for so, too: no server stores it.
var noWrite = regexp.MustCompile(`/(selfsubject|tokenreviews|serviceaccounts/[^/]+/token$)`)

var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func (l *life) write(what string, do func() error) error {
	if l.dead = l.dead || l.left == 0; l.dead {
		return errKilled
	}
	l.left--
	l.written = append(l.written, uid.ReplaceAllString(what, "UID"))
	return do()
}

// tripper is the way of a process to a server.
type tripper struct {
	*life
	http.RoundTripper
}

func (t tripper) RoundTrip(r *http.Request) (response *http.Response, err error) {
	do := func() error {
		response, err = t.RoundTripper.RoundTrip(r) //nolint:bodyclose // the caller does
		return err
	}
	switch {
	case t.dead:
		return nil, errKilled
	case r.Method == http.MethodGet:
		err = do()
	case noWrite.MatchString(r.URL.Path):
		if err = do(); err == nil {
			err = t.w.issued(r.URL.Path, response)
		}
	default:
		err = t.write(r.Method+" "+r.URL.Path, do)
	}
	return response, err
}

// mortal is the provider of a process. Its cluster can trust OIDC issuers, too.
type mortal struct {
	*Provider
	*life
}

func (m *mortal) Connect(ctx context.Context, c *v1alpha1.Cluster) (*rest.Config, error) {
	config, err := m.Provider.Connect(ctx, c)
	if err == nil {
		config.Wrap(func(to http.RoundTripper) http.RoundTripper { return tripper{m.life, to} })
	}
	return config, err
}

func (m *mortal) TrustOIDC(_ context.Context, _ *v1alpha1.Cluster, providers []v1alpha1.OIDCProviderConfig) error {
	trusted := sets.New[string]()
	for _, provider := range providers {
		trusted.Insert(provider.Issuer)
	}
	if trusted.Equal(m.w.trusted) {
		return nil
	}
	return m.write("trust", func() error {
		m.w.trusted = trusted
		return nil
	})
}

// process is a provider that looks at the hub when it is asked to, and at no other time. It is notified of no change.
type process struct {
	*life
	w        *world
	clusters *cluster.Reconciler
	access   *access.Reconciler
}

const (
	providers = "crash-providers"
	teams     = "crash-teams"
	web       = "crash-web"
)

var own = hub.Identity{Name: "crash", Environment: "test"}

// world is a hub, and a cluster that access is given to: the same server is both.
type world struct {
	t      *testing.T
	config *rest.Config
	mapper meta.RESTMapper
	client client.Client
	target client.Client
	// trusted are the OIDC issuers that the cluster trusts.
	trusted sets.Set[string]
	// tokens are all that were made for requests, with the paths where they were asked for.
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
	if w.target, err = client.New(w.config, client.Options{Scheme: rights.Scheme}); err != nil {
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

// serve has the server serve kinds of the hub, whatever their fields are.
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

// eventually waits until there is nothing more to complain of.
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

func (w *world) process(writes int) *process {
	w.t.Helper()
	p := &process{w: w, life: &life{w: w, left: writes}}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return tripper{p.life, to} })
	c := w.connect(config)
	provider := &mortal{&Provider{hub: c, name: own.Name, namespace: providers}, p.life}
	p.access = access.New(own, provider, c, c, &events.FakeRecorder{})
	p.clusters = cluster.New(own, provider, c, &events.FakeRecorder{}, p.access)
	return p
}

// long is a life that does not end.
const long = 1 << 20

// look has it look at each object once, and reports what it says against that.
func (p *process) look() (err error) {
	p.w.t.Helper()
	clusters, requests := &v1alpha1.ClusterList{}, &v1alpha1.AccessRequestList{}
	p.w.must(p.w.client.List(p.w.t.Context(), clusters), p.w.client.List(p.w.t.Context(), requests))
	for _, c := range clusters.Items {
		_, failure := p.clusters.Reconcile(p.w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
		err = errors.Join(err, failure)
	}
	for _, ar := range requests.Items {
		_, failure := p.access.Reconcile(p.w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&ar)})
		err = errors.Join(err, failure)
	}
	return err
}

// settles has a process look that is not killed, until it has nothing to complain of.
func (w *world) settles() {
	w.t.Helper()
	p, last := w.process(long), error(nil)
	for range 5 {
		if last = p.look(); last == nil {
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

// request makes a request as it is when it has been prepared.
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

// allow names the namespaces that may have the cluster.
func (w *world) allow(namespaces string) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: providers, Name: "berlin"}}
	patch(w, secret, func(secret *corev1.Secret) { secret.Annotations[NamespacesAnnotation] = namespaces })
}

// delete deletes an object, if it is there.
func (w *world) delete(object client.Object) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(w.client.Delete(w.t.Context(), object)))
}

// issued reads the token that a server has answered with.
func (w *world) issued(path string, response *http.Response) error {
	if !strings.HasSuffix(path, "/token") || strings.Contains(path, v1alpha1.TokenMinterServiceAccount) || response.StatusCode >= 300 {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	answer, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return err
	}
	w.tokens[answer.(*authenticationv1.TokenRequest).Status.Token] = path
	return nil
}

// given are all objects that the provider has made for requests, on the hub and in the cluster, and the issuers that it has made it trust.
func (w *world) given() sets.Set[string] {
	w.t.Helper()
	all := sets.New[string]()
	for _, kind := range rights.Kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		w.must(w.target.List(w.t.Context(), list, client.HasLabels{own.NameLabel()}))
		for _, object := range list.Items {
			object.SetGroupVersionKind(kind)
			all.Insert(remote.IDOf(&object).String())
		}
	}
	secrets := &corev1.SecretList{}
	w.must(w.client.List(w.t.Context(), secrets, own.OwnLabels()))
	for _, secret := range secrets.Items {
		all.Insert("Secret " + secret.Namespace + "/" + secret.Name)
	}
	for issuer := range w.trusted {
		all.Insert("issuer " + issuer)
	}
	return all
}

// wanted is what there is to be for the requests of these names, which are granted.
func (w *world) wanted(names ...string) sets.Set[string] {
	w.t.Helper()
	all := sets.New[string]()
	for _, name := range names {
		ar := named(name)
		w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(ar), ar))
		if !ar.Status.IsGranted() || ar.Status.ObservedGeneration != ar.Generation || ar.Status.SecretRef == nil || ar.Status.SecretRef.Name != hub.SecretName(name) {
			w.t.Errorf("%s is not granted: %+v", name, ar.Status)
		}
		given, err := rights.Of(ar, own.Hash(ar))
		w.must(err)
		for _, object := range given.Objects {
			all.Insert(remote.IDOf(object).String())
		}
		all.Insert("Secret " + hub.AnswerName(ar).String())
		if ar.Spec.OIDC != nil {
			all.Insert("issuer " + ar.Spec.OIDC.Issuer)
		} else {
			all.Insert("Secret " + hub.TokenSourceName(ar).String())
		}
	}
	return all
}

// granted fails unless the requests of these names have their access, and there is no other access.
func (w *world) granted(names ...string) {
	w.t.Helper()
	if got, want := w.given(), w.wanted(names...); !got.Equal(want) {
		w.t.Errorf("left are %q, and missing %q", sets.List(got.Difference(want)), sets.List(want.Difference(got)))
	}
	requests := &v1alpha1.AccessRequestList{}
	w.must(w.client.List(w.t.Context(), requests))
	for _, ar := range requests.Items {
		if !slices.Contains(names, ar.Name) && (ar.Status.IsGranted() || ar.Status.SecretRef != nil) {
			w.t.Errorf("%s says that it has access: %+v", ar.Name, ar.Status)
		} else if ar.Spec.Token != nil && ar.Status.IsGranted() {
			w.eventually("the kubeconfig of "+ar.Name+" is of use", func() string { return text(w.use(&ar)) })
		}
	}
}

// safe fails unless nothing gets lost while no provider runs: what has been given is held by the finalizer of its request, and is not in a cluster
// that others may have.
func (w *world) safe() {
	w.t.Helper()
	given, ar := w.given(), named("ann")
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(ar), ar)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if len(given) > 0 && !controllerutil.ContainsFinalizer(ar, own.AccessFinalizer()) {
		w.t.Errorf("no finalizer holds %q", sets.List(given))
	}
	for what := range given {
		if strings.HasPrefix(what, "Secret ") {
			given.Delete(what)
		}
	}
	if len(given) > 0 && w.holder() == "" {
		w.t.Errorf("others may have the cluster, with %q", sets.List(given))
	}
}

// ended fails unless all tokens of requests are refused. The cluster remembers for ten seconds which it has accepted.
func (w *world) ended() {
	w.t.Helper()
	c, err := kubernetes.NewForConfig(w.config)
	w.must(err)
	for token, path := range w.tokens {
		w.eventually("a token is refused that was made by "+path, func() string {
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
			review, err := c.AuthenticationV1().TokenReviews().Create(w.t.Context(), review, metav1.CreateOptions{})
			if err != nil || review.Status.Authenticated {
				return fmt.Sprint(review.Status, err)
			}
			return ""
		})
	}
}

// use does with a request's kubeconfig what the request asks for.
func (w *world) use(ar *v1alpha1.AccessRequest) error {
	secret := &corev1.Secret{}
	if err := w.client.Get(w.t.Context(), hub.AnswerName(ar), secret); err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[v1alpha1.SecretKeyKubeconfig])
	if err != nil {
		return err
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	one := metav1.ListOptions{Limit: 1}
	for _, permission := range ar.Spec.Token.Permissions {
		switch permission.Rules[0].Resources[0] {
		case "configmaps":
			_, err = c.CoreV1().ConfigMaps(permission.Namespace).List(w.t.Context(), one)
		case "namespaces":
			_, err = c.CoreV1().Namespaces().List(w.t.Context(), one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holder is the UID of the Cluster that has the cluster.
func (w *world) holder() string {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: providers, Name: "berlin"}, secret))
	return secret.Annotations[HolderAnnotation]
}

// ready fails unless the Cluster can be used.
func (w *world) ready() {
	w.t.Helper()
	c := newCluster()
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(c), c))
	if c.Status.Phase != v1alpha1.StatusPhaseReady || w.holder() != string(c.UID) {
		w.t.Errorf("the holder is %q, and the status %+v", w.holder(), c.Status)
	}
}

// gone fails unless the object is.
func (w *world) gone(object client.Object) {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
		w.t.Errorf("%s is left with the finalizers %q: %v", object.GetName(), object.GetFinalizers(), err)
	}
}

var _ clusterprovider.OIDCTruster = &mortal{}

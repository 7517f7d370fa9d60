// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// scoped is an agent that has one namespace of a real cluster: its ServiceAccount has the deployed rights there, and no others. The hub is a World,
// except for its works, which are in the real cluster.
type scoped struct {
	*world
	agent     *agent
	kube      kubernetes.Interface
	works     *hub.Hub
	namespace string
	// config is the configuration of the ServiceAccount for the cluster.
	config *rest.Config

	mu sync.Mutex
	// asked are the requests to the cluster, and refused those that it has rejected.
	asked, refused []string
}

// through records the requests.
func (s *scoped) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		if err == nil && (answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized) {
			s.refused = append(s.refused, r.Method+" "+r.URL.Path)
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newScoped(t *testing.T) *scoped {
	t.Helper()
	s := &scoped{world: newWorld(t), kube: kubernetes.NewForConfigOrDie(worktest.Config(t)), namespace: worktest.Namespace(t)}
	var err error
	s.works, err = hub.New(worktest.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	onHub := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agenttest.ClusterName}}
	if _, err := s.kube.CoreV1().Namespaces().Create(t.Context(), onHub, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	s.config = s.account(t, s.namespace, registration.AgentServiceAccount)
	recording := rest.CopyConfig(s.config)
	recording.Wrap(s.through)

	o := NewOptions()
	o.Spoke.Kubeconfig, o.Spoke.NamespaceScoped, o.Spoke.Namespace, o.ClusterName = "unread", true, s.namespace, agenttest.ClusterName
	o.Works.Enabled, o.Edge.Enabled, o.Works.Grace = true, true, 0
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	c := &clusters{}
	c.own, err = o.Spoke.NewCluster(recording)
	if err != nil {
		t.Fatal(err)
	}
	c.home, err = spoke.NewManagement(recording, s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	j := s.joiner()
	j.Spoke, j.Home, j.Store = c.own, c.home, &state.Store{Client: c.home.Client, Namespace: s.namespace}
	j.Connect = func(config *rest.Config) (*hub.Hub, error) {
		h, err := s.Connect(config)
		if err == nil {
			h.Works = s.works.Works
		}
		return h, err
	}
	p := &process{Options: o, health: &health.Health{}, view: hub.NewView(60)}
	s.agent, err = newAgent(j, p.view, csr.New(), status.NewFacts(c.own, o.Claims), p.tasks(c)...)
	if err != nil {
		t.Fatal(err)
	}
	s.Grant(s.agent.rights())
	deployed, err := deploy.Agent{Image: "i", Hub: "h", Namespace: s.namespace, Scoped: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range deployed {
		resource, ok := map[string]string{"Role": "roles", "RoleBinding": "rolebindings"}[o.GetKind()]
		if !ok {
			continue
		}
		if _, err := worktest.Client(t).Resource(rbacv1.SchemeGroupVersion.WithResource(resource)).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestRights_OfAgentOfOneNamespaceMatchDeclared: its Role has the rights that the agent declares for its own state, and the
// ClusterRole admin has the rest, as the tests here show.
func TestRights_OfAgentOfOneNamespaceMatchDeclared(t *testing.T) {
	stated := newScoped(t).agent.rights()
	if len(stated.Own.Cluster) > 0 || len(stated.Management.Cluster) > 0 {
		t.Errorf("it states rights outside of its namespace: %+v %+v", stated.Own.Cluster, stated.Management.Cluster)
	}
	deployed, err := deploy.Agent{Image: "i", Hub: "h", Namespace: "team", Scoped: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := single(rulesOf(t, "Role", deployed)), single(stated.Management.Namespace); !slices.Equal(got, want) {
		t.Errorf("the Role allows\n%q, and the agent states\n%q", got, want)
	}
	for _, o := range deployed {
		if o.GetNamespace() != "team" || strings.HasPrefix(o.GetKind(), "Cluster") {
			t.Errorf("%s %s is in the namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
	}
}

// account creates a ServiceAccount, and returns its configuration for the cluster.
func (s *scoped) account(t *testing.T, namespace, name string) *rest.Config {
	t.Helper()
	accounts := s.kube.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(worktest.Config(t))
	config.QPS, config.BearerToken = -1, token.Status.Token
	return config
}

// put creates a work, and returns the messages of its manifests once the agent has tried all of them.
func (s *scoped) put(t *testing.T, name string, manifests ...string) (messages []string) {
	t.Helper()
	works := s.works.Works.ManifestWorks(agenttest.ClusterName)
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + s.namespace}}
	for _, manifest := range manifests {
		object := worktest.Parse(manifest)
		raw, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	if _, err := works.Create(t.Context(), w, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "work "+name+" was tried", func() bool {
		have, err := works.Get(t.Context(), w.Name, metav1.GetOptions{})
		if err != nil || len(have.Status.ResourceStatus.Manifests) < len(manifests) {
			return false
		}
		messages = nil
		for _, m := range have.Status.ResourceStatus.Manifests {
			c := meta.FindStatusCondition(m.Conditions, workv1.ManifestApplied)
			if c == nil {
				return false
			}
			messages = append(messages, string(c.Status)+" "+c.Message)
		}
		return true
	})
	return messages
}

// outside matches requests that every ServiceAccount may send.
var outside = regexp.MustCompile(`^GET (/version|/livez|/api|/apis|/api/v1|/apis/[^/]+(/[^/]+)?|/openid/v1/jwks|/\.well-known/openid-configuration)$`)

// TestNamespaceScoped: an agent with rights in one namespace joins, reports its facts and applies works, and sends no request to the cluster that it
// has no right to.
func TestNamespaceScoped(t *testing.T) {
	s := newScoped(t)
	stop := start(t, s.agent)
	worktest.Eventually(t, "a certificate is asked for", func() bool { return len(s.CSRs()) == 1 })
	s.Accept()
	worktest.Eventually(t, "the cluster has joined, and its status is known", func() bool {
		return s.Condition(registration.ConditionJoined).Status == metav1.ConditionTrue && s.Cluster().Status.Version.Kubernetes != ""
	})
	var node *edgev1alpha1.EdgeNode
	worktest.Eventually(t, "the edge node is known", func() (known bool) {
		var err error
		node, err = s.HubClusters.EdgeV1alpha1().EdgeNodes().Get(t.Context(), agenttest.ClusterName, metav1.GetOptions{})
		return err == nil && node.Status.ReportTime != nil
	})
	definition := edgev1alpha1.ClusterScopedObject{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "appliedmanifestworks." + worktest.Group}
	if f := node.Status; f.Namespace != s.namespace || f.NamespaceScoped == nil || !*f.NamespaceScoped || f.Arch == "" || f.CPU != nil || f.Memory != nil ||
		f.KubernetesVersion == "" || f.ClusterID == "" || !slices.Contains(f.ClusterObjects, definition) {
		t.Errorf("the facts are %+v", f)
	}
	good := "{apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: " + s.namespace + "}}"
	if got := s.put(t, "good", good); !strings.HasPrefix(got[0], "True") {
		t.Errorf("it says %q", got)
	}
	bad := []string{good}
	for kind, meta := range map[string]string{
		"v1, kind: ConfigMap":                                                   "{name: x, namespace: default}",
		"v1, kind: Namespace":                                                   "{name: " + s.namespace + "}",
		"v1, kind: Secret":                                                      "{name: " + registration.HubKubeconfigSecret + ", namespace: " + s.namespace + "}",
		"v1, kind: ServiceAccount":                                              "{name: " + registration.AgentServiceAccount + ", namespace: " + s.namespace + "}",
		"apps/v1, kind: Deployment":                                             "{name: hub-agent, namespace: " + s.namespace + "}",
		"rbac.authorization.k8s.io/v1, kind: Role":                              "{name: \"clusterhub:hub-agent\", namespace: " + s.namespace + "}",
		"rbac.authorization.k8s.io/v1, kind: RoleBinding":                       "{name: \"clusterhub:hub-agent-namespace\", namespace: " + s.namespace + "}",
		"rbac.authorization.k8s.io/v1, kind: ClusterRole":                       "{name: x}",
		"apiextensions.k8s.io/v1, kind: CustomResourceDefinition":               "{name: appliedmanifestworks." + worktest.Group + "}",
		"admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration": "{name: x}",
	} {
		bad = append(bad, "{apiVersion: "+kind+", metadata: "+meta+"}")
	}
	for i, got := range s.put(t, "bad", bad[1:]...) {
		if !strings.HasPrefix(got, "False Failed to apply manifest: ") || !strings.Contains(got, "is not in the namespace "+s.namespace) && !strings.Contains(got, "is the agent's own") {
			t.Errorf("of %s it says %q", bad[i+1], got)
		}
	}
	if _, err := s.kube.CoreV1().ConfigMaps("default").Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
	stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) < 20 || len(s.refused) > 0 {
		t.Errorf("of %d requests the cluster has refused %q", len(s.asked), s.refused)
	}
	for _, request := range s.asked {
		if path := request[strings.Index(request, " ")+1:]; !strings.Contains(path, "/namespaces/"+s.namespace+"/") && !outside.MatchString(request) {
			t.Errorf("it has asked for %s", request)
		}
	}
}

// TestNamespaceScoped_HasNoOtherRights checks on a real cluster, as the agent, all verbs and resources of the cluster: in other namespaces the
// agent has the rights of every ServiceAccount only, such as the right to check its own rights.
func TestNamespaceScoped_HasNoOtherRights(t *testing.T) {
	s := newScoped(t)
	kube := kubernetes.NewForConfigOrDie(s.config)
	every := kubernetes.NewForConfigOrDie(s.account(t, worktest.Namespace(t), "every"))
	may := func(kube kubernetes.Interface, a *authorizationv1.ResourceAttributes) bool {
		t.Helper()
		review, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	_, lists, err := kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate", "approve", "sign", "use", "*"}
	other, asked, here := worktest.Namespace(t), 0, 0
	for _, list := range append(lists, &metav1.APIResourceList{GroupVersion: "*/*", APIResources: []metav1.APIResource{{Name: "*"}, {Name: "*/*"}}},
		&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "users"}, {Name: "groups"}, {Name: "nodes/proxy"}}}) {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group = ""
		}
		for i := range list.APIResources {
			resource, sub, _ := strings.Cut(list.APIResources[i].Name, "/")
			for _, verb := range verbs {
				for _, namespace := range []string{"", other, "kube-system", s.namespace} {
					a := &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: sub, Verb: verb, Namespace: namespace}
					allowed := may(kube, a)
					switch asked++; {
					case allowed && namespace == s.namespace:
						here++
					case allowed && !may(every, a):
						t.Errorf("it may %s %s/%s of %q in %q", verb, resource, sub, group, namespace)
					}
				}
			}
		}
	}
	for _, path := range []string{"/metrics", "/logs", "/debug/pprof", "/configz", "*"} {
		review, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"}}}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed {
			t.Errorf("it may get %s: %v", path, err)
		}
	}
	if asked < 1000 || here < 50 {
		t.Errorf("of %d questions, %d were about what it may do in its namespace", asked, here)
	}
}

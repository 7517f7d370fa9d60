// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// These are requests to a managed cluster and paths of its objects.
const (
	MayI           = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	AgentSecrets   = "/api/v1/namespaces/" + registration.AgentNamespace + "/secrets/"
	IdentitySecret = AgentSecrets + registration.HubKubeconfigSecret
	DeploymentPath = "/apis/apps/v1/namespaces/" + registration.AgentNamespace + "/deployments/" + deploy.AgentName
)

// Allow has the server allow or deny all that a user asks about.
func (s *Server) Allow(allowed bool) {
	s.Answer(MayI, authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}})
}

// With replaces the values of flags, or removes those whose value is "-".
func With(args []string, changes ...string) []string {
	args = slices.Clone(args)
	for i := 0; i < len(changes); i += 2 {
		flag, value := changes[i], changes[i+1]
		if at := slices.Index(args, flag); at >= 0 {
			args = slices.Delete(args, at, at+2)
		}
		if value != "-" {
			args = append(args, flag, value)
		}
	}
	return args
}

// NewIdentity returns the secret of an agent that has joined a hub, or is about to if the server is empty.
func NewIdentity(t *testing.T, name, server string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: registration.HubKubeconfigSecret},
		Data: map[string][]byte{registration.KeyClusterName: []byte(name)}}
	if server != "" {
		data, err := clientcmd.Write(clientcmdapi.Config{CurrentContext: "hub", Contexts: map[string]*clientcmdapi.Context{"hub": {Cluster: "hub"}},
			Clusters: map[string]*clientcmdapi.Cluster{"hub": {Server: server}}})
		if err != nil {
			t.Fatal(err)
		}
		secret.Data[registration.KeyKubeconfig] = data
	}
	return secret
}

// As reads an object into its type.
func (s *Server) As(path string, into any) {
	s.t.Helper()
	object := s.Get(path)
	if object == nil {
		s.t.Fatalf("there is no %s, but %q", path, s.Paths())
	}
	data, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// PutRaw stores an object of any kind.
func (s *Server) PutRaw(o *unstructured.Unstructured) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Objects[PathOf(o.Object)] = o.Object
}

// These are for clusters whose agents are detached.
const (
	// AdminToken is the token of the admin of a managed cluster, or of one that becomes a hub. Only -o yaml may print it.
	AdminToken = "the-admins-token"

	KlusterletPath = "/apis/operator.open-cluster-management.io/v1/klusterlets/c1"
	DetachedSpace  = "c1-open-cluster-management-agent"
	DetachedSource = "/api/v1/namespaces/" + DetachedSpace + "/secrets/" + operatorv1.ExternalManagedKubeconfig
	DetachedHub    = "/api/v1/namespaces/" + DetachedSpace + "/secrets/" + operatorv1.BootstrapHubKubeconfig
	SystemPath     = "/api/v1/namespaces/" + metav1.NamespaceSystem
)

// Named makes a server the cluster with this UID, whose user may do everything.
func (s *Server) Named(uid types.UID) *Server {
	s.Allow(true)
	s.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: uid}})
	return s
}

// Operates creates the namespace of an object when the object is created, as hub-operator does.
func (s *Server) Operates(path, namespace string) {
	s.On["PATCH "+path] = func(http.ResponseWriter, []byte) bool {
		s.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		return false
	}
}

// SourceFile writes the kubeconfig of an admin of a cluster, which also has other contexts.
func SourceFile(t *testing.T, s *Server, change func(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo)) string {
	t.Helper()
	cluster, user := &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: s.CA()}, &clientcmdapi.AuthInfo{Token: AdminToken}
	if change != nil {
		change(cluster, user)
	}
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": cluster, "another": {Server: "https://another.example.com"}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"admin": user, "another": {Token: "another-token"},
			"plugin": {Exec: &clientcmdapi.ExecConfig{Command: "aws", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "admin"}, "another": {Cluster: "another", AuthInfo: "another"},
			"plugin": {Cluster: "c", AuthInfo: "plugin"}},
		CurrentContext: "c",
	}
	file := filepath.Join(t.TempDir(), "source")
	if err := clientcmd.WriteToFile(config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// Secret returns the kubeconfig in a Secret.
func (s *Server) Secret(path string) []byte {
	s.t.Helper()
	secret := &corev1.Secret{}
	s.As(path, secret)
	return secret.Data[operatorv1.KeyKubeconfig]
}

// RightsOfWorks returns the bindings for works as "namespace=role", and other objects for works.
func (s *Server) RightsOfWorks() string {
	var all []string
	for _, path := range s.Paths() {
		if name := NameOf(path); name == deploy.WorksRights {
			o := s.Get(path)
			role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
			all = append(all, o.GetNamespace()+"="+role)
		} else if strings.Contains(name, "hub-agent-works") {
			all = append(all, s.Get(path).GetKind()+" "+strings.TrimPrefix(name, "clusterhub:hub-agent-"))
		}
	}
	return strings.Join(all, ", ")
}

// FlagsOfWorks returns the flags of the agent for works.
func (s *Server) FlagsOfWorks() string {
	deployment := &appsv1.Deployment{}
	s.As(DeploymentPath, deployment)
	return strings.Join(slices.DeleteFunc(deployment.Spec.Template.Spec.Containers[0].Args, func(arg string) bool {
		return !strings.HasPrefix(arg, "--works") && !strings.HasPrefix(arg, "--agent-id")
	}), " ")
}

// condition returns a condition that hub-operator wrote for generation 2.
func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: 2}
}

// NewKlusterlet returns a detached Klusterlet with conditions.
func NewKlusterlet(name string, conditions ...metav1.Condition) *operatorv1.Klusterlet {
	k := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2, Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}}}
	k.Spec.ClusterName, k.Spec.DeployOption.Mode = name, operatorv1.InstallModeDetached
	k.Status.Conditions = conditions
	if len(conditions) > 0 {
		k.Status.ObservedGeneration = 2
	}
	return k
}

// These are conditions of a Klusterlet.
var (
	Unready      = condition(operatorv1.ConditionReadyToApply, "False", operatorv1.ReasonKlusterletPrepareFailed, "the secret x is missing\x1b[2J")
	Unapplied    = condition(operatorv1.ConditionKlusterletApplied, "False", operatorv1.ReasonManagedClusterResourceApplyFailed, "the managed cluster: no route")
	Unregisters  = condition(operatorv1.ConditionHubConnectionDegraded, "True", operatorv1.ReasonHubKubeConfigSecretMissing, "the agent has not started to register the cluster")
	Rebootstraps = condition(operatorv1.ConditionRebootstrapProgressing, "True", operatorv1.ReasonRebootstrapStarted, "the agent tries the hub of the Secret a")
	Unaccepted   = condition(operatorv1.ConditionHubConnectionDegraded, "True", operatorv1.ReasonHubKubeConfigMissing, "the agent has no identity yet")
	Unavailable  = condition(operatorv1.ConditionKlusterletAvailable, "False", operatorv1.ReasonKlusterletNoAvailablePods, "no pod is ready")
	Applied      = condition(operatorv1.ConditionKlusterletApplied, "True", operatorv1.ReasonKlusterletApplied, "all is there")
	Available    = condition(operatorv1.ConditionKlusterletAvailable, "True", operatorv1.ReasonKlusterletAvailable, "the agent runs")
)

// AnswersKlusterlet adds conditions to the Klusterlet, once it exists, from the given read on.
func (s *Server) AnswersKlusterlet(conditions []metav1.Condition, from int) *int {
	looks := 0
	s.On["GET "+KlusterletPath] = func(w http.ResponseWriter, _ []byte) bool {
		k := s.Get(KlusterletPath)
		if k == nil {
			return false
		}
		looks++
		if looks < from {
			return false
		}
		said := NewKlusterlet("c1", slices.Clone(conditions)...)
		k.Object["metadata"].(map[string]any)["generation"] = int64(2)
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&said.Status)
		if err != nil {
			s.t.Error(err)
		}
		k.Object["status"] = status
		WriteJSON(w, http.StatusOK, k.Object)
		return true
	}
	return &looks
}

// Changes returns the requests to a server that change something, in a short form.
func (s *Server) Changes() (all []string) {
	for _, request := range s.Asked {
		method, path, _ := strings.Cut(request, " ")
		path, _, _ = strings.Cut(path, "?")
		if method != "GET" {
			all = append(all, method+" "+NameOf(path))
		}
	}
	return all
}

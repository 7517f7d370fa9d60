// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	clientset "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// agentOfC1 is an agent of the cluster c1.
var agentOfC1 = authenticationv1.UserInfo{Username: registration.ClusterUser("c1", "a"), Groups: []string{registration.ManagedClustersGroup, registration.ClusterGroup("c1")}}

// kubernetes answers what programs ask of a kube-apiserver while they are assembled and when they start: its discovery has all kinds, and there are no objects but
// the client CAs and the namespace kube-system. It allows everything, and takes every token for that of agentOfC1.
type kubernetes struct {
	kubeconfig string
	served     map[schema.GroupVersion][]metav1.APIResource
	ca         string
	// lists holds the paths of the list requests.
	lists sync.Map
}

// startKubernetes returns a server that runs until the test ends.
func startKubernetes(t *testing.T) *kubernetes {
	t.Helper()
	ca, _, err := cert.GenerateSelfSignedCertKey("ca", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, clientset.AddToScheme, apiregistrationv1.AddToScheme, operatorv1.AddToScheme} {
		utilruntime.Must(add(types))
	}
	k := &kubernetes{served: map[schema.GroupVersion][]metav1.APIResource{}, ca: string(ca)}
	for kind := range types.AllKnownTypes() {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		k.served[kind.GroupVersion()] = append(k.served[kind.GroupVersion()], metav1.APIResource{Name: plural.Resource, Kind: kind.Kind, Namespaced: true})
	}
	server := httptest.NewServer(k)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	k.kubeconfig = writeKubeconfig(t, server.URL)
	return k
}

func writeKubeconfig(t *testing.T, server string) (path string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.Contexts["c"], config.CurrentContext = &clientcmdapi.Cluster{Server: server}, &clientcmdapi.Context{Cluster: "c"}, "c"
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ServeHTTP implements http.Handler.
func (k *kubernetes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(code int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object)
	}
	typed := func(version, kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: kind} }
	path := strings.Trim(r.URL.Path, "/")
	resources := k.served[groupVersion(path)]
	version, kind, isList := k.listOf(path)
	switch {
	case path == "api":
		answer(http.StatusOK, metav1.APIVersions{TypeMeta: typed("v1", "APIVersions"), Versions: []string{"v1"}})
	case path == "apis":
		answer(http.StatusOK, k.groups())
	case len(resources) > 0:
		answer(http.StatusOK, metav1.APIResourceList{TypeMeta: typed("v1", "APIResourceList"), GroupVersion: groupVersion(path).String(), APIResources: resources})
	case path == "api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication":
		answer(http.StatusOK, corev1.ConfigMap{TypeMeta: typed("v1", "ConfigMap"), Data: map[string]string{"client-ca-file": k.ca}})
	case path == "api/v1/namespaces/"+metav1.NamespaceSystem:
		answer(http.StatusOK, corev1.Namespace{TypeMeta: typed("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "u"}})
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/tokenreviews"):
		answer(http.StatusCreated, authenticationv1.TokenReview{TypeMeta: typed("authentication.k8s.io/v1", "TokenReview"),
			Status: authenticationv1.TokenReviewStatus{Authenticated: true, User: agentOfC1}})
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/subjectaccessreviews"):
		answer(http.StatusCreated, authorizationv1.SubjectAccessReview{TypeMeta: typed("authorization.k8s.io/v1", "SubjectAccessReview"),
			Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}})
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/secrets"):
		answer(http.StatusCreated, corev1.Secret{TypeMeta: typed("v1", "Secret")})
	case r.Method == http.MethodGet && isList:
		k.lists.Store(path, true)
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") == "true":
			answer(http.StatusUnprocessableEntity, metav1.Status{TypeMeta: typed("v1", "Status"), Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid,
				Code: http.StatusUnprocessableEntity})
		case query.Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			answer(http.StatusOK, metav1.List{TypeMeta: typed(version.String(), kind+"List"), Items: []runtime.RawExtension{}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
		}
	default:
		answer(http.StatusNotFound, metav1.Status{TypeMeta: typed("v1", "Status"), Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	}
}

// listOf returns what a path of a list, in all namespaces, is a list of.
func (k *kubernetes) listOf(path string) (version schema.GroupVersion, kind string, found bool) {
	i := strings.LastIndex(path, "/") + 1
	version, resource := groupVersion(strings.TrimSuffix(path[:i], "/")), path[i:]
	for _, served := range k.served[version] {
		if served.Name == resource {
			return version, served.Kind, true
		}
	}
	return version, "", false
}

// groupVersion returns the group and version that a path of discovery is for.
func groupVersion(path string) schema.GroupVersion {
	if version, found := strings.CutPrefix(path, "api/"); found {
		return schema.GroupVersion{Version: version}
	}
	group, version, _ := strings.Cut(strings.TrimPrefix(path, "apis/"), "/")
	return schema.GroupVersion{Group: group, Version: version}
}

// hasListed reports whether a list of the path was requested.
func (k *kubernetes) hasListed(path string) bool {
	_, listed := k.lists.Load(path)
	return listed
}

func (k *kubernetes) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	versions := map[string][]metav1.GroupVersionForDiscovery{}
	for version := range k.served {
		if version.Group != "" && version.Version != runtime.APIVersionInternal {
			versions[version.Group] = append(versions[version.Group], metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version})
		}
	}
	for group, of := range versions {
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: of, PreferredVersion: of[0]})
	}
	return list
}

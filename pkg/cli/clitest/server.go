// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clitest has the servers, the objects and the way to run kubectl hub that the tests of its commands share.
package clitest

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served are the resources of a server by group version. Those with a star are namespaced.
var Served = map[string]map[string]string{
	"v1": {"namespaces": "Namespace", "serviceaccounts": "*ServiceAccount", "secrets": "*Secret", "pods": "*Pod",
		"configmaps": "*ConfigMap"},
	"apiextensions.k8s.io/v1": {"customresourcedefinitions": "CustomResourceDefinition"}, "apiregistration.k8s.io/v1": {"apiservices": "APIService"},
	"coordination.k8s.io/v1": {"leases": "*Lease"},
	"apps/v1":                {"deployments": "*Deployment"}, "batch/v1": {"jobs": "*Job"}, "networking.k8s.io/v1": {"networkpolicies": "*NetworkPolicy"},
	"policy/v1": {"poddisruptionbudgets": "*PodDisruptionBudget"},
	"rbac.authorization.k8s.io/v1": {"roles": "*Role", "rolebindings": "*RoleBinding", "clusterroles": "ClusterRole",
		"clusterrolebindings": "ClusterRoleBinding"},
	"certificates.k8s.io/v1":                     {"certificatesigningrequests": "CertificateSigningRequest"},
	"cluster.open-cluster-management.io/v1":      {"managedclusters": "ManagedCluster"},
	"cluster.open-cluster-management.io/v1beta2": {"managedclustersets": "ManagedClusterSet", "managedclustersetbindings": "*ManagedClusterSetBinding"},
	"cluster.open-cluster-management.io/v1beta1": {"managedclustersets": "ManagedClusterSet", "placements": "*Placement",
		"placementdecisions": "*PlacementDecision"},
	"clusterview.open-cluster-management.io/v1":       {"managedclusters": "ManagedCluster"},
	"clusterview.open-cluster-management.io/v1alpha1": {"managedclustersets": "ManagedClusterSet"},
	"work.open-cluster-management.io/v1":              {"manifestworks": "*ManifestWork", "appliedmanifestworks": "AppliedManifestWork"},
	"work.open-cluster-management.io/v1alpha1": {"manifestworkreplicasets": "*ManifestWorkReplicaSet",
		"manifestworkreplicasetrevisions": "*ManifestWorkReplicaSetRevision"},
	"view.clusterhub.dev/v1alpha1":           {"clustersetmembers": "ClusterSetMember"},
	"clusters.openmcp.cloud/v1alpha1":        {"accessrequests": "*AccessRequest"},
	"operator.open-cluster-management.io/v1": {"klusterlets": "Klusterlet", "clustermanagers": "ClusterManager"},
	"edge.clusterhub.dev/v1alpha1": {"edgenodes": "EdgeNode", "edgeservices": "*EdgeService", "deploymentpolicies": "*DeploymentPolicy",
		"deploymentpatterns": "*DeploymentPattern", "deploychecks": "*DeployCheck"},
}

// Server is a hub or a managed cluster for a command. It stores objects by their paths.
type Server struct {
	*httptest.Server
	t *testing.T

	Mu      sync.Mutex
	Objects map[string]map[string]any
	// On handles requests for a method and path in place of the server if it returns true, and only observes them otherwise.
	On map[string]func(w http.ResponseWriter, body []byte) bool
	// Asked are the requests with their queries, except discovery. Bodies has the last body for each request.
	Asked  []string
	Bodies map[string]string
	// Credentials are the credentials of all requests.
	Credentials map[string]bool
	// PageSize is the number of objects in a page of a list, or 0 for no pages.
	PageSize int
}

// NewServer starts a server with objects.
func NewServer(t *testing.T, objects ...runtime.Object) *Server {
	t.Helper()
	s := &Server{t: t, Objects: map[string]map[string]any{}, On: map[string]func(http.ResponseWriter, []byte) bool{}, Bodies: map[string]string{},
		Credentials: map[string]bool{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	for _, o := range objects {
		s.Put(o)
	}
	return s
}

// CA returns the authority of the server's certificate.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Put stores an object without changing it.
func (s *Server) Put(o runtime.Object) {
	s.t.Helper()
	object, err := AsMap(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Objects[PathOf(object)] = object
}

// Get returns an object, or nil if it does not exist.
func (s *Server) Get(path string) *unstructured.Unstructured {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if object, ok := s.Objects[path]; ok {
		return (&unstructured.Unstructured{Object: object}).DeepCopy()
	}
	return nil
}

// Paths returns the paths of all objects.
func (s *Server) Paths() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Sorted(maps.Keys(s.Objects))
}

// Refuse has the server respond to the request with an error.
func (s *Server) Refuse(request string, err *apierrors.StatusError) {
	s.On[request] = func(w http.ResponseWriter, _ []byte) bool {
		WriteJSON(w, int(err.ErrStatus.Code), err.ErrStatus)
		return true
	}
}

// Answer has the server respond to the request with an object.
func (s *Server) Answer(request string, object any) {
	s.On[request] = func(w http.ResponseWriter, _ []byte) bool {
		WriteJSON(w, http.StatusCreated, object)
		return true
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if failure := recover(); failure != nil {
			s.t.Errorf("the server, asked for %s %s: %v", r.Method, r.URL.Path, failure)
		}
	}()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	request := r.Method + " " + r.URL.Path
	s.Mu.Lock()
	s.Credentials[r.Header.Get("Authorization")] = true
	answer := s.On[request]
	s.Mu.Unlock()
	if answer != nil && answer(w, body) {
		s.note(r, body)
		return
	}
	if discover(w, r.URL.Path) {
		return
	}
	s.note(r, body)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	code, object := s.do(r, body)
	WriteJSON(w, code, object)
}

// note stores the body as JSON, whatever its format.
func (s *Server) note(r *http.Request, body []byte) {
	if object, err := Decode(body); err == nil && !json.Valid(body) {
		body, _ = json.Marshal(object)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Asked = append(s.Asked, r.Method+" "+r.URL.RequestURI())
	s.Bodies[r.Method+" "+r.URL.Path] = string(body)
}

// WriteJSON writes a response.
func WriteJSON(w http.ResponseWriter, code int, object any) {
	if status, ok := object.(metav1.Status); ok {
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		object = status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// discover handles discovery requests.
func discover(w http.ResponseWriter, path string) bool {
	switch path {
	case "/api":
		WriteJSON(w, http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})
		return true
	case "/apis":
		list := metav1.APIGroupList{}
		for groupVersion := range Served {
			if gv, err := schema.ParseGroupVersion(groupVersion); err == nil && gv.Group != "" {
				v := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: gv.Version}
				list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		WriteJSON(w, http.StatusOK, list)
		return true
	}
	resources, ok := Served[strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")]
	if !ok {
		return false
	}
	list := metav1.APIResourceList{GroupVersion: strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")}
	for name, kind := range resources {
		kind, namespaced := strings.CutPrefix(kind, "*")
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced, Verbs: []string{"get", "list", "delete"}})
	}
	WriteJSON(w, http.StatusOK, list)
	return true
}

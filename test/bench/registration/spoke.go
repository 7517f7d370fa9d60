// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// spoke is a fake API server of all managed clusters, with what hub-agent requests: each agent has its secrets in a namespace of its own. So the
// machine's processor time is available to the hub.
type spoke struct {
	*httptest.Server

	mu      sync.Mutex
	version int
	secrets map[types.NamespacedName]*corev1.Secret
}

func newSpoke() *spoke {
	s := &spoke{secrets: map[types.NamespacedName]*corev1.Secret{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.1"})
	})
	mux.HandleFunc("GET /api/v1/namespaces/kube-system", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, &corev1.Namespace{TypeMeta: v1("Namespace"), ObjectMeta: metav1.ObjectMeta{
			Name: "kube-system", UID: "5f0c1d5e-9f0a-4b9c-8f5e-0c1d2e3f4a5b"}})
	})
	mux.HandleFunc("GET /api/v1/nodes", s.nodes)
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/events", func(w http.ResponseWriter, r *http.Request) {
		if event, ok := decoded[*corev1.Event](w, r); ok {
			event.TypeMeta = v1("Event")
			answer(w, http.StatusCreated, event)
		}
	})
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/secrets/{name}", s.getSecret)
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/secrets", s.putSecret)
	mux.HandleFunc("PUT /api/v1/namespaces/{namespace}/secrets/{name}", s.putSecret)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, apierrors.NewNotFound(corev1.Resource("path"), r.URL.Path)) // such as ClusterClaims, without their CRD
	})
	s.Server = httptest.NewServer(mux)
	return s
}

func v1(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = v1("Status")
	answer(w, int(status.Code), &status)
}

// decoded decodes the body of a request in any format that clients send.
func decoded[T runtime.Object](w http.ResponseWriter, r *http.Request) (object T, ok bool) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		var any runtime.Object
		any, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err == nil {
			object, ok = any.(T)
		}
	}
	if !ok {
		refuse(w, apierrors.NewBadRequest("not what was expected"))
	}
	return object, ok
}

// store stores a secret for an agent.
func (s *spoke) store(secret *corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	secret.TypeMeta, secret.ResourceVersion = v1("Secret"), strconv.Itoa(s.version)
	s.secrets[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = secret
}

func (s *spoke) putSecret(w http.ResponseWriter, r *http.Request) {
	secret, ok := decoded[*corev1.Secret](w, r)
	if !ok {
		return
	}
	s.store(secret)
	code := http.StatusOK
	if r.Method == http.MethodPost {
		code = http.StatusCreated
	}
	answer(w, code, secret)
}

func (s *spoke) getSecret(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	secret := s.secrets[types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}]
	s.mu.Unlock()
	if secret == nil {
		refuse(w, apierrors.NewNotFound(corev1.Resource("secrets"), r.PathValue("name")))
		return
	}
	answer(w, http.StatusOK, secret)
}

// nodes returns one node that never changes.
func (s *spoke) nodes(w http.ResponseWriter, r *http.Request) {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi")}
	node := corev1.Node{TypeMeta: v1("Node"), ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "node", ResourceVersion: "1"},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources}}
	if r.URL.Query().Get("watch") == "" {
		answer(w, http.StatusOK, &corev1.NodeList{TypeMeta: v1("NodeList"), ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items: []corev1.Node{node}})
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		answer(w, http.StatusOK, map[string]any{"type": "ADDED", "object": node})
		node.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": node})
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	<-r.Context().Done()
}

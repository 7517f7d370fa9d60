// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/test/await"
)

// withheldMembers is a server with a set that has members, which it does not return before it is released.
type withheldMembers struct {
	t       *testing.T
	release chan struct{}

	mu sync.Mutex
	// asked is closed when a client requests the members, written has the bodies of status writes.
	asked   chan struct{}
	written []string
}

func (s *withheldMembers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	meta := map[string]any{"name": "dev", "resourceVersion": "1", "generation": 1}
	switch {
	case r.Method == http.MethodPatch:
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			s.t.Error(err)
		}
		s.mu.Lock()
		s.written = append(s.written, string(body))
		s.mu.Unlock()
		s.answer(w, map[string]any{"apiVersion": clusters, "kind": "ManagedClusterSet", "metadata": meta})
	case r.URL.Path == "/api":
		s.answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}})
	case r.URL.Path == "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
		for _, groupVersion := range []string{clusters, view, access} {
			name, version, _ := strings.Cut(groupVersion, "/")
			served := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{
				Name: name, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served,
			})
		}
		s.answer(w, groups)
	case r.URL.Path == "/apis/"+clusters || r.URL.Path == "/apis/"+view || r.URL.Path == "/apis/"+access:
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}}
		list.GroupVersion = strings.TrimPrefix(r.URL.Path, "/apis/")
		for _, needed := range needed() {
			if needed.GroupVersion().String() == list.GroupVersion {
				list.APIResources = append(list.APIResources, metav1.APIResource{
					Name: needed.Resource, Kind: kinds[needed.Resource],
					Namespaced: needed.Resource == "managedclustersetbindings" || list.GroupVersion == access,
				})
			}
		}
		s.answer(w, list)
	case r.URL.Query().Get("sendInitialEvents") == "true":
		// As a server without streaming lists: the client lists.
		http.Error(w, "", http.StatusUnprocessableEntity)
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case resource == "managedclustersets":
		s.answer(w, s.list(clusters, "ManagedClusterSetList", map[string]any{"metadata": meta}))
	case resource == "managedclustersetbindings":
		s.answer(w, s.list(clusters, "ManagedClusterSetBindingList"))
	case resource == "clustersetmembers":
		s.mu.Lock()
		select {
		case <-s.asked:
		default:
			close(s.asked)
		}
		s.mu.Unlock()
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
		s.answer(w, s.list("meta.k8s.io/v1", "PartialObjectMetadataList",
			map[string]any{"metadata": map[string]any{"name": "c1.dev", "resourceVersion": "1"}}))
	case kinds[resource] != "":
		s.answer(w, s.list(access, kinds[resource]+"List"))
	default:
		http.NotFound(w, r)
	}
}

var kinds = map[string]string{
	"managedclustersets": "ManagedClusterSet", "managedclustersetbindings": "ManagedClusterSetBinding",
	"clustersetmembers": "ClusterSetMember", "clusters": "Cluster", "clusterprofiles": "ClusterProfile",
	"clusterrequests": "ClusterRequest", "accessrequests": "AccessRequest",
}

func (s *withheldMembers) list(groupVersion, kind string, items ...any) map[string]any {
	return map[string]any{
		"apiVersion": groupVersion, "kind": kind, "metadata": map[string]any{"resourceVersion": "1"},
		"items": append([]any{}, items...),
	}
}

func (s *withheldMembers) answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.t.Log(err)
	}
}

func (s *withheldMembers) writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.written...)
}

// A status that is written before the members are known would report every set as empty.
func TestRun_WritesNoStatusBeforeMembersSync(t *testing.T) {
	s := &withheldMembers{t: t, release: make(chan struct{}), asked: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	o := NewOptions()
	o.Kubeconfig = t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub"}},
		CurrentContext: "hub",
	}, o.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	o.HealthAddress, o.Metrics.Address, o.LeaderElection.Enabled = "127.0.0.1:0", "0", false
	o.Controllers = setsAndAccess
	if err := o.FeatureGate.Set("DefaultClusterSet=false"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()

	select {
	case <-s.asked:
	case err := <-ended:
		t.Fatalf("ended before the members were asked for: %v", err)
	case <-time.After(await.Limit):
		t.Fatal("the members were not asked for")
	}
	// A write would come within the delay of one second. There is no condition to wait for that something does not happen.
	time.Sleep(1500 * time.Millisecond)
	if early := s.writes(); len(early) != 0 {
		t.Errorf("written before the members were known: %v", early)
	}
	close(s.release)
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, await.Limit, true,
		func(context.Context) (bool, error) { return len(s.writes()) > 0, nil })
	if err != nil || !strings.Contains(s.writes()[0], "1 ManagedClusters selected") {
		t.Errorf("%v: written %v, want one member", err, s.writes())
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("stopping: %v", err)
		}
	case <-time.After(await.Limit):
		t.Error("does not stop")
	}
}

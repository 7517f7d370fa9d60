// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/test/await"
)

const path = "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers"

// server serves members as hub-apiserver does, as far as a reflector is concerned, and can be made to misbehave.
type server struct {
	t *testing.T

	mu      sync.Mutex
	members []string
	version int
	// away makes it respond with 503, gone with 410 to watches from a version.
	away, gone bool
	// hangUp ends the open watches when it is closed; events are sent to them.
	hangUp chan struct{}
	events chan metav1.WatchEvent
	// refused is the number of error responses, accept has the formats that clients accept.
	refused int
	accept  map[string]bool
}

func newServer(t *testing.T, members ...string) *server {
	return &server{
		t: t, members: members, version: 1, hangUp: make(chan struct{}), events: make(chan metav1.WatchEvent),
		accept: map[string]bool{},
	}
}

func (s *server) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// breakOff ends the open watches, and sets the behavior of the server from now on.
func (s *server) breakOff(away, gone bool, members ...string) {
	s.do(func() {
		s.away, s.gone, s.refused = away, gone, 0
		s.members = members
		s.version++
		close(s.hangUp)
		s.hangUp = make(chan struct{})
	})
}

func (s *server) refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	query, hangUp := r.URL.Query(), s.hangUp
	s.accept[r.Header.Get("Accept")] = true
	initial := query.Get("sendInitialEvents") == "true"
	switch {
	case r.URL.Path != path:
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	case s.away:
		s.refused++
		s.mu.Unlock()
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	case s.gone && query.Get("watch") != "" && !initial:
		s.gone = false
		s.refused++
		s.mu.Unlock()
		s.write(w, http.StatusGone, &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		})
		return
	case query.Get("watch") == "":
		list := &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
			ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)},
		}
		for _, name := range s.members {
			list.Items = append(list.Items, s.object(name).(metav1.PartialObjectMetadata))
		}
		s.mu.Unlock()
		s.write(w, http.StatusOK, list)
		return
	}
	var first []metav1.WatchEvent
	if initial {
		for _, name := range s.members {
			first = append(first, s.event("ADDED", name))
		}
		end := s.object("").(metav1.PartialObjectMetadata)
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		first = append(first, s.raw("BOOKMARK", end))
	}
	s.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for _, event := range first {
		s.write(w, 0, event)
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case event := <-s.events:
			s.write(w, 0, event)
		case <-hangUp:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *server) object(name string) any {
	return metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(s.version)},
	}
}

func (s *server) event(kind, name string) metav1.WatchEvent { return s.raw(kind, s.object(name)) }

func (s *server) raw(kind string, object any) metav1.WatchEvent {
	data, err := json.Marshal(object)
	if err != nil {
		s.t.Error(err)
	}
	event := metav1.WatchEvent{Type: kind}
	event.Object.Raw = data
	return event
}

func (s *server) write(w http.ResponseWriter, status int, body any) {
	if status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.t.Log(err)
	}
}

func (s *server) send(kind, name string) {
	s.t.Helper()
	var event metav1.WatchEvent
	s.do(func() { s.version++; event = s.event(kind, name) })
	select {
	case s.events <- event:
	case <-s.t.Context().Done():
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, await.Limit, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestMembers_FollowedThroughServerFailures(t *testing.T) {
	s := newServer(t, "c1.a", "c2.a", "c1.b")
	s.away = true
	http := httptest.NewServer(s)
	t.Cleanup(http.Close)
	client, err := metadata.NewForConfig(&rest.Config{Host: http.URL})
	if err != nil {
		t.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	m := newMembers(listWatchMembers(client))
	m.backoff = &wait.Backoff{Duration: time.Millisecond, Steps: 1}
	if err := m.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	counts := func(a, b int) func() bool {
		return func() bool { return m.count("a") == a && m.count("b") == b }
	}

	eventually(t, "the server is asked again while it is away", func() bool { return s.refusals() > 2 })
	select {
	case <-m.synced:
		t.Fatal("synced without a list")
	default:
	}
	s.do(func() { s.away = false })
	if err := m.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "members from the beginning", counts(2, 1))
	eventually(t, "both sets are requested", func() bool { return queue.Len() == 2 })

	s.send("ADDED", "c3.b")
	eventually(t, "a member is added", counts(2, 2))
	s.send("MODIFIED", "c3.b")
	s.send("DELETED", "c1.a")
	eventually(t, "a member is deleted", counts(1, 2))

	s.breakOff(false, true, "c7.b")
	eventually(t, "the version is gone, and the members are listed anew", counts(0, 1))
	if s.refusals() == 0 {
		t.Error("no watch was refused with 410")
	}

	s.breakOff(true, false, "c7.b", "c8.b", "c8.a")
	eventually(t, "the server is asked again while it is away", func() bool { return s.refusals() > 2 })
	if !counts(0, 1)() {
		t.Error("the members are forgotten while the server is away")
	}
	s.do(func() { s.away, s.gone = false, true })
	eventually(t, "the server has come back with other members", counts(1, 2))

	s.mu.Lock()
	defer s.mu.Unlock()
	for accept := range s.accept {
		if !strings.Contains(accept, "as=PartialObjectMetadata") {
			t.Errorf("whole objects were asked for: %s", accept)
		}
	}
}

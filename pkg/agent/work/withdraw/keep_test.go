// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package withdraw

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

// The garbage collector may be slower than the response about a record whose deletion has started, or faster. End requests orphaning once: if it were
// requested again each time it is done, the record would never be gone.
func TestFinalize_OrphanRequestsGarbageCollectorOnce(t *testing.T) {
	for name, test := range map[string]struct {
		slow  bool
		waits string
	}{
		"a slow one": {true, "the cluster's garbage collector to orphan the objects of work w"},
		"a fast one": {false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			owner := w.record("w", w.target("brought"))
			w.configMap("brought", nil, owner)
			w.unknown(owner)
			records := w.cluster.records
			path := "/apis/work.open-cluster-management.io/v1/appliedmanifestworks/" + owner.Name
			var asked atomic.Int64
			var answer atomic.Pointer[[]byte]
			config := worktest.Config(t)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path != path {
						return next.RoundTrip(r)
					}
					if stale := answer.Swap(nil); stale != nil && r.Method == http.MethodGet {
						return answered(r, *stale), nil
					}
					response, err := next.RoundTrip(r)
					if err != nil || r.Method != http.MethodDelete {
						return response, err
					}
					asked.Add(1)
					body, err := io.ReadAll(response.Body)
					if err != nil {
						return nil, err
					}
					if test.slow { // the next response is as old as this one
						answer.Store(&body)
					} else {
						worktest.Eventually(t, "the garbage collector has let go", func() bool {
							object, err := records.Get(t.Context(), owner.Name, metav1.GetOptions{})
							return err == nil && !slices.Contains(object.GetFinalizers(), metav1.FinalizerOrphanDependents)
						})
					}
					response.Body = io.NopCloser(bytes.NewReader(body))
					return response, nil
				})
			})
			var err error
			w.cluster, err = New(config)
			if err != nil {
				t.Fatal(err)
			}
			waits, err := w.cluster.End(t.Context(), w.own()[0], Keep)
			if err != nil || waits != test.waits && waits != "" {
				t.Errorf("%q, %v, want %q", waits, err, test.waits)
			}
			w.end(Keep)
			if n := asked.Load(); n != 1 {
				t.Errorf("the garbage collector was asked %d times", n)
			}
			w.collected()
			for _, name := range []string{"brought", "unknown"} {
				if have := w.get(name); have == nil || len(have.GetOwnerReferences()) > 0 {
					t.Errorf("%s is %v", name, have)
				}
			}
		})
	}
}

// TestAttack_RecordDeletedByOthersOrphansObjects: another user deletes a record in the background, and removes the agent's finalizer; a third
// finalizer still blocks the deletion. No request to orphan the objects was sent then, and the garbage collector would delete those that the record
// does not name.
func TestAttack_RecordDeletedByOthersOrphansObjects(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"by hand": func(w *world) {
			if err := w.cluster.records.Delete(w.Context(), w.own()[0].object.Name, metav1.DeleteOptions{}); err != nil {
				w.Fatal(err)
			}
			w.finalizers("example.com/held")
		},
		"by an unjoin that was to delete": func(w *world) {
			if _, err := w.cluster.End(w.Context(), w.own()[0], Delete); err != nil {
				w.Fatal(err)
			}
		},
		"by one that was to keep, and then to delete": func(w *world) {
			for _, fate := range []Fate{Keep, Delete} {
				if _, err := w.cluster.End(w.Context(), w.own()[0], fate); err != nil {
					w.Fatal(err)
				}
			}
		},
		"with an annotation of another record": func(w *world) {
			patch := []byte(`{"metadata":{"annotations":{"` + askedAnnotation + `":"other"}}}`)
			if _, err := w.cluster.records.Patch(w.Context(), w.own()[0].object.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				w.Fatal(err)
			}
			if err := w.cluster.records.Delete(w.Context(), w.own()[0].object.Name, metav1.DeleteOptions{}); err != nil {
				w.Fatal(err)
			}
			w.finalizers("example.com/held")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			owner := w.record("w")
			w.finalizers(memory.Finalizer, "example.com/held")
			before(w)
			w.unknown(owner)
			asked, config := atomic.Int64{}, worktest.Config(t)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodDelete {
						asked.Add(1)
					}
					return next.RoundTrip(r)
				})
			})
			var err error
			w.cluster, err = New(config)
			if err != nil {
				t.Fatal(err)
			}
			held := "the finalizers example.com/held of the record of work w"
			for range 3 { // it waits for the third one, and does not ask again
				worktest.Eventually(t, "the garbage collector has let go", func() bool {
					waits, err := w.cluster.End(t.Context(), w.own()[0], Keep)
					if err != nil {
						t.Fatal(err)
					}
					return waits == held
				})
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("the garbage collector was asked %d times", n)
			}
			w.finalizers()
			w.end(Keep)
			w.collected()
			if have := w.get("unknown"); have == nil || len(have.GetOwnerReferences()) > 0 {
				t.Errorf("what the record does not say is %v", have)
			}
		})
	}
}

// answered returns a response with a JSON object.
func answered(r *http.Request, body []byte) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body))}
}

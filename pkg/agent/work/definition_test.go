// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestDelete_WithDefinition: a work with a definition and a custom resource of it is gone once the definition is gone. Nothing waits for a
// backoff, which is an hour here, and no request checks whether the kind of the custom resource is still served.
func TestDelete_WithDefinition(t *testing.T) {
	for _, how := range []string{"the work is deleted", "the manifests leave the work", "the work is deleted, and its agent ends meanwhile"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			spec, resource, definition := w.ordered()
			var mu sync.Mutex
			var asked []string
			counting := false
			w.around = func(r *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				if path := r.URL.Path; counting && r.URL.Query().Get("watch") == "" &&
					(path == "/apis" || strings.HasPrefix(path, "/apis/"+resource.Group)) {
					asked = append(asked, r.Method+" "+path)
				}
				return do()
			}
			newAgent := func() *Agent {
				a := w.newAgent()
				a.firstWait = time.Hour
				return a
			}
			stop := w.start(newAgent())
			w.put("a", spec)
			w.eventuallySaid("a", workv1.WorkApplied, "True: True True True")
			hold := func(finalizers ...string) {
				w.change(definition, func(o *unstructured.Unstructured) {
					own := o.GetFinalizers()[:0]
					for _, f := range o.GetFinalizers() {
						if f != "example.com/hold" {
							own = append(own, f)
						}
					}
					o.SetFinalizers(append(own, finalizers...))
				})
			}
			hold("example.com/hold")
			w.eventuallyIdle()
			mu.Lock()
			counting = true
			mu.Unlock()
			if how == "the manifests leave the work" {
				w.put("a", w.spec())
			} else {
				w.delete("a")
			}
			worktest.Eventually(t, "the definition is being deleted", func() bool { return w.get(definition).GetDeletionTimestamp() != nil })
			if how == "the work is deleted, and its agent ends meanwhile" {
				stop()
				w.start(newAgent())
			}
			w.eventuallyIdle()
			hold()
			if how == "the manifests leave the work" {
				w.eventually("the record", "", func() string { return w.recorded("a") })
			} else {
				w.eventuallyGone("a")
			}
			if have := w.get(definition); have != nil {
				t.Errorf("the definition is there: %v", have.GetFinalizers())
			}
			mu.Lock()
			defer mu.Unlock()
			// The custom resource is read, deleted, and read again. Only another process must read it once more.
			if how != "the work is deleted, and its agent ends meanwhile" && len(asked) > 3 {
				t.Errorf("there are %d requests about the custom resource, want 3:\n%s", len(asked), strings.Join(asked, "\n"))
			}
		})
	}
}

// TestDelete_WithoutDefinition: another client has deleted the definition, and the custom resource with it. Discovery reports that the kind is no
// longer served, so that the custom resource is gone.
func TestDelete_WithoutDefinition(t *testing.T) {
	for _, how := range []string{"the work is deleted", "the manifest leaves the work"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			all, resource, definition := w.ordered()
			definitions := w.client.Resource(definition.GroupVersionResource)
			if _, err := definitions.Create(t.Context(), worktest.Parse(string(all.Workload.Manifests[0].Raw)), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			spec := workv1.ManifestWorkSpec{}
			spec.Workload.Manifests = all.Workload.Manifests[1:]
			a := w.newAgent()
			a.firstWait = time.Hour
			w.start(a)
			w.put("a", spec)
			w.eventuallySaid("a", workv1.WorkApplied, "True: True True")
			if err := definitions.Delete(t.Context(), definition.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			worktest.Eventually(t, "the kind is not served", func() bool {
				version, err := a.Kinds.Live(t.Context(), resource.GroupVersionResource)
				return version == "" && err == nil
			})
			if how == "the work is deleted" {
				w.delete("a")
				w.eventuallyGone("a")
				return
			}
			spec.Workload.Manifests = spec.Workload.Manifests[1:]
			w.put("a", spec)
			w.eventually("the record", "cm", func() string { return w.recorded("a") })
		})
	}
}

// TestAttack_UnresponsiveAPI: the objects of an API server that does not respond are not gone. Objects that stay lose their owner before the
// work is deleted, or else the cluster's garbage collector would delete them.
func TestAttack_UnresponsiveAPI(t *testing.T) {
	for _, how := range []string{"the work is deleted", "the manifest leaves the work", "the work is deleted, and its objects stay"} {
		for _, object := range []string{"not found", "unavailable"} {
			t.Run(how+", the object is "+object, func(t *testing.T) {
				w := newWorld(t)
				all, resource, definition := w.ordered()
				definitions := w.client.Resource(definition.GroupVersionResource)
				if _, err := definitions.Create(t.Context(), worktest.Parse(string(all.Workload.Manifests[0].Raw)), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := definitions.Delete(t.Context(), definition.Name, metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
				}()
				var down atomic.Bool
				w.around = func(r *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
					path := r.URL.Path
					switch {
					case !down.Load():
					case path == "/apis/"+resource.Group+"/v1", object == "unavailable" && strings.HasPrefix(path, "/apis/"+resource.Group+"/"):
						return answer(r, http.StatusServiceUnavailable, "service unavailable"), nil
					case strings.HasPrefix(path, "/apis/"+resource.Group+"/"):
						return answer(r, http.StatusNotFound, "404 page not found"), nil
					case path == "/apis" && strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList"):
						return without(resource.Group, do)
					}
					return do()
				}
				spec := workv1.ManifestWorkSpec{}
				spec.Workload.Manifests = all.Workload.Manifests[1:]
				stays := how == "the work is deleted, and its objects stay"
				if stays {
					spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
				}
				stop := w.start(w.newAgent())
				w.put("a", spec)
				w.eventuallySaid("a", workv1.WorkApplied, "True: True True")
				stop()
				if stays {
					// Another client gives it back to the work: as if the policy had changed while the agent did not run.
					record := w.record("a")
					w.change(resource, func(o *unstructured.Unstructured) {
						o.SetOwnerReferences([]metav1.OwnerReference{apply.Owner{Name: record.GetName(), UID: record.GetUID()}.Reference()})
					})
				}
				down.Store(true)
				if how == "the manifest leaves the work" {
					spec.Workload.Manifests = spec.Workload.Manifests[1:]
					w.put("a", spec)
				} else {
					w.delete("a")
				}
				w.start(w.newAgent())
				if how == "the manifest leaves the work" {
					w.eventuallySaid("a", workv1.WorkApplied, "True: True")
				} else {
					worktest.Eventually(t, "the work says what it waits for", func() bool {
						got := w.deleting("a")
						return strings.Contains(got, "widgets") && (object == "unavailable" || strings.Contains(got, "discovering the resources of "+resource.Group))
					})
				}
				if !strings.Contains(w.recorded("a"), "x") || w.get(resource) == nil || w.get(resource).GetDeletionTimestamp() != nil {
					t.Errorf("the record has %q, and the object is %v", w.recorded("a"), w.get(resource))
				}
				down.Store(false)
				if how == "the manifest leaves the work" {
					w.eventually("the record", "cm", func() string { return w.recorded("a") })
				} else {
					w.eventuallyGone("a")
				}
				if have := w.get(resource); stays != (have != nil) || stays && len(have.GetOwnerReferences()) > 0 {
					t.Errorf("the object is %v", have)
				}
			})
		}
	}
}

// answer returns a response as from a proxy.
func answer(r *http.Request, code int, text string) *http.Response {
	return &http.Response{StatusCode: code, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(text))}
}

// without removes a group from a discovery response, as if the group did not respond.
func without(group string, do func() (*http.Response, error)) (*http.Response, error) {
	response, err := do()
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	list := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	items, left := list["items"].([]any), []any{}
	for _, item := range items {
		if name, _, _ := unstructured.NestedString(item.(map[string]any), "metadata", "name"); name != group {
			left = append(left, item)
		}
	}
	list["items"] = left
	data, err := json.Marshal(list)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return response, err
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
)

// answering is a cluster that responds to lists and watches only.
type answering struct {
	metadata.Getter
	list  func() error
	watch func(ctx context.Context) error
}

func (a answering) Resource(schema.GroupVersionResource) metadata.Getter { return a }

func (a answering) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if err := a.list(); err != nil {
		return nil, err
	}
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
}

func (a answering) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	if err := a.watch(ctx); err != nil {
		return nil, err
	}
	w := watch.NewFake()
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

// looks counts the reconciles of a Klusterlet per hour, while the cluster responds like this to the watches of all kinds.
func looks(t *testing.T, a answering, hours int) (n []int) {
	t.Helper()
	n = make([]int, hours)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		s := &observations{burst: changeBurst, interval: changeInterval}
		s.enqueue = func(name string) {
			n[min(int(time.Since(began).Hours()), hours-1)]++
			s.begin(name)
			s.end(name)
		}
		s.begin("k")
		s.end("k")
		var all []objectSet
		for _, kind := range append(plan.Owned, plan.Shared...) {
			all = append(all, objectSet{kind: kind})
		}
		listen(ctx, a, s, all)
		time.Sleep(time.Duration(hours)*time.Hour - time.Minute)
		cancel()
		synctest.Wait()
	})
	return n
}

// TestFollow_PollsWithoutWatches: where watches report nothing, reconciles happen now and then, independent of the number of watches that do
// not start.
func TestFollow_PollsWithoutWatches(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "", errors.New("no"))
	ok := func() error { return nil }
	for name, a := range map[string]answering{
		"lists are refused":   {list: func() error { return refused }},
		"watches are refused": {list: ok, watch: func(context.Context) error { return refused }},
		"nothing answers": {list: ok, watch: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Second):
			}
			return errors.New("it is too slow")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for hour, n := range looks(t, a, 3) {
				if n < 4 || n > 9 { // including a few at the beginning
					t.Errorf("in hour %d there are %d looks, want one in ten minutes", hour, n)
				}
			}
		})
	}
}

// TestFollow_RestartsAfterHours: changes that a cluster does not report are found within hours, such as after a restore from a backup: no event has
// a resource version that the watch asks for then.
func TestFollow_RestartsAfterHours(t *testing.T) {
	silent := answering{list: func() error { return nil }, watch: func(context.Context) error { return nil }}
	total := 0
	for hour, n := range looks(t, silent, 25) {
		if n > 5 {
			t.Errorf("in hour %d there are %d looks", hour, n)
		}
		if hour > 0 && n > 0 {
			total++
		}
	}
	if total < 3 || total > 6 {
		t.Errorf("in a day it was looked %d times, want 3 to 6", total)
	}
}

// TestReconcile_RechecksHiddenDefinition: a cluster that serves the kind of a definition with an own server may remove that server. No watch
// reports it.
func TestReconcile_RechecksHiddenDefinition(t *testing.T) {
	for _, mode := range []operatorv1.InstallMode{operatorv1.InstallModeHosted, operatorv1.InstallModeSingleton} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			hidden := true
			w.wrap = func(c client.Client) client.Client {
				return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
					Get: func(ctx context.Context, i client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
						if service, ok := o.(*unstructured.Unstructured); ok && o.GetObjectKind().GroupVersionKind().Kind == plan.APIServices.Kind && hidden {
							service.SetName(key.Name)
							return unstructured.SetNestedField(service.Object, "hub-apiserver", "spec", "service", "name")
						}
						return i.Get(ctx, key, o, options...)
					},
				})
			}
			r := w.reconciler()
			k := w.applied(r, mode, nil)
			of := w.there
			if !k.IsDetached() {
				of = w.here
			}
			defines := func() bool {
				return strings.Contains(strings.Join(w.of(of, k), " "), plan.Definitions.Kind)
			}
			if defines() {
				t.Fatal("a definition was made that is hidden")
			}
			// No reconcile is needed until it is time.
			result, err := r.Reconcile(t.Context(), requestOf(k.Name))
			if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > unwatchedInterval {
				t.Errorf("it is looked at again after %s: %v, want at most %s", result.RequeueAfter, err, unwatchedInterval)
			}
			hidden = false
			w.clock.SetTime(w.clock.Now().Add(result.RequeueAfter))
			w.until(r, k, "the definitions are there", func(*operatorv1.Klusterlet) bool { return defines() })
			w.delete(k)
			w.until(r, k, "it is gone", isGone)
			w.expectNothing(k)
		})
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// maxHeap is the maximum of memory, in MiB, that the controller and the tests may use for all hubs that lie. The pod of hub-operator has 512 MiB.
const maxHeap = 256

// lyingHub claims to have the given number of objects of each kind, all owned by the ClusterManager, each with a text of the given size in bytes, and
// reports changes of them without end. It rejects all creates, updates and deletes.
func lyingHub(objects, bytes int) operatortest.Lie {
	text := strings.Repeat("x", bytes)
	return func(w http.ResponseWriter, r *http.Request, truth http.Handler) {
		query := r.URL.Query()
		switch {
		case query.Get("watch") != "":
			operatortest.RespondForever("", func(_ *http.Request, i int) string {
				return operatortest.Event("MODIFIED", "kube-system", operatortest.Marker, i)
			})(w, r, truth)
		case r.Method != http.MethodGet:
			operatortest.Respond(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"`+
				operatortest.Marker+`\u001b[2J `+strings.Repeat("no ", 1<<12)+`"}`)(w, r, truth)
		case strings.HasSuffix(r.URL.Path, "/namespaces/"+metav1.NamespaceSystem):
			operatortest.Respond(http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"lies"}}`)(w, r, truth)
		case query.Get("labelSelector") != "":
			owner, err := labels.ConvertSelectorToLabelsMap(query.Get("labelSelector"))
			if err != nil {
				panic(err)
			}
			list := map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}}
			var items []any
			for i := range objects {
				items = append(items, map[string]any{"spec": map[string]any{"text": text}, "metadata": map[string]any{
					"name": fmt.Sprintf("%s-%d\u001b[2J", operatortest.Marker, i), "namespace": "kube-system", "uid": fmt.Sprint(i), "resourceVersion": "1", "labels": owner}})
			}
			list["items"] = items
			data, err := json.Marshal(list)
			if err != nil {
				panic(err)
			}
			operatortest.Respond(http.StatusOK, string(data))(w, r, truth)
		default:
			operatortest.Respond(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)(w, r, truth)
		}
	}
}

// hubsThatLie creates ClusterManagers with hubs that each lie in a different way, and waits until all of them got requests. The function that it
// returns verifies that the status reports what is wrong, and deletes them. In between, another ClusterManager is created.
func hubsThatLie(t *testing.T, w *world) (end func()) {
	t.Helper()
	began, heap := time.Now(), operatortest.Heap(t)
	type hub struct {
		cm    *operatorv1.ClusterManager
		front *operatortest.Front
		says  string
	}
	hubs := map[string]*hub{}
	long, enough := strings.Repeat(operatortest.Marker, 1<<16), make(chan struct{})
	for name, lie := range map[string]struct {
		tells operatortest.Lie
		says  string
	}{
		"redirects": {func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			http.Redirect(w, r, "https://kubernetes.default/", http.StatusTemporaryRedirect)
		}, "a redirect, which is not followed"},
		"endless":     {operatortest.RespondForever(`{"kind":"`, func(*http.Request, int) string { return long }), "exceeds the maximum of"},
		"no-json":     {operatortest.Respond(http.StatusOK, `{"kind":"`+operatortest.Marker), " "},
		"no-uid":      {operatortest.Respond(http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"`+long[:1<<12]+`"}}`), "no UID"},
		"many":        {lyingHub(100, 10), operatortest.Marker},
		"large":       {lyingHub(5, 90_000), operatortest.Marker},
		"too-large":   {lyingHub(2, 1<<20), "exceeds the maximum of"},
		"too-many":    {lyingHub(2000, 1), "exceeds the maximum of"},
		"slow-or-not": {operatortest.Hang(enough), "has not responded within 30s"},
	} {
		h := &hub{cm: detached("lies-" + name), front: &operatortest.Front{Lies: lie.tells}, says: lie.says}
		hubs[name] = h
		w.create(h.cm)
	}
	for _, h := range hubs {
		w.condition(h.cm.Name, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
		w.giveData(h.cm, h.front.Start(t, w.hub.AdminConfig()))
	}
	for _, h := range hubs {
		eventually(t, h.cm.Name+" is asked", func() string {
			if len(h.front.Requests()) == 0 {
				return "not yet"
			}
			return ""
		})
	}
	return func() {
		t.Helper()
		for _, h := range hubs {
			eventually(t, h.cm.Name+" says what is wrong", func() string {
				cm := w.read(h.cm.Name)
				for _, kind := range []string{operatorv1.ConditionReadyToApply, operatorv1.ConditionClusterManagerApplied} {
					if c := meta.FindStatusCondition(cm.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, h.says) {
						return ""
					}
				}
				return fmt.Sprintf("%+v", cm.Status.Conditions)
			})
			w.isClean(t, h.cm)
		}
		close(enough) // each reconcile would take half a minute
		for _, h := range hubs {
			w.deletes(h.cm)
		}
		for _, h := range hubs {
			eventually(t, h.cm.Name+" says until when it is waited for", func() string {
				cm := w.read(h.cm.Name)
				if cm == nil { // nothing was written there
					return ""
				}
				w.isClean(t, h.cm)
				if said := fmt.Sprintf("%+v", cm.Status.Conditions); !strings.Contains(said, reasonUnreachable) {
					return said
				}
				return ""
			})
		}
		w.clock.step(giveUpAfter + time.Minute)
		for name, h := range hubs {
			w.gone(h.cm.Name)
			looks := 0
			for _, request := range h.front.Requests() {
				if strings.HasSuffix(request, "/namespaces/"+metav1.NamespaceSystem) {
					looks++
				}
			}
			took := time.Since(began)
			t.Logf("%s: within %s there were %d looks, %d requests and %d watches", name, took.Round(time.Second), looks, len(h.front.Requests()), h.front.Watches())
			// Reconciles after failures have growing pauses.
			if most := changesAtOnce + int(took/changeEach) + 20; looks > most {
				t.Errorf("%s: there were %d looks, want %d at most", name, looks, most)
			}
		}
		most := heap()
		t.Logf("the heap has grown by %d MiB at most", most)
		if most > maxHeap {
			t.Errorf("the heap has grown by %d MiB, want %d at most", most, maxHeap)
		}
	}
}

// isClean verifies that nothing from the responses of a hub is on the management cluster except short lines of conditions.
func (w *world) isClean(t *testing.T, cm *operatorv1.ClusterManager) {
	t.Helper()
	now := w.read(cm.Name)
	if now == nil {
		return
	}
	for _, c := range now.Status.Conditions {
		if len(c.Message) > 1000 || strings.ContainsFunc(c.Message, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			t.Errorf("%s: %s has a message of %d bytes: %.1200q", cm.Name, c.Type, len(c.Message), c.Message)
		}
	}
	now.Status.Conditions = nil
	var secrets corev1.SecretList
	if err := w.management.client.List(t.Context(), &secrets, client.InNamespace(cm.ServerNamespace())); err != nil {
		t.Fatal(err)
	}
	for _, o := range []any{now, &secrets} {
		if data, err := json.Marshal(o); err != nil || strings.Contains(string(data), operatortest.Marker) {
			t.Errorf("%s: what the hub says is in a %T: %v", cm.Name, o, err)
		}
	}
}

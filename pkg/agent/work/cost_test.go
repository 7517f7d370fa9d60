// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestCost_OfWork verifies the number of requests to apply a work, and that no requests follow.
func TestCost_OfWork(t *testing.T) {
	inEachHome(t, func(w *world) {
		var mu sync.Mutex
		var asked []string
		names := strings.NewReplacer(w.namespace, "NS", w.cluster, "CLUSTER")
		discovery := regexp.MustCompile(`^/apis?(/[^/]+){0,2}$`)
		w.around = func(r *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
			what := r.Method
			if r.URL.Query().Get("watch") != "" {
				what = "WATCH"
			}
			response, err := do()
			// On a slow machine the agent may sync once more before it observes its own write, which the server then rejects.
			if outdated := err == nil && response.StatusCode == http.StatusConflict; !outdated && !discovery.MatchString(r.URL.Path) {
				mu.Lock()
				asked = append(asked, what+" "+names.Replace(r.URL.Path))
				mu.Unlock()
			}
			return response, err
		}
		w.start(w.newAgent())
		// Requests without any work, and for the kinds of the first one, are not counted.
		w.put("first", w.spec(w.configMap("first", "{}")))
		w.eventuallySaid("first", workv1.WorkApplied, "True: True")
		w.eventuallyIdle()
		mu.Lock()
		asked = nil
		mu.Unlock()
		var manifests []string
		for i := range 5 {
			manifests = append(manifests, w.configMap(fmt.Sprint("cm", i), "{k: v}"))
		}
		w.put("a", w.spec(manifests...))
		w.eventuallySaid("a", workv1.WorkApplied, "True: True True True True True")
		w.eventuallyIdle()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(asked)
		// The requests: the finalizer; the record is created, and updated with the objects to create and then with the UIDs; the status. An object is
		// created, and watched, and the record is watched.
		if most := 5 + 5*2 + 1; len(asked) > most {
			w.Errorf("there are %d requests, want %d:\n%s", len(asked), most, strings.Join(asked, "\n"))
		}
	})
}

// TestCost_OfRestart: after a restart, each object and each record is read and watched. Nothing is written.
func TestCost_OfRestart(t *testing.T) {
	const works = 3
	w := newWorld(t)
	names := w.variedWorks(works)
	stop := w.start(w.newAgent())
	for _, name := range names {
		w.eventuallySaid(name, workv1.WorkApplied, "True: True True True True True")
	}
	w.eventuallyIdle()
	stop()
	var mu sync.Mutex
	asked := map[string]int{}
	w.around = func(r *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
		what := r.Method
		if r.URL.Query().Get("watch") != "" {
			what = "WATCH"
		}
		if strings.Contains(r.URL.Path, "/namespaces/"+w.namespace+"/") || strings.Contains(r.URL.Path, "/appliedmanifestworks/") {
			mu.Lock()
			asked[what]++
			mu.Unlock()
		}
		return do()
	}
	w.start(w.newAgent())
	w.eventuallyIdle()
	mu.Lock()
	defer mu.Unlock()
	if asked["GET"] != works*6 || len(asked) > 2 {
		t.Errorf("there are %v requests, want %d to read, and others only to watch", asked, works*6)
	}
}

// variedWorks creates works of five manifests each, of different kinds.
func (w *world) variedWorks(n int) (names []string) {
	w.Helper()
	for i := range n {
		names = append(names, fmt.Sprint("w", i))
		text := func(kind, rest string) string {
			return fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: x%d, namespace: %s, labels: {app: x}}, %s}", kind, i, w.namespace, rest)
		}
		w.put(names[i], w.spec(w.configMap(names[i], "{k: v}"), text("Secret", "stringData: {k: v}"), text("ServiceAccount", "imagePullSecrets: [{name: s}]"),
			text("Service", "spec: {clusterIP: None, selector: {app: x}, ports: [{port: 80}]}"),
			fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: x%d, namespace: %s}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, "+
				"spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}], env: [{name: A, value: a}]}]}}}}", i, w.namespace)))
	}
	return names
}

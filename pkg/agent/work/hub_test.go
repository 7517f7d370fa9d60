// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestHub_Unreachable: applied objects stay as they are desired, and no work counts as missing.
func TestHub_Unreachable(t *testing.T) {
	w := newWorld(t)
	var away atomic.Bool
	w.around = func(request *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
		if away.Load() && strings.Contains(request.URL.Path, "/manifestworks") {
			return nil, errors.New("the hub is away")
		}
		return do()
	}
	w.grace = time.Second
	stop := w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm", "{k: v}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	away.Store(true)
	repaired := func() {
		t.Helper()
		if err := w.client.Resource(configMaps).Namespace(w.namespace).Delete(t.Context(), "cm", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the data", "map[k:v]", func() string { return w.data("cm") })
	}
	repaired()
	stop()

	t.Log("An agent that starts now knows no works, and takes none away")
	uid := w.get(w.target("cm")).GetUID()
	before := w.requests.Load()
	stop = w.start(w.newAgent())
	worktest.Eventually(t, "it has asked the hub more than once", func() bool { return w.requests.Load() > before+2 })
	stop()
	if have := w.get(w.target("cm")); have == nil || have.GetUID() != uid || w.record("a") == nil {
		t.Error("it was taken away")
	}
	away.Store(false)
	w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm", "{k: w}")))
	w.eventually("the data", "map[k:w]", func() string { return w.data("cm") })
	if have := w.get(w.target("cm")); have.GetUID() != uid {
		t.Error("it was made anew")
	}
}

// TestHub_RestoredFromBackup: the restored works are older. They are applied, and objects that they do not list are pruned.
func TestHub_RestoredFromBackup(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var writes []string
	w.around = func(request *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
		if strings.Contains(request.URL.Path, "/configmaps") && request.Method != http.MethodGet {
			mu.Lock()
			writes = append(writes, request.Method)
			mu.Unlock()
		}
		return do()
	}
	stop := w.start(w.newAgent())
	older := w.spec(w.configMap("older", "{}"), w.configMap("both", "{k: older}"))
	w.put("a", w.spec(w.configMap("newer", "{}"), w.configMap("both", "{k: newer}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	stop()
	uid := w.get(w.target("both")).GetUID()
	restored := w.put("a", older)
	restored.Status = workv1.ManifestWorkStatus{}
	worktest.Eventually(t, "the status is the older one", func() bool {
		_, err := w.works.UpdateStatus(t.Context(), restored, metav1.UpdateOptions{})
		return err == nil
	})
	writes = nil
	w.start(w.newAgent())
	w.eventually("the record", "both older", func() string { return w.recorded("a") })
	w.eventually("the data", "map[k:older]", func() string { return w.data("both") })
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(writes, []string{http.MethodPatch, http.MethodPatch, http.MethodDelete}) {
		t.Errorf("the writes were %v", writes)
	}
	if w.get(w.target("newer")) != nil || w.get(w.target("both")).GetUID() != uid {
		t.Error("what the older work does not have is there, or what both have was made anew")
	}
}

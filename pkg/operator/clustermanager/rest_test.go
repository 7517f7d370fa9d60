// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// checkRest reconciles the ClusterManager repeatedly, and verifies that nothing is written on either cluster, and that no reconcile is scheduled
// before a token must be renewed. The fields of the spec without effect are written to the status once.
func checkRest(t *testing.T, w *world) {
	t.Helper()
	w.stop()
	defer w.startController()
	p := w.process(long)
	defer p.hubs.CloseAll()
	p.until("blue", "nothing is written any more", func(*operatorv1.ClusterManager) string {
		before := len(p.since(0))
		if _, err := p.look("blue"); err != nil {
			return err.Error()
		}
		return strings.Join(p.since(before), ", ")
	})
	w.change("blue", func(cm *operatorv1.ClusterManager) { cm.Spec.WorkImagePullSpec = "example.com/work:v1" })
	before := len(p.since(0))
	for range 3 {
		result, err := p.look("blue")
		if err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter < time.Hour-time.Minute { // the clock continues during the test
			t.Errorf("it is looked at again after %s", result.RequeueAfter)
		}
	}
	if got := fmt.Sprint(p.since(before)); got != "[patch status *v1.ClusterManager /blue]" {
		t.Errorf("it was written: %s", got)
	}
	w.condition("blue", operatorv1.ConditionFieldsIgnored, metav1.ConditionTrue, "workImagePullSpec")
}

// checkQuiet verifies that a hub gets no request for a time in which several reconciles could run.
func checkQuiet(t *testing.T, hub *operatortest.Front) {
	t.Helper()
	last, since := -1, time.Now()
	eventually(t, "nothing but watches for five seconds", func() string {
		asked := hub.Requests()
		if len(asked) != last {
			last, since = len(asked), time.Now()
		}
		if time.Since(since) > 5*time.Second {
			return ""
		}
		return fmt.Sprintf("%d requests, the last ones %q", len(asked), asked[max(0, len(asked)-5):])
	})
}

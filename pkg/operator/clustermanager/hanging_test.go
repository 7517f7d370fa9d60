// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// hubsThatHang creates ClusterManagers whose hubs do not respond, and waits until requests to all of them hang at the same time. The function that it
// returns deletes them. Until then no other ClusterManager may be delayed.
func hubsThatHang(t *testing.T, w *world) (end func()) {
	t.Helper()
	const many = 12
	front := &operatortest.Front{Hangs: make(chan struct{})}
	source := front.Start(t, w.hub.AdminConfig())
	var all []*operatorv1.ClusterManager
	for i := range many {
		cm := detached(fmt.Sprintf("hangs-%d", i))
		w.create(cm)
		all = append(all, cm)
	}
	for _, cm := range all {
		w.condition(cm.Name, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, "does not exist")
		w.giveData(cm, source)
	}
	eventually(t, "all of them are asked at one time", func() string {
		if n := front.Waiting(); n < many {
			return fmt.Sprintf("%d of %d", n, many)
		}
		return ""
	})
	return func() {
		t.Helper()
		for _, request := range front.Requests() {
			if !strings.HasPrefix(request, "GET ") {
				t.Errorf("a hub that hangs was written to: %s", request)
			}
		}
		for _, cm := range all {
			if err := w.management.client.Delete(t.Context(), cm); err != nil {
				t.Fatal(err)
			}
		}
		close(front.Hangs)
		for _, cm := range all {
			w.gone(cm.Name)
		}
	}
}

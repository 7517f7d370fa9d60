// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// told waits for an event about a ClusterManager.
func (w *world) told(name, kind, reason, note string) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("an event %s of %s says %q", reason, name, note), func() string {
		var all corev1.EventList
		if err := w.management.client.List(w.t.Context(), &all, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err.Error()
		}
		var said []string
		for _, e := range all.Items {
			if e.InvolvedObject.Name != name {
				continue
			}
			if e.Type == kind && e.Reason == reason && strings.Contains(e.Message, note) {
				return ""
			}
			said = append(said, e.Type+" "+e.Reason+" "+e.Message)
		}
		return strings.Join(said, "\n")
	})
}

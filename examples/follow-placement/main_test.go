// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// told has the output of the example.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (o *told) tell(cluster string, chosen bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, fmt.Sprintf("%s %t", cluster, chosen))
}

func (o *told) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines, ", ")
}

// TestFollow_ReadsDecisions writes decisions as a scheduler does, with a Go client that omits what is empty, and
// follows them by a hub's API: what such tools take for a list or a text always is one.
func TestFollow_ReadsDecisions(t *testing.T) {
	h := harness.Hub(t)
	config := harness.Must(harness.ClientConfig(h.AdminKubeconfig()))(t)
	ours, namespace := harness.Ours(t, config), harness.Unique("follow")
	if _, err := harness.Kube(t, config).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	api := ours.ClusterV1beta1().PlacementDecisions(namespace)
	write := func(name, placement string, clusters ...string) {
		t.Helper()
		d, err := api.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			d = &v1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta1.PlacementLabel: placement}}}
			d = harness.Must(api.Create(t.Context(), d, metav1.CreateOptions{}))(t)
		}
		d.Status.Decisions = nil
		for _, c := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, v1beta1.ClusterDecision{ClusterName: c})
		}
		harness.Must(api.UpdateStatus(t.Context(), d, metav1.UpdateOptions{}))(t)
	}
	write("web-decision-1", "web")
	write("web-decision-2", "web", "c1", "c2")
	write("other-decision-1", "other", "c9")

	ctx, cancel := context.WithCancel(t.Context())
	out, ended := &told{}, make(chan error, 1)
	go func() {
		ended <- follow(ctx, harness.Must(dynamic.NewForConfig(config))(t), namespace, "web", out.tell)
	}()
	expect := func(lines ...string) {
		t.Helper()
		harness.Eventually(t, "the example prints "+strings.Join(lines, ", "), func(context.Context) (bool, error) {
			select {
			case err := <-ended:
				t.Fatalf("it has ended: %v", err)
			default:
			}
			return harness.Holds(out.all() == strings.Join(lines, ", "), out.all())
		})
	}
	lines := []string{"c1 true", "c2 true"}
	expect(lines...)
	// c2 moves between decisions: it is added before it is removed, so follow reports nothing.
	write("web-decision-1", "web", "c2", "c3")
	write("web-decision-2", "web", "c1")
	lines = append(lines, "c3 true")
	expect(lines...)
	write("web-decision-2", "web")
	lines = append(lines, "c1 false")
	expect(lines...)
	if err := api.Delete(t.Context(), "web-decision-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	lines = append(lines, "c2 false", "c3 false")
	expect(lines...)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is no text ends such tools; the example names it.
func TestFollow_UnreadableDecision(t *testing.T) {
	h := harness.Hub(t)
	config := harness.Must(harness.ClientConfig(h.AdminKubeconfig()))(t)
	api := harness.Ours(t, config).ClusterV1beta1().PlacementDecisions("default")
	d := &v1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: harness.Unique("scored"), Labels: map[string]string{v1beta1.PlacementLabel: "scored"}}}
	d = harness.Must(api.Create(t.Context(), d, metav1.CreateOptions{}))(t)
	d.Status.Decisions = []v1beta1.ClusterDecision{{ClusterName: "c1", Score: 7}}
	harness.Must(api.UpdateStatus(t.Context(), d, metav1.UpdateOptions{}))(t)
	err := follow(t.Context(), harness.Must(dynamic.NewForConfig(config))(t), "default", "scored", (&told{}).tell)
	if err == nil || !strings.Contains(err.Error(), "expected a string in score") {
		t.Errorf("a score ends it with %v", err)
	}
}

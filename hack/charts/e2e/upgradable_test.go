// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// upgradeFromTheHub verifies what docs/upgrade-agents.md says about agents of the chart: the hub sets a different image, and the values of the release
// must then contain it. Helm refuses other values with a conflict. An upgrade without server-side apply, as by Helm 3, sets the image of the values, and
// the agent applies the image of the work again.
func upgradeFromTheHub(h *helm, hub *localhub.Instance, p harness.Plugin, values map[string]any) {
	h.Helper()
	deployments := harness.Kube(h.T, h.cluster.AdminConfig()).AppsV1().Deployments(h.namespace)
	image := func(ctx context.Context) (string, int64, error) {
		d, err := deployments.Get(ctx, "hub-agent", metav1.GetOptions{})
		if err != nil {
			return "", 0, err
		}
		return d.Spec.Template.Spec.Containers[0].Image, d.Generation, nil
	}
	before, _, err := image(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	repository := before[:strings.LastIndex(before, ":")]
	const tag = "v1.99.0"
	want := repository + ":" + tag

	const fleet = "fleet"
	namespace(h.T, hub, fleet)
	p.Must(h.T, "bind", "default", "-n", fleet, "--context", "hub")
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: "stores"}, Spec: clusterv1beta1.PlacementSpec{ClusterSets: []string{"default"}}}
	for _, taint := range []string{"unreachable", "unavailable"} {
		placement.Spec.Tolerations = append(placement.Spec.Tolerations,
			clusterv1beta1.Toleration{Key: "cluster.open-cluster-management.io/" + taint, Operator: clusterv1beta1.TolerationOpExists})
	}
	harness.Must(harness.Ours(h.T, hub.AdminConfig()).ClusterV1beta1().Placements(fleet).Create(h.Context(), placement, metav1.CreateOptions{}))(h.T)
	p.Must(h.T, "agent", "upgrade", "--placement", fleet+"/stores", "--image", want, "--min-success-time", "1s", "--context", "hub")
	p.Must(h.T, "rollout", "status", "agent-upgrade-stores", "-n", fleet, "--wait", "--context", "hub")
	if got, _, err := image(h.Context()); got != want {
		h.Fatalf("the hub has upgraded the agent, and its image is %q, %v; expected %q", got, err, want)
	}

	if _, err := h.upgrade(values); err == nil || !strings.Contains(err.Error(), `conflict with "work-agent"`) || !strings.Contains(err.Error(), ".image") {
		h.Errorf("an upgrade with the former image: %v, expected a conflict of the image with the work agent", err)
	}
	current := runtime.DeepCopyJSON(values)
	if err := unstructured.SetNestedField(current, tag, "image", "tag"); err != nil {
		h.Fatal(err)
	}
	harness.Must(h.upgrade(current))(h.T)
	if got, _, err := image(h.Context()); got != want {
		h.Errorf("after an upgrade with the current image the image is %q, %v; expected %q", got, err, want)
	}

	h.clientSide = true
	_, generation, err := image(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	harness.Must(h.upgrade(values))(h.T)
	harness.Eventually(h.T, "the agent sets the image of the work again", func(ctx context.Context) (bool, error) {
		got, now, err := image(ctx)
		if err != nil {
			return false, err
		}
		return harness.Holds(got == want && now > generation, got)
	})

	// A record with a finalizer would hold up the deletion of its kind, when its agent is gone.
	harness.MustKubectlOf(h.T, hub, "", "delete", "manifestworkreplicaset", "agent-upgrade-stores", "-n", fleet, "--timeout=2m")
	harness.Eventually(h.T, "no work is on the hub", func(ctx context.Context) (bool, error) {
		works, err := harness.Ours(h.T, hub.AdminConfig()).WorkV1().ManifestWorks("c1").List(ctx, metav1.ListOptions{})
		return err == nil && len(works.Items) == 0, err
	})
	if got, _, err := image(h.Context()); got != want {
		h.Errorf("without the replica set the image is %q, %v; expected %q", got, err, want)
	}
}

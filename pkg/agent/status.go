// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// statusPause is the shortest time between two looks at the status, however much the cluster changes.
const statusPause = 5 * time.Second

func (a *agent) statusLoop(h *hub) *loop {
	said := &said{}
	return &loop{
		what:     "updating the status",
		interval: a.interval,
		timeout:  2 * requestTimeout,
		kick:     a.kicked,
		pause:    statusPause,
		random:   a.random,
		said:     said,
		do: func(ctx context.Context) error {
			// The hub writes conditions too.
			return refused(retry.RetryOnConflict(retry.DefaultRetry, func() error { return a.syncStatus(ctx, h, said) }))
		},
	}
}

// syncStatus compares what the hub has with what is, and writes the difference.
func (a *agent) syncStatus(ctx context.Context, h *hub, said *said) error {
	clusters := h.clusters.ClusterV1().ManagedClusters()
	cluster, err := clusters.Get(ctx, a.store.get().clusterName, metav1.GetOptions{})
	if unknown := apierrors.IsForbidden(err) || apierrors.IsNotFound(err); unknown && !a.seen {
		if err := a.registerAnew(ctx); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	a.seen = true
	if seconds := cluster.Spec.LeaseDurationSeconds; seconds > 0 {
		a.leaseSeconds.Store(seconds)
	}
	a.warnOfClock(ctx, cluster, said)
	// That the cluster itself may not be changed is no reason to leave the hub without a status.
	updated, err := a.syncMain(ctx, h, cluster)
	said.result(ctx, "updating the cluster", err)
	if apierrors.IsConflict(err) {
		return err
	}
	if err == nil {
		cluster = updated
	}
	observed := a.facts.observe(ctx)
	next := a.nextStatus(cluster.Status, observed)
	if observed.unhealthy == nil {
		said.result(ctx, "making the namespaces that the hub asks for", a.syncNamespaces(ctx, cluster, &next))
	}
	patch, err := statusPatch(cluster, next)
	if err != nil || patch == nil {
		return err
	}
	_, err = clusters.Patch(ctx, cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of ManagedCluster %s: %w", cluster.Name, err)
	}
	return nil
}

func (a *agent) warnOfClock(ctx context.Context, cluster *clusterv1.ManagedCluster, said *said) {
	text := ""
	if c := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionClockSynced); c != nil &&
		c.Status == metav1.ConditionFalse {
		text = c.Message
	}
	if said.again("clock", text) && text != "" {
		klog.FromContext(ctx).Info("The hub says that this cluster's clock is wrong", "message", text)
	}
}

// nextStatus is the status with what the agent knows. What it does not know stays.
func (a *agent) nextStatus(status clusterv1.ManagedClusterStatus, o observation) clusterv1.ManagedClusterStatus {
	next := *status.DeepCopy()
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{Type: registration.ConditionJoined,
		Status: metav1.ConditionTrue, Reason: registration.ReasonJoined, Message: registration.MessageJoined})
	available := metav1.Condition{Type: registration.ConditionAvailable, Status: metav1.ConditionTrue,
		Reason: registration.ReasonAvailable, Message: registration.MessageAvailable}
	if o.unhealthy != nil {
		available.Status, available.Reason = metav1.ConditionFalse, registration.ReasonKubeAPIServerUnhealthy
		available.Message = "The kube-apiserver is not ok: " + shorten(o.unhealthy.Error(), 1024)
	}
	meta.SetStatusCondition(&next.Conditions, available)
	for _, condition := range a.reported() {
		condition.Message = shorten(condition.Message, 1024)
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	if o.version != "" {
		next.Version.Kubernetes = o.version
	}
	if o.capacity != nil && !sameResources(o.capacity, next.Capacity) {
		next.Capacity = o.capacity
	}
	if o.allocatable != nil && !sameResources(o.allocatable, next.Allocatable) {
		next.Allocatable = o.allocatable
	}
	if o.claims != nil && !slices.Equal(o.claims, next.ClusterClaims) {
		next.ClusterClaims = o.claims
	}
	return next
}

func sameResources(a, b clusterv1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y quantity) bool { return x.Cmp(y) == 0 })
}

// shorten cuts a text to a number of bytes, at a character.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

// statusPatch is the difference as a merge patch for that version of the cluster only, or nil if there is none.
func statusPatch(cluster *clusterv1.ManagedCluster, next clusterv1.ManagedClusterStatus) ([]byte, error) {
	type statusOnly struct {
		Status clusterv1.ManagedClusterStatus `json:"status"`
	}
	before, err := json.Marshal(statusOnly{cluster.Status})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(statusOnly{next})
	if err != nil {
		return nil, err
	}
	diff, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil || string(diff) == "{}" {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(diff, &patch); err != nil {
		return nil, err
	}
	patch["metadata"] = map[string]any{"uid": cluster.UID, "resourceVersion": cluster.ResourceVersion}
	return json.Marshal(patch)
}

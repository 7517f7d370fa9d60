// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// The condition of each namespace that the hub asks for, as upstream.
const (
	conditionNamespaceAvailable = "NamespaceAvailable"   // a namespace that the hub asks for exists
	reasonNamespaceApplied      = "NamespaceApplied"     // the agent has created the namespace, or set the label of the hub on an existing one
	reasonNamespaceApplyFailed  = "NamespaceApplyFailed" // the agent could not; the message has the error
)

// maxMessage is the maximum length of the message of a condition that the agent writes, in bytes.
const maxMessage = 1024

// nextStatus returns the status with the observed values. Unknown ones stay unchanged.
func (t *reporter) nextStatus(status clusterv1.ManagedClusterStatus, o Observation) clusterv1.ManagedClusterStatus {
	next := *status.DeepCopy()
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{Type: registration.ConditionJoined,
		Status: metav1.ConditionTrue, Reason: registration.ReasonJoined, Message: registration.MessageJoined})
	available := metav1.Condition{Type: registration.ConditionAvailable, Status: metav1.ConditionTrue,
		Reason: registration.ReasonAvailable, Message: registration.MessageAvailable}
	if o.Unhealthy != nil {
		available.Status, available.Reason = metav1.ConditionFalse, registration.ReasonKubeAPIServerUnhealthy
		available.Message = "The kube-apiserver is not ok: " + shorten(o.Unhealthy.Error(), maxMessage)
	}
	meta.SetStatusCondition(&next.Conditions, available)
	for _, condition := range t.view.Reported() {
		condition.Message = shorten(condition.Message, maxMessage)
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	t.addNamespaces(&next)
	if o.Version != "" {
		next.Version.Kubernetes = o.Version
	}
	if o.Capacity != nil && !sameResources(o.Capacity, next.Capacity) {
		next.Capacity = o.Capacity
	}
	if o.Allocatable != nil && !sameResources(o.Allocatable, next.Allocatable) {
		next.Allocatable = o.Allocatable
	}
	if o.Claims != nil && !slices.Equal(o.Claims, next.ClusterClaims) {
		next.ClusterClaims = o.Claims
	}
	return next
}

// addNamespaces sets the conditions of the namespaces that the hub asks for.
func (t *reporter) addNamespaces(status *clusterv1.ManagedClusterStatus) {
	results := t.view.Namespaces()
	for i := range status.ManagedNamespaces {
		result, known := results[status.ManagedNamespaces[i].Name]
		if !known {
			continue
		}
		condition := metav1.Condition{Type: conditionNamespaceAvailable, Status: metav1.ConditionTrue,
			Reason: reasonNamespaceApplied, Message: "The namespace is there, with the hub's label"}
		if result != nil {
			condition.Status, condition.Reason = metav1.ConditionFalse, reasonNamespaceApplyFailed
			condition.Message = shorten(result.Error(), maxMessage)
		}
		meta.SetStatusCondition(&status.ManagedNamespaces[i].Conditions, condition)
	}
}

func sameResources(a, b clusterv1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// shorten truncates a text to a number of bytes, at a character boundary.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

// statusPatch returns the difference as a merge patch for this version of the cluster only, or nil if they are equal.
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

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermetrics

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// The states of a cluster.
const (
	accepted = "accepted"
	denied   = "denied"  // it was accepted before
	waiting  = "waiting" // for its first acceptance
)

// The values of the label with the way in which a cluster was accepted. The names of users are not values of labels.
const (
	byUser = "user"
	byHub  = "hub" // a driver that approves clusters
)

// noDriver is for clusters that none of the enabled drivers handles.
const noDriver = "none"

func (c *collector) driverOf(cluster *clusterv1.ManagedCluster) string {
	for _, d := range c.drivers {
		if d.Handles(cluster) {
			return d.Name()
		}
	}
	return noDriver
}

func stateOf(cluster *clusterv1.ManagedCluster) string {
	switch {
	case cluster.Spec.HubAcceptsClient:
		return accepted
	case meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted) != nil:
		return denied
	}
	return waiting
}

// conditionsOf returns the values of accepted, joined and available. A cluster without the condition Available is unknown.
func conditionsOf(cluster *clusterv1.ManagedCluster) []string {
	text, available := map[bool]string{true: "true", false: "false"}, "unknown"
	if c := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionAvailable); c != nil && c.Status != metav1.ConditionUnknown {
		available = text[c.Status == metav1.ConditionTrue]
	}
	return []string{text[cluster.Spec.HubAcceptsClient], text[joined(cluster)], available}
}

func joined(cluster *clusterv1.ManagedCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, registration.ConditionJoined)
}

// waitsFor returns what a cluster needs an admin for, and since when. It is empty for most clusters.
func waitsFor(cluster *clusterv1.ManagedCluster) (reason string, since time.Time) {
	if !cluster.DeletionTimestamp.IsZero() {
		return "", time.Time{}
	}
	if stateOf(cluster) == waiting {
		return forAcceptance, cluster.CreationTimestamp.Time
	}
	waits := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionRequestWaits)
	if cluster.Spec.HubAcceptsClient && waits != nil && waits.Status == metav1.ConditionTrue {
		return forCertificate, waits.LastTransitionTime.Time
	}
	return "", time.Time{}
}

func since(cluster *clusterv1.ManagedCluster, what string) time.Time {
	if cluster != nil {
		if reason, since := waitsFor(cluster); reason == what {
			return since
		}
	}
	return time.Time{}
}

// expiryOf returns the end of the certificate of an accepted cluster, or zero if the agent has not reported it. Only its agent knows it, so it is used
// for nothing else.
func expiryOf(cluster *clusterv1.ManagedCluster) time.Time {
	if cluster == nil || !cluster.Spec.HubAcceptsClient {
		return time.Time{}
	}
	rotated := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionCertificateRotated)
	if rotated == nil {
		return time.Time{}
	}
	found := certificateEnd.FindStringSubmatch(rotated.Message)
	if found == nil {
		return time.Time{} // the message of another agent
	}
	end, err := time.Parse(time.DateTime, found[2]+" "+found[3])
	if err != nil {
		return time.Time{}
	}
	return end
}

// certificateEnd finds the end of a certificate in the messages of our agent and of Open Cluster Management's, both in UTC.
var certificateEnd = regexp.MustCompile(` from \S+( \S+ \+0000 UTC)? to (\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})`)

// acceptedBy returns who accepted a cluster with this change, or "" if the change did not accept it.
func acceptedBy(change kit.Change[*clusterv1.ManagedCluster]) string {
	before, now := change.Before, change.After
	if now == nil || change.Known || !now.Spec.HubAcceptsClient || before != nil && before.Spec.HubAcceptsClient {
		return ""
	}
	if now.Annotations[registration.AnnotationAutoAccepted] != "" &&
		(before == nil || before.Annotations[registration.AnnotationAutoAccepted] == "") {
		return byHub
	}
	return byUser
}

// hasJoined reports whether a cluster has joined with this change.
func hasJoined(change kit.Change[*clusterv1.ManagedCluster]) bool {
	return change.Before != nil && change.After != nil && change.Before.UID == change.After.UID && !joined(change.Before) && joined(change.After)
}

func acceptedAt(cluster *clusterv1.ManagedCluster) time.Time {
	if at, err := time.Parse(time.RFC3339, cluster.Annotations[registration.AnnotationAcceptedAt]); err == nil {
		return at
	}
	return cluster.CreationTimestamp.Time // it was created as accepted
}

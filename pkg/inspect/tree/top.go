// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/inspect"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// UpgradeState is the state of an agent's upgrade.
type UpgradeState int

// The states, in the reverse of their order: failed upgrades come first, and agents without one last.
const (
	NoUpgrade UpgradeState = iota
	UpgradeDone
	UpgradeOutdated
	UpgradeWaiting
	UpgradeRunning
	UpgradeFailed
)

// ClusterUse has the values of a cluster that are compared with others. It is small, since there may be many clusters.
type ClusterUse struct {
	Name      string              `json:"name"`
	State     inspect.HealthState `json:"state"`
	Reason    string              `json:"reason,omitempty"`
	Accepted  bool                `json:"accepted"`
	Available string              `json:"available"`
	// Renewed is when the agent last renewed its lease, or nil if not known.
	Renewed *metav1.Time `json:"renewed,omitempty"`
	// CPU and Memory are the resources for workloads, or nil if the agent has not reported them.
	CPU    *resource.Quantity `json:"cpu,omitempty"`
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Works is the number of works on the cluster, or nil if the user may not see them.
	Works      *int   `json:"works,omitempty"`
	Kubernetes string `json:"kubernetesVersion,omitempty"`
	// Agent is the version of the agent, and Skew why it does not work with the version of the hub.
	Agent string `json:"agentVersion,omitempty"`
	Skew  string `json:"agentVersionSkew,omitempty"`
	// Upgrade describes the agent's upgrade: outdated, or the desired version and its progress. UpgradeState is its state, by which it is sorted.
	Upgrade      string       `json:"agentUpgrade,omitempty"`
	UpgradeState UpgradeState `json:"-"`
	// Clock and Certificate are the status of the conditions of these. Waits reports whether a certificate request waits for an admin.
	Clock       string `json:"clockSynced"`
	Certificate string `json:"certificateRotated"`
	Waits       bool   `json:"requestWaits"`
}

// UseOf returns the values of a cluster.
func UseOf(c *clusterv1.ManagedCluster) *ClusterUse {
	h := inspect.Cluster(c)
	status := func(conditionType string) string { return string(inspect.Status(c.Status.Conditions, conditionType)) }
	use := &ClusterUse{Name: c.Name, State: h.State, Reason: h.Reason, Accepted: c.Spec.HubAcceptsClient,
		Available: status(registration.ConditionAvailable), Kubernetes: c.Status.Version.Kubernetes,
		Clock: status(registration.ConditionClockSynced), Certificate: status(registration.ConditionCertificateRotated),
		Waits: meta.IsStatusConditionTrue(c.Status.Conditions, registration.ConditionRequestWaits)}
	for i := range c.Status.ClusterClaims {
		if claim := &c.Status.ClusterClaims[i]; claim.Name == registration.ClaimAgentVersion {
			use.Agent = registration.AgentVersion(claim.Value)
		}
	}
	if q, ok := c.Status.Allocatable["cpu"]; ok {
		use.CPU = &q
	}
	if q, ok := c.Status.Allocatable["memory"]; ok {
		use.Memory = &q
	}
	return use
}

// UseOfMember returns the values of a cluster that members of sets have: its state, and no more.
func UseOfMember(m *viewv1alpha1.ClusterSetMember) *ClusterUse {
	h := inspect.Member(m)
	return &ClusterUse{Name: m.Spec.Cluster, State: h.State, Reason: h.Reason, Accepted: m.Status.Accepted, Available: string(cmp.Or(m.Status.Available, metav1.ConditionUnknown)),
		Kubernetes: m.Status.KubernetesVersion, Clock: string(metav1.ConditionUnknown), Certificate: string(metav1.ConditionUnknown)}
}

// Age returns how long ago the agent last renewed its lease, and whether that is known.
func (u *ClusterUse) Age(now time.Time) (time.Duration, bool) {
	if u.Renewed == nil {
		return 0, false
	}
	return now.Sub(u.Renewed.Time), true
}

// clusterOrders compare clusters: those that a reader looks for come first. Unknown values come before or after all others, depending on the order.
var clusterOrders = map[string]func(a, b *ClusterUse) int{
	"name": func(*ClusterUse, *ClusterUse) int { return 0 },
	"lease": func(a, b *ClusterUse) int {
		return missing(a.Renewed, b.Renewed, -1, func(x, y *metav1.Time) int { return x.Compare(y.Time) })
	},
	"cpu": func(a, b *ClusterUse) int {
		return missing(a.CPU, b.CPU, 1, func(x, y *resource.Quantity) int { return y.Cmp(*x) })
	},
	"memory": func(a, b *ClusterUse) int {
		return missing(a.Memory, b.Memory, 1, func(x, y *resource.Quantity) int { return y.Cmp(*x) })
	},
	"works": func(a, b *ClusterUse) int {
		return missing(a.Works, b.Works, 1, func(x, y *int) int { return cmp.Compare(*y, *x) })
	},
	"state": func(a, b *ClusterUse) int { return b.State.Badness() - a.State.Badness() },
	"agent": func(a, b *ClusterUse) int {
		return cmp.Or(strings.Compare(b.Skew, a.Skew), strings.Compare(a.Agent, b.Agent))
	},
	"upgrade": func(a, b *ClusterUse) int {
		return cmp.Or(cmp.Compare(b.UpgradeState, a.UpgradeState), strings.Compare(a.Upgrade, b.Upgrade))
	},
	"version": func(a, b *ClusterUse) int {
		return strings.Compare(a.Kubernetes, b.Kubernetes)
	},
}

// missing compares values that may be nil: nil comes first if place is -1, and last if it is 1.
func missing[T any](a, b *T, place int, compare func(a, b *T) int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return place
	case b == nil:
		return -place
	}
	return compare(a, b)
}

// ClusterOrders returns the names of the orders of clusters.
func ClusterOrders() []string { return slices.Sorted(maps.Keys(clusterOrders)) }

// SortClusters sorts clusters by an order, and then by name, and returns at most that many of them, or all for 0.
func SortClusters(all []*ClusterUse, order string, most int) ([]*ClusterUse, error) {
	compare := clusterOrders[order]
	if compare == nil {
		return nil, fmt.Errorf("unknown order %q: it must be one of %s", order, strings.Join(ClusterOrders(), ", "))
	}
	slices.SortFunc(all, func(a, b *ClusterUse) int { return cmp.Or(compare(a, b), strings.Compare(a.Name, b.Name)) })
	return cut(all, most), nil
}

func cut[T any](all []T, most int) []T {
	if most > 0 && len(all) > most {
		return all[:most]
	}
	return all
}

// SetUse counts the members of a set.
type SetUse struct {
	Name    string `json:"name"`
	Members int    `json:"members"`
	// The members by their state.
	Available    int `json:"available"`
	NotAvailable int `json:"notAvailable"`
	Unknown      int `json:"unknown"`
	Waiting      int `json:"waiting"`
}

// Count counts a member.
func (u *SetUse) Count(m *viewv1alpha1.ClusterSetMember) {
	u.Members++
	switch inspect.Member(m).State {
	case inspect.Healthy:
		u.Available++
	case inspect.Unhealthy:
		u.NotAvailable++
	case inspect.Progressing:
		u.Waiting++
	default:
		u.Unknown++
	}
}

var setOrders = map[string]func(a, b *SetUse) int{
	"name":    func(*SetUse, *SetUse) int { return 0 },
	"members": func(a, b *SetUse) int { return cmp.Compare(b.Members, a.Members) },
	"missing": func(a, b *SetUse) int { return cmp.Compare(b.Members-b.Available, a.Members-a.Available) },
}

// SetOrders returns the names of the orders of sets.
func SetOrders() []string { return slices.Sorted(maps.Keys(setOrders)) }

// SortSets is SortClusters for sets.
func SortSets(all []*SetUse, order string, most int) ([]*SetUse, error) {
	compare := setOrders[order]
	if compare == nil {
		return nil, fmt.Errorf("unknown order %q: it must be one of %s", order, strings.Join(SetOrders(), ", "))
	}
	slices.SortFunc(all, func(a, b *SetUse) int { return cmp.Or(compare(a, b), strings.Compare(a.Name, b.Name)) })
	return cut(all, most), nil
}

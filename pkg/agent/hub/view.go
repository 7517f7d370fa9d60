// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// View holds the data that the agent's tasks share about the agent's cluster on the hub. One task, the status, reads and writes the ManagedCluster;
// the others learn from the View what it asks for, report to it what its status must have, and need no right on it. It outlives sessions, and lives
// as long as the process.
type View struct {
	mu sync.Mutex
	// seen is whether this process has read its ManagedCluster on the hub, or has asked the hub to create it again.
	seen         bool
	leaseSeconds int32
	conditions   map[string]metav1.Condition
	namespaces   map[string]error
	nodes        *Nodes
	nodesSeen    bool

	asked     chan []string
	news      chan struct{}
	nodesNews chan struct{}
}

// Nodes are the sums over all nodes of the managed cluster.
type Nodes struct {
	// Arches is the number of nodes of each architecture, named as GOARCH.
	Arches map[string]int
	// CPU is the number of CPUs, and Memory the number of bytes.
	CPU, Memory int64
}

// NewView returns a view of a cluster of which only the lease duration is known.
func NewView(leaseSeconds int32) *View {
	return &View{leaseSeconds: leaseSeconds, conditions: map[string]metav1.Condition{}, asked: make(chan []string, 1),
		news: make(chan struct{}, 1), nodesNews: make(chan struct{}, 1)}
}

// Begin resets what a previous session has learned of the hub, which may have a different address now.
func (v *View) Begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.namespaces = nil
	v.forgetAsked()
}

// SetSeen records that this process has read its ManagedCluster on the hub, or has asked the hub to create it again.
func (v *View) SetSeen() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = true
}

// Seen reports whether See was called. A process asks for its ManagedCluster to be created again only before.
func (v *View) Seen() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen
}

// Interval returns the time between two renewals of the lease, and between two reads of the ManagedCluster.
func (v *View) Interval() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return registration.LeaseDuration(v.leaseSeconds)
}

// SetLease sets the lease duration of the ManagedCluster on the hub.
func (v *View) SetLease(seconds int32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seconds > 0 {
		v.leaseSeconds = seconds
	}
}

// Changed makes the status task run soon, because there is something to report.
func (v *View) Changed() {
	select {
	case v.news <- struct{}{}:
	default: // it will run anyway
	}
}

// News returns the channel that Changed sends to.
func (v *View) News() <-chan struct{} { return v.news }

// Report sets a condition, which is reported to the hub soon.
func (v *View) Report(condition metav1.Condition) {
	v.mu.Lock()
	v.conditions[condition.Type] = condition
	v.mu.Unlock()
	v.Changed()
}

// Reported returns the conditions.
func (v *View) Reported() []metav1.Condition {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.conditions))
}

// RequestNamespaces sets the namespaces that the hub asks the cluster for. It is called after each read of the ManagedCluster.
func (v *View) RequestNamespaces(names []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetAsked()
	v.asked <- names
}

// forgetAsked empties the channel asked. It is called with the lock held, as is everything that sends to asked: so there is room.
func (v *View) forgetAsked() {
	select {
	case <-v.asked:
	default:
	}
}

// RequestedNamespaces returns the channel that RequestNamespaces sends to; only the last value counts.
func (v *View) RequestedNamespaces() <-chan []string { return v.asked }

// ReportNamespaces sets the results for requested namespaces, nil for those that exist, which are reported to the hub soon if the set of existing
// ones changes. Nothing is known of those that are left out.
func (v *View) ReportNamespaces(results map[string]error) {
	v.mu.Lock()
	// The text of an error may differ each time: that alone is no change.
	same := maps.EqualFunc(v.namespaces, results, func(a, b error) bool { return (a == nil) == (b == nil) })
	v.namespaces = results
	v.mu.Unlock()
	if !same {
		v.Changed()
	}
}

// Namespaces returns the last results.
func (v *View) Namespaces() map[string]error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.namespaces
}

// SetNodes sets the sums over the nodes of the managed cluster, after each read; nil if they are not known.
func (v *View) SetNodes(n *Nodes) {
	v.mu.Lock()
	same := v.nodesSeen && (v.nodes == nil) == (n == nil) &&
		(n == nil || v.nodes.CPU == n.CPU && v.nodes.Memory == n.Memory && maps.Equal(v.nodes.Arches, n.Arches))
	v.nodes, v.nodesSeen = n, true
	v.mu.Unlock()
	if same {
		return
	}
	select {
	case v.nodesNews <- struct{}{}:
	default: // it will be received anyway
	}
}

// Nodes returns the last sums over the nodes, or nil if they are not known. Callers must not change them.
func (v *View) Nodes() *Nodes {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.nodes
}

// NodesNews returns the channel that receives a value when nodes were read for the first time, or have changed.
func (v *View) NodesNews() <-chan struct{} { return v.nodesNews }

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultLeaseSeconds is the lease duration of a cluster that has none in its spec.
const DefaultLeaseSeconds = 60

// View is what the agent's tasks tell each other of the agent's cluster on the hub. One of them, the status, reads and writes the
// ManagedCluster; the others learn here what it asks for, say here what is to be in its status, and need no right on it. It outlives
// sessions, and lives as long as the process.
type View struct {
	mu sync.Mutex
	// seen says that the hub has let this process see its cluster, or has been asked to make it anew.
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

// Nodes are what the nodes of the managed cluster are together.
type Nodes struct {
	// Arches is how many nodes have which architecture, as GOARCH has it.
	Arches map[string]int
	// CPU are CPUs, and Memory are bytes.
	CPU, Memory int64
}

// NewView returns a view of a cluster of which only the lease duration is known.
func NewView(leaseSeconds int32) *View {
	return &View{leaseSeconds: leaseSeconds, conditions: map[string]metav1.Condition{}, asked: make(chan []string, 1),
		news: make(chan struct{}, 1), nodesNews: make(chan struct{}, 1)}
}

// Begin forgets what a session before has learned of the hub, which may be elsewhere by now.
func (v *View) Begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.namespaces = nil
	v.forgetAsked()
}

// See says that the hub has let this process see its cluster, or has been asked to make it anew.
func (v *View) See() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = true
}

// Seen says whether it has. A process asks for its cluster to be made anew only before.
func (v *View) Seen() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen
}

// Interval is the time between two renewals of the lease, and between two looks at the cluster.
func (v *View) Interval() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	seconds := v.leaseSeconds
	if seconds <= 0 {
		seconds = DefaultLeaseSeconds
	}
	return time.Duration(seconds) * time.Second
}

// SetLease takes the lease duration that the hub has for the cluster.
func (v *View) SetLease(seconds int32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seconds > 0 {
		v.leaseSeconds = seconds
	}
}

// Changed has the status looked at soon: something is to be said.
func (v *View) Changed() {
	select {
	case v.news <- struct{}{}:
	default: // it will be, already
	}
}

// News is where Changed is heard.
func (v *View) News() <-chan struct{} { return v.news }

// Report sets a condition, and has the hub told of it soon.
func (v *View) Report(condition metav1.Condition) {
	v.mu.Lock()
	v.conditions[condition.Type] = condition
	v.mu.Unlock()
	v.Changed()
}

// Reported are the conditions.
func (v *View) Reported() []metav1.Condition {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.conditions))
}

// AskNamespaces says which namespaces the hub asks the cluster for, at each look.
func (v *View) AskNamespaces(names []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetAsked()
	v.asked <- names
}

// forgetAsked is called with the lock, as is everything that sends to asked: so there is room.
func (v *View) forgetAsked() {
	select {
	case <-v.asked:
	default:
	}
}

// AskedNamespaces is where that is heard; only the last counts.
func (v *View) AskedNamespaces() <-chan []string { return v.asked }

// ReportNamespaces says what has become of namespaces that were asked for, nil for those that are there, and has the hub told soon
// if others are there now. Of those that are left out nothing is known.
func (v *View) ReportNamespaces(results map[string]error) {
	v.mu.Lock()
	// What is wrong may be said in other words each time: that alone is no news.
	same := maps.EqualFunc(v.namespaces, results, func(a, b error) bool { return (a == nil) == (b == nil) })
	v.namespaces = results
	v.mu.Unlock()
	if !same {
		v.Changed()
	}
}

// Namespaces are the last results.
func (v *View) Namespaces() map[string]error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.namespaces
}

// SeeNodes says what the nodes of the managed cluster are, at each look; nil says that this is not known.
func (v *View) SeeNodes(n *Nodes) {
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
	default: // it will be heard, already
	}
}

// Nodes are those that were seen last, or nil if they are not known. Callers do not change them.
func (v *View) Nodes() *Nodes {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.nodes
}

// NodesNews is where it is heard that nodes were seen for the first time, or have changed.
func (v *View) NodesNews() <-chan struct{} { return v.nodesNews }

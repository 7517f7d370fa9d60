// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"slices"
)

// Decision is the result for one node and one deployment.
type Decision struct {
	// Compatible is whether the deployment is deployed to the node. Version, Arch and Namespace are set only then; Namespace is empty for devices.
	Compatible bool
	Version    string
	// Arch is the architecture of the service, which can be AnyArch.
	Arch      string
	Namespace string
	Reason    Reason
	// Message is a sentence about the node, without its name.
	Message string
	// Rejected are the versions that were tried before, in order; all of them if none fits.
	Rejected []Rejection
}

// Rejection is why a version was not selected.
type Rejection struct {
	Version string
	Reason  Reason
	Message string
}

// Failed is a version of a service that has failed on a node.
type Failed struct{ Org, Service, Version string }

// Decide decides whether a deployment is deployed to a node. Versions are tried in the order of their priority, independently of each other: a
// namespace that one names does not affect the next. A version that has failed on the node is selected only if no other fits.
func Decide(n *Node, d *Deployment, failed ...Failed) Decision {
	if reason, message := d.selects(n); reason != Fits {
		return Decision{Reason: reason, Message: message}
	}
	var rejected []Rejection
	var fallback *Decision
	for i := range d.candidates {
		decision := d.candidates[i].decide(n, d)
		if decision.Compatible && slices.Contains(failed, Failed{d.spec.Org, d.spec.Service, decision.Version}) {
			if fallback == nil {
				decision.Rejected = slices.Clone(rejected)
				fallback = &decision
			}
			continue
		}
		if decision.Compatible {
			decision.Rejected = rejected
			return decision
		}
		rejected = append(rejected, Rejection{decision.Version, decision.Reason, decision.Message})
	}
	if fallback != nil {
		return *fallback
	}
	first := rejected[0]
	decision := Decision{Reason: first.Reason, Message: first.Message, Rejected: rejected}
	if others := len(rejected) - 1; others > 0 {
		decision.Message = fmt.Sprintf("%s (version %s; none of %d others fits either)", first.Message, first.Version, others)
	}
	return decision
}

// DecidePattern decides about all services of a pattern. Services that are not for this node, since they are for other architectures or for another
// type of node, are left out. Of the others, a node gets all or none: half of a pattern is not what its author intended. If not all fit, no decision
// is compatible; those that fit by themselves have the reason PartOfPattern. Decide handles versions that have failed on the node, separately for
// each service.
func DecidePattern(n *Node, services []*Deployment, failed ...Failed) (decisions []Decision, compatible bool) {
	var missing *Decision
	var part string
	for _, d := range services {
		decision := Decide(n, d, failed...)
		decisions = append(decisions, decision)
		switch decision.Reason {
		case Fits:
			compatible = true
		case ArchMismatch, NotForClusters, NotForDevices:
		default:
			if missing == nil {
				missing = &decision
				part = d.spec.Service
			}
		}
	}
	if missing == nil {
		return decisions, compatible
	}
	for i := range decisions {
		if decisions[i].Compatible {
			decisions[i] = Decision{Reason: PartOfPattern, Rejected: decisions[i].Rejected,
				Message: fmt.Sprintf("service %s of the pattern cannot be deployed to it, and a pattern is deployed completely or not at all: %s", part, missing.Message)}
		}
	}
	return decisions, false
}

// selects checks what does not depend on the version.
func (d *Deployment) selects(n *Node) (Reason, string) {
	switch {
	case n.nodeType != Cluster && n.nodeType != Device:
		return TypeUnknown, fmt.Sprintf("its type must be %s or %s", Cluster, Device)
	case !d.spec.Pattern && n.pattern != "":
		return HasPattern, fmt.Sprintf("it runs the pattern %s, and a node with a pattern gets nothing by policies", n.pattern)
	case d.spec.Pattern && n.pattern == "":
		return OtherPattern, fmt.Sprintf("it does not run a pattern: set its pattern to %s", d.spec.Name)
	case d.spec.Pattern && n.pattern != d.spec.Name:
		return OtherPattern, fmt.Sprintf("it runs the pattern %s", n.pattern)
	case len(d.candidates) == 0:
		return NoVersion, "no version of the service is named: name one"
	}
	return Fits, ""
}

// judged is the result for a version before properties and constraints are compared.
type judged struct {
	service   *compiled
	namespace string
	reason    Reason
	message   string
}

// before checks what depends on the class of the node alone.
func (c *candidate) before(n *Node, d *Deployment) judged {
	s, reason, message := c.choose(n, d)
	if reason != Fits {
		return judged{reason: reason, message: message}
	}
	if reason, message := s.suits(n.nodeType); reason != Fits {
		return judged{reason: reason, message: message}
	}
	q := question{nodeType: n.nodeType, scope: n.facts.Scope, namespace: n.facts.Namespace, pattern: d.spec.Pattern,
		clusterNamespace: d.spec.ClusterNamespace, certain: true}
	if n.nodeType == Cluster {
		q.embedded, q.certain = s.Contents.Embedded()
	}
	namespace, reason, message := q.target()
	if reason != Fits {
		return judged{reason: reason, message: message}
	}
	if missing := s.missing(n); missing != "" {
		return judged{reason: ClusterObjects, message: missing}
	}
	return judged{service: s, namespace: namespace, reason: Fits}
}

// decide decides about one version. The version is always set.
func (c *candidate) decide(n *Node, d *Deployment) Decision {
	j := c.before(n, d)
	reason, message := j.reason, j.message
	if reason == Fits {
		reason, message = j.service.agree(n, d)
	}
	if reason != Fits {
		return Decision{Version: c.version, Reason: reason, Message: message}
	}
	decision := Decision{Compatible: true, Version: c.version, Arch: j.service.Arch, Namespace: j.namespace, Reason: Fits,
		Message: fmt.Sprintf("gets version %s", c.version)}
	if j.namespace != "" {
		decision.Message += " in namespace " + j.namespace
	}
	return decision
}

// choose returns the service of this version for the architecture of the node.
func (c *candidate) choose(n *Node, d *Deployment) (*compiled, Reason, string) {
	if len(c.services) == 0 {
		return nil, VersionMissing, fmt.Sprintf("there is no version %s of the service", c.version)
	}
	arch := n.facts.Arch
	if want := d.spec.Arch; want != "" && want != AnyArch && want != arch {
		if arch == "" {
			return nil, ArchUnknown, fmt.Sprintf("the %s is for %s, and its agent has not reported its architecture", d.what(), want)
		}
		return nil, ArchMismatch, fmt.Sprintf("it is %s, and the %s is for %s", arch, d.what(), want)
	}
	var others []string
	for i := range c.services {
		s := &c.services[i]
		if s.Arch == AnyArch || s.Arch != "" && s.Arch == arch {
			return s, Fits, ""
		}
		others = append(others, s.Arch)
	}
	if arch == "" {
		return nil, ArchUnknown, fmt.Sprintf("version %s is for %s, and its agent has not reported its architecture", c.version, named(others))
	}
	return nil, ArchMismatch, fmt.Sprintf("it is %s, and version %s is for %s", arch, c.version, named(others))
}

// suits checks whether the service supports this type of node.
func (c *compiled) suits(t Type) (Reason, string) {
	switch {
	case t == Device && !c.ForDevices:
		return NotForDevices, fmt.Sprintf("it is a device, and version %s has no deployment for devices", c.Version)
	case t == Device:
		return Fits, ""
	case !c.ForClusters:
		return NotForClusters, fmt.Sprintf("it is a cluster, and version %s has no clusterDeployment", c.Version)
	case c.Contents == nil:
		return ArchiveUnreadable, fmt.Sprintf("the archive of version %s cannot be read", c.Version)
	}
	return Fits, ""
}

// missing returns what a namespace-scoped agent would need and cannot create.
func (c *compiled) missing(n *Node) string {
	if n.nodeType != Cluster || n.facts.Scope != NamespaceScoped {
		return ""
	}
	if c.Contents.More {
		return fmt.Sprintf("version %s has more objects than are listed: those that its agent cannot make may be among them", c.Version)
	}
	for _, o := range c.clusterObjects {
		if !n.clusterObjects[identity(o)] {
			return fmt.Sprintf("version %s has %s, which is in no namespace: its agent cannot make it, and it is not known to be there", c.Version, o)
		}
	}
	return ""
}

// clipped truncates a constraint for a message.
func clipped(constraint string) string {
	const most = 200
	runes := []rune(constraint)
	if len(runes) <= most {
		return constraint
	}
	return string(runes[:most]) + "…"
}

// agree checks the constraints of both sides. Patterns have none, and the owner of a node that runs one has selected it by its name.
func (c *compiled) agree(n *Node, d *Deployment) (Reason, string) {
	if d.spec.Pattern {
		return Fits, ""
	}
	if i := d.constraints.Failed(n.properties); i >= 0 {
		return PolicyConstraint, "its properties do not satisfy the constraint of the policy: " + clipped(d.spec.Policy.Constraints[i])
	}
	if i := c.constraints.Failed(n.properties); i >= 0 {
		return ServiceConstraint, fmt.Sprintf("its properties do not satisfy the constraint of version %s: %s", c.Version, clipped(c.Policy.Constraints[i]))
	}
	if !n.constraints.Satisfied(c.properties) {
		return NodeConstraint, "the properties of policy and service do not satisfy its own constraints"
	}
	return Fits, ""
}

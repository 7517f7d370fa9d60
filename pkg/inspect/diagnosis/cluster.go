// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/inspect"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Findings about a cluster.
const (
	// HubUnavailable: the API of the hub that has the clusters is not available.
	HubUnavailable ID = "HubUnavailable"
	// ClusterMissing: the hub has no such ManagedCluster.
	ClusterMissing ID = "ClusterMissing"
	// ClusterDeleting: it is being deleted.
	ClusterDeleting ID = "ClusterDeleting"
	// ClusterNotAccepted: the hub has not accepted the cluster.
	ClusterNotAccepted ID = "ClusterNotAccepted"
	// ClusterSetupFailed: the hub has not created what an accepted cluster needs.
	ClusterSetupFailed ID = "ClusterSetupFailed"
	// ClusterNamespaceTerminating: the namespace of an accepted cluster is being deleted.
	ClusterNamespaceTerminating ID = "ClusterNamespaceTerminating"
	// AgentNotJoined: its agent has an identity, and has not used it.
	AgentNotJoined ID = "AgentNotJoined"
	// AgentNotHeard: its agent does not renew the lease.
	AgentNotHeard ID = "AgentNotHeard"
	// ClusterNotAvailable: its agent reports that the cluster is not healthy.
	ClusterNotAvailable ID = "ClusterNotAvailable"
	// CertificateNotRenewed: its agent cannot renew its certificate.
	CertificateNotRenewed ID = "CertificateNotRenewed"
	// ClockOutOfSync: the clock of its agent differs from the hub's.
	ClockOutOfSync ID = "ClockOutOfSync"
)

// ClusterFacts are the known facts about a cluster.
type ClusterFacts struct {
	Name string
	Now  time.Time
	// Service is the APIService of the clusters, and ServiceFault its message if it is not available.
	Service, ServiceFault string
	ServiceSince          metav1.Time

	Cluster Read[*clusterv1.ManagedCluster]
	Lease   Read[*coordinationv1.Lease]
	// Requests are the certificate requests of the cluster, in the order of their creation.
	Requests Read[[]CertificateRequest]
	// Accepters are the users and groups that may accept it.
	Accepters Read[[]string]
}

// clusterChain is shared by the checks of a cluster.
type clusterChain struct {
	ClusterFacts
	cluster *clusterv1.ManagedCluster
}

// OfCluster explains why a cluster does not work with the hub.
func OfCluster(facts ClusterFacts) Answer {
	c := &clusterChain{ClusterFacts: facts, cluster: &clusterv1.ManagedCluster{}}
	if found, ok := facts.Cluster.Get(); ok {
		c.cluster = found
	}
	a := follow(c.links())
	if a.Finding == nil {
		return a.setVerdict("Cluster " + facts.Name + " works with the hub")
	}
	a.Verdict = "Cluster " + facts.Name + " " + map[string]string{
		"hub answers": "cannot be checked: the hub's API does not respond", "exists": "is not on the hub", "accepted": "is not accepted by the hub",
		"identity": "has no identity yet", "joined": "has not joined yet", "agent heard": "has lost its agent", "available": "is not available",
		"certificate": "works, but may lose its identity", "clock": "works, but its clock is off",
	}[a.brokenStep()]
	switch a.Finding.ID {
	case ClusterDeleting:
		a.Verdict = "Cluster " + facts.Name + " is being deleted"
	case ClusterSetupFailed:
		a.Verdict = "Cluster " + facts.Name + " is accepted, but the hub is not ready for it"
	case ClusterNamespaceTerminating:
		a.Verdict = "Cluster " + facts.Name + " is accepted, but its namespace on the hub is being deleted"
	}
	return a
}

// links returns the links of the chain. If the user may not see the cluster, the chain ends there: all other links are about the cluster.
func (c *clusterChain) links() []link {
	links := []link{{"hub answers", c.hubAnswers}, {"exists", c.exists}}
	if why := c.Cluster.Why(); why != "" && c.ServiceFault == "" {
		return links
	}
	return append(links, link{"accepted", c.accepted}, link{"identity", c.identity}, link{"joined", c.joined}, link{"agent heard", c.heard},
		link{"available", c.available}, link{"certificate", c.certificate}, link{"clock", c.clock})
}

func (c *clusterChain) hubAnswers() outcome {
	if c.ServiceFault == "" {
		return passed("its API serves clusters")
	}
	return broken(c.ServiceFault, Finding{ID: HubUnavailable, Severity: Error, Object: "apiservice/" + c.Service,
		Cause: "The front kube-apiserver cannot reach hub-apiserver: " + c.ServiceFault, Turn: "an admin of the hub", Since: since(c.ServiceSince),
		Fix: []string{ShellCommand("kubectl", "describe", "apiservice", c.Service), "kubectl hub doctor"}})
}

func (c *clusterChain) object() string { return "managedcluster/" + c.Name }

func (c *clusterChain) agent() string { return "the agent of " + c.Name }

// onCluster returns the command to run on the cluster itself.
func (c *clusterChain) onCluster() string {
	return "kubectl hub doctor --managed --context <CONTEXT OF THE CLUSTER>"
}

func (c *clusterChain) exists() outcome {
	switch {
	case c.Cluster.Why() != "":
		return unseen(c.Cluster.Why())
	case c.Cluster.IsMissing():
		text := "the hub has no ManagedCluster " + c.Name
		return broken(text, Finding{ID: ClusterMissing, Severity: Error, Object: c.object(),
			Cause: "The hub has no ManagedCluster " + c.Name + ". Its agent creates it when it first reaches the hub: either the agent was not installed, or " +
				"it cannot reach the hub, or the cluster was deleted here.",
			Turn: "an admin of the cluster", Fix: []string{"kubectl hub get token", c.onCluster()}})
	}
	m := c.cluster
	if m.DeletionTimestamp.IsZero() {
		return passed("created %s", ago(c.Now, m.CreationTimestamp.Time))
	}
	waits, by := "", ""
	if d := meta.FindStatusCondition(m.Status.Conditions, registration.ConditionDeleting); d != nil {
		waits = ": " + d.Message
	}
	if len(m.Finalizers) > 0 {
		by = " It waits for the finalizers " + shortened(m.Finalizers) + "."
	}
	return broken("is being deleted"+waits, Finding{ID: ClusterDeleting, Severity: Error, Object: c.object(), Since: m.DeletionTimestamp,
		Cause: "The cluster was deleted on the hub" + waits + "." + by, Turn: "the hub, and the owners of the objects that the cluster waits for",
		Fix: []string{ShellCommand("kubectl", "get", "managedcluster", c.Name, "-o", "yaml"), ShellCommand("kubectl", "get", "manifestworks", "-n", c.Name)}})
}

func (c *clusterChain) accepted() outcome {
	m := c.cluster
	said := meta.FindStatusCondition(m.Status.Conditions, registration.ConditionHubAccepted)
	by := whoSet(&m.ObjectMeta, c.Now, "spec", "hubAcceptsClient")
	if !m.Spec.HubAcceptsClient {
		f := Finding{ID: ClusterNotAccepted, Severity: Error, Object: c.object(), Since: since(m.CreationTimestamp), Turn: "a user who may accept clusters",
			Cause: "spec.hubAcceptsClient of the ManagedCluster is false: its agent has no permissions on the hub until a user accepts the cluster.",
			Fix:   []string{ShellCommand("kubectl", "hub", "accept", "--clusters", c.Name)}}
		if said != nil && said.Status == metav1.ConditionFalse && said.Reason == registration.ReasonDenied {
			f.Since = since(said.LastTransitionTime)
			f.Cause = "The cluster was accepted before, and denied later: spec.hubAcceptsClient was set to false."
		}
		if who, ok := c.Accepters.Get(); ok && len(who) > 0 {
			f.Turn += ": " + shortened(who)
		}
		return broken("no", f).without(c.Accepters.Why())
	}
	if said != nil && said.Status == metav1.ConditionFalse && said.Reason == registration.ReasonNamespaceTerminating {
		return broken(said.Message, Finding{ID: ClusterNamespaceTerminating, Severity: Error, Object: "namespace/" + c.Name, Since: since(said.LastTransitionTime),
			Cause: "The lease, the bindings and the works of the cluster are deleted with its namespace on the hub: " + said.Message,
			Turn:  c.agent() + ", which finalizes the works; then the hub, which creates the namespace again",
			Fix:   []string{ShellCommand("kubectl", "get", "manifestworks", "-n", c.Name), ShellCommand("kubectl", "describe", "namespace", c.Name), c.onCluster()}})
	}
	if said != nil && said.Status == metav1.ConditionFalse {
		return broken(said.Message, Finding{ID: ClusterSetupFailed, Severity: Error, Object: c.object(), Since: since(said.LastTransitionTime),
			Cause: "The cluster is accepted, but the hub could not create its resources: " + said.Message, Turn: "an admin of the hub",
			Fix: []string{"kubectl hub doctor", ShellCommand("kubectl", "describe", "managedcluster", c.Name)}})
	}
	if said == nil || said.Status != metav1.ConditionTrue {
		return broken("yes, but the hub has not acted on it", Finding{ID: ClusterSetupFailed, Severity: Error, Object: c.object(), Since: c.acceptedAt(),
			Cause: "The cluster is accepted, but hub-controller-manager has not created its resources yet: it does so within seconds while it runs.",
			Turn:  "hub-controller-manager", Fix: []string{"kubectl hub doctor"}})
	}
	text := "yes"
	if auto := m.Annotations[registration.AnnotationAutoAccepted]; auto != "" {
		text = "yes, by the hub itself"
	} else if by != "" {
		text += ", " + by
	}
	return passed("%s", text)
}

// acceptedAt returns when the cluster was accepted, or nil if the object does not have the time.
func (c *clusterChain) acceptedAt() *metav1.Time {
	at, err := time.Parse(time.RFC3339, c.cluster.Annotations[registration.AnnotationAcceptedAt])
	if err != nil {
		return nil
	}
	return since(metav1.NewTime(at))
}

func (c *clusterChain) condition(name string) (metav1.ConditionStatus, *metav1.Condition) {
	if found := meta.FindStatusCondition(c.cluster.Status.Conditions, name); found != nil {
		return found.Status, found
	}
	return metav1.ConditionUnknown, nil
}

func (c *clusterChain) joined() outcome {
	status, said := c.condition(registration.ConditionJoined)
	if status == metav1.ConditionTrue {
		return passed("%s", ago(c.Now, said.LastTransitionTime.Time))
	}
	cause := "The hub accepts the agent, but the agent has not connected with its identity yet."
	if c.byAWS() == "" && c.Requests.Why() != "" {
		cause = "The agent has not connected to the hub yet. You may not see whether it requested and received its certificate."
	}
	return broken("no", Finding{ID: AgentNotJoined, Severity: Error, Object: c.object(), Since: c.acceptedAt(), Turn: c.agent(), Cause: cause, Fix: []string{c.onCluster()}})
}

// heard checks the lease. A wrong clock makes it look older or younger than it is: then the condition counts, which the hub sets by its own clock.
func (c *clusterChain) heard() outcome {
	status, said := c.condition(registration.ConditionAvailable)
	lost := status == metav1.ConditionUnknown && said != nil && said.Reason == registration.ReasonLeaseUpdateStopped
	clock, _ := c.condition(registration.ConditionClockSynced)
	lease, seen := c.Lease.Get()
	switch {
	case seen && lease.Spec.RenewTime != nil:
		at := lease.Spec.RenewTime.Time
		if old := inspect.Lease(c.cluster, lease, c.Now).State != inspect.Healthy; !old && !lost || old && !lost && clock == metav1.ConditionFalse {
			return passed("%s", ago(c.Now, at))
		}
		return c.silent(metav1.NewTime(at), "last heard "+ago(c.Now, at))
	case lost:
		return c.silent(said.LastTransitionTime, said.Message).without(c.Lease.Why())
	case c.Lease.Why() != "":
		return unseen(c.Lease.Why())
	}
	return c.silent(metav1.Time{}, "never: no lease with a renewTime exists")
}

func (c *clusterChain) silent(at metav1.Time, text string) outcome {
	if o, found := c.cannotRenew(); found {
		return o
	}
	turn, fix := c.agent()+", and an admin of that cluster", []string{c.onCluster(), "kubectl get pods -n " + registration.AgentNamespace + " --context <CONTEXT OF THE CLUSTER>"}
	return broken(text, Finding{ID: AgentNotHeard, Severity: Error, Object: "lease/" + c.Name + "/" + registration.LeaseName, Since: since(at), Turn: turn,
		Cause: fmt.Sprintf("The agent has not renewed its lease for longer than %s, and the hub cannot determine the reason: the agent does not run, cannot reach the hub, does not trust "+
			"the hub's certificate, or its own identity is no longer accepted. All other states of the cluster are as old as its lease.", inspect.LeaseGracePeriod(c.cluster)), Fix: fix}).
		without(c.Requests.Why())
}

func (c *clusterChain) available() outcome {
	status, said := c.condition(registration.ConditionAvailable)
	switch {
	case status == metav1.ConditionTrue:
		return passed("since %s", ago(c.Now, said.LastTransitionTime.Time))
	case said == nil:
		return broken("not reported yet", Finding{ID: ClusterNotAvailable, Severity: Error, Object: c.object(), Turn: c.agent(), Since: c.acceptedAt(),
			Cause: "The agent has not reported whether the cluster is available.", Fix: []string{c.onCluster()}})
	}
	text := strings.TrimSuffix(said.Message, ".")
	return broken(text, Finding{ID: ClusterNotAvailable, Severity: Error, Object: c.object(), Since: since(said.LastTransitionTime), Turn: "an admin of that cluster",
		Cause: "The agent reports for its cluster: " + text + ".", Fix: []string{"kubectl get --raw /readyz?verbose --context <CONTEXT OF THE CLUSTER>", c.onCluster()}})
}

func (c *clusterChain) clock() outcome {
	status, said := c.condition(registration.ConditionClockSynced)
	switch {
	case status == metav1.ConditionFalse:
		return broken(said.Message, Finding{ID: ClockOutOfSync, Severity: Warning, Object: c.object(), Since: since(said.LastTransitionTime), Turn: "an admin of that cluster",
			Cause: "The clocks of the agent and of the hub differ: " + said.Message + " Ages that are computed from the agent's times are wrong, and certificates may be considered not valid yet.",
			Fix:   []string{"date -u", "timedatectl status"}})
	case said == nil:
		return passed("the hub has not compared it, or the comparison is disabled")
	}
	return passed("in sync with the hub's")
}

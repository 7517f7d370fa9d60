// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// AgentMissing means that the cluster does not have the agent's Deployment.
	AgentMissing diagnosis.ID = "AgentMissing"
	// AgentNotReady means that the agent does not run, or is not ready.
	AgentNotReady diagnosis.ID = "AgentNotReady"
	// AgentPermissionsMissing means that a role or binding of the agent does not exist, or lacks permissions that it needs.
	AgentPermissionsMissing diagnosis.ID = "AgentPermissionsMissing"
	// BootstrapKubeconfigUnusable means that the agent needs its bootstrap kubeconfig, which does not exist or is not a kubeconfig.
	BootstrapKubeconfigUnusable diagnosis.ID = "BootstrapKubeconfigUnusable"
	// BootstrapTokenRefused means that the agent needs its bootstrap kubeconfig, and the hub rejects its token.
	BootstrapTokenRefused diagnosis.ID = "BootstrapTokenRefused"
	// HubUnreachable means that the hub cannot be reached at the address that the agent has.
	HubUnreachable diagnosis.ID = "HubUnreachable"
	// HubDistrusted means that the hub's certificate is not signed by the CA that the agent has.
	HubDistrusted diagnosis.ID = "HubDistrusted"
	// AgentIdentityRefused means that the hub rejects the agent's identity.
	AgentIdentityRefused diagnosis.ID = "AgentIdentityRefused"
	// AgentRefused means that the hub does not accept the cluster.
	AgentRefused diagnosis.ID = "AgentRefused"
	// AgentLeaseStale means that the agent has not renewed its lease on the hub.
	AgentLeaseStale diagnosis.ID = "AgentLeaseStale"
)

// Managed has the facts for the checks of a managed cluster. It contains no secrets.
type Managed struct {
	// Now is the time of the cluster. Skew is the time by which the local clock is ahead of it, with a precision of SkewWithin.
	Now              time.Time
	Skew, SkewWithin time.Duration
	Namespace        string
	// Expected are the roles and bindings that the agent should have, and Rights those that it has.
	Expected []*unstructured.Unstructured
	Rights   List[*unstructured.Unstructured]

	Deployments List[appsv1.Deployment]
	Pods        List[corev1.Pod]
	// Events are warnings of the namespace.
	Events []corev1.Event
	// Bootstrap is the connection by the bootstrap kubeconfig, and Identity the one by the agent's own.
	Bootstrap, Identity Way
	ClusterName         string
	// Refusal is the hub's error, as the agent reports it.
	Refusal string
	// Renewed is when the hub's lease of the agent was renewed, and Lasts its duration. Renewed is nil if it could not be read.
	Renewed *time.Time
	Lasts   time.Duration
}

// Trouble is a problem of a connection to a hub.
type Trouble string

// The problems of connections.
const (
	NoTrouble   Trouble = ""
	Network     Trouble = "Network"
	Distrusted  Trouble = "Distrusted"
	Refused     Trouble = "Refused"
	Unusable    Trouble = "Unusable"
	NotAnswered Trouble = "NotAnswered"
)

// A Way is a connection to the hub by a Secret of the agent.
type Way struct {
	// Seen reports whether the Secret could be read, and Found whether it exists and has a kubeconfig.
	Seen, Found bool
	Server      string
	// Ends is when its certificate expires.
	Ends *time.Time
	// Tried reports whether a request was sent from here. Trouble and Text describe its problem.
	Tried   bool
	Trouble Trouble
	Text    string
}

// Check runs all checks.
func (m *Managed) Check() *Report {
	return reportOf([]check{
		{"agent", m.agent},
		{"rights of the agent", m.rights},
		{"bootstrap kubeconfig", m.bootstrap},
		{"way to the hub", m.identity},
		{"acceptance", m.refusal},
		{"lease on the hub", m.lease},
		{"clock", m.clock},
	})
}

const agentName = "hub-agent"

func (m *Managed) deployment() *appsv1.Deployment {
	for i := range m.Deployments.Items {
		if m.Deployments.Items[i].Name == agentName {
			return &m.Deployments.Items[i]
		}
	}
	return nil
}

// rejoin returns the commands by which an agent joins its hub again. Both commands know details that the checks do not.
func (m *Managed) rejoin() []string {
	fix := rejoin(m.name())
	fix[0] += " --context <CONTEXT OF THE HUB>"
	return fix
}

func rejoin(name string) []string {
	return []string{"kubectl hub get token", fmt.Sprintf("<THE JOIN COMMAND THAT IT PRINTS, WITH --cluster-name %s>", diagnosis.ShellWord(name))}
}

func (m *Managed) name() string {
	if m.ClusterName == "" {
		return "<NAME>"
	}
	return m.ClusterName
}

func (m *Managed) turn() string { return "an admin of this cluster" }

func (m *Managed) agent() []diagnosis.Finding {
	if !m.Deployments.Seen {
		return nil
	}
	f := diagnosis.Finding{Severity: diagnosis.Error, Object: "deployment/" + agentName + " in " + m.Namespace, Turn: m.turn()}
	d := m.deployment()
	switch {
	case d == nil:
		f.ID, f.Cause, f.Fix = AgentMissing, "This namespace has no agent: the cluster has not joined a hub, or has left it.", m.rejoin()
	case replicas(d) == 0:
		f.ID, f.Cause = AgentNotReady, "The agent is scaled to 0."
		f.Fix = []string{fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=1", m.Namespace, agentName)}
	case d.Status.AvailableReplicas == 0:
		f.ID, f.Cause = AgentNotReady, "No pod of the agent is ready"
		if why := m.podTrouble(); why != "" {
			f.Cause += ": " + why
		}
		f.Cause += ". The agent becomes ready when it renews its lease on the hub: other findings, if any, may explain why it does not."
		f.Fix = []string{fmt.Sprintf("kubectl -n %s logs deployment/%s --tail=50", m.Namespace, agentName)}
	default:
		return nil
	}
	return []diagnosis.Finding{f}
}

// podTrouble describes the problem of pods and events, the most certain first.
func (m *Managed) podTrouble() string {
	for i := range m.Pods.Items {
		p := &m.Pods.Items[i]
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return strings.TrimRight(w.Reason+": "+w.Message, ": .")
			}
			if e := c.State.Terminated; e != nil {
				return strings.TrimRight(fmt.Sprintf("its container has ended with %d: %s", e.ExitCode, e.Message), ": .")
			}
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return strings.TrimRight(c.Reason+": "+c.Message, ": .")
			}
		}
	}
	var last *corev1.Event
	for i := range m.Events {
		e := &m.Events[i]
		if e.Type == corev1.EventTypeWarning && (last == nil || eventTime(e).After(eventTime(last))) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return strings.TrimRight(last.Reason+": "+last.Message, ": .")
}

func eventTime(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}

func (m *Managed) rights() (found []diagnosis.Finding) {
	if !m.Rights.Seen {
		return nil
	}
	none := func(*unstructured.Unstructured) bool { return false }
	for _, f := range missingRights(m.Expected, m.Rights.Items, none, m.turn()) {
		f.ID = AgentPermissionsMissing
		found = append(found, f)
	}
	return found
}

// works reports whether the agent has an identity that has not expired, so that it does not need the bootstrap kubeconfig.
func (m *Managed) works() bool {
	return m.Identity.Found && (m.Identity.Ends == nil || m.Identity.Ends.After(m.Now)) && m.Identity.Trouble != Refused
}

func (m *Managed) bootstrap() []diagnosis.Finding {
	b := &m.Bootstrap
	if !b.Seen || m.works() {
		return nil
	}
	f := diagnosis.Finding{Severity: diagnosis.Error, Object: "secret/" + registration.BootstrapSecret + " in " + m.Namespace, Turn: "an admin of the hub, then " + m.turn(), Fix: m.rejoin()}
	switch {
	case !b.Found:
		f.ID, f.Cause = BootstrapKubeconfigUnusable, "It contains no kubeconfig, and the agent has no identity on the hub yet: it cannot request one."
	case b.Trouble == Unusable:
		f.ID, f.Cause = BootstrapKubeconfigUnusable, "Its kubeconfig cannot be used: it "+diagnosis.TrimPeriod(b.Text)+"."
	case b.Trouble == Refused:
		f.ID = BootstrapTokenRefused
		f.Cause = fmt.Sprintf("The hub %s does not accept its token: it has expired, or was revoked. The agent has no valid identity, and cannot request one.", b.Server)
	default:
		return m.connectionProblem(b, f)
	}
	return []diagnosis.Finding{f}
}

// connectionProblem returns the finding for a problem that prevents any connection to the hub.
func (m *Managed) connectionProblem(w *Way, f diagnosis.Finding) []diagnosis.Finding {
	switch w.Trouble {
	case Distrusted:
		f.ID = HubDistrusted
		f.Cause = fmt.Sprintf("The certificate of the hub %s was not issued by the CA in this kubeconfig: %s. Either the hub has another CA now, or another server responds at its address: "+
			"find out which before you have the agent trust it.", w.Server, diagnosis.TrimPeriod(w.Text))
	case Network, NotAnswered:
		f.ID = HubUnreachable
		f.Cause = fmt.Sprintf("The hub %s cannot be reached: %s. This was checked from this machine, and the agent is not ready either.", w.Server, diagnosis.TrimPeriod(w.Text))
		f.Fix = append([]string{"# check whether the cluster reaches that address: DNS, routes, firewall, proxy. If the hub has another address now:"}, f.Fix...)
		if m.ready() { // this machine may be in another network
			return nil
		}
	default:
		return nil
	}
	return []diagnosis.Finding{f}
}

func (m *Managed) ready() bool {
	d := m.deployment()
	return d != nil && d.Status.AvailableReplicas > 0
}

func (m *Managed) identity() []diagnosis.Finding {
	i := &m.Identity
	if !i.Seen || !i.Found {
		return nil
	}
	f := diagnosis.Finding{Severity: diagnosis.Error, Object: "secret/" + registration.HubKubeconfigSecret + " in " + m.Namespace, Turn: "an admin of the hub, then " + m.turn(), Fix: m.rejoin()}
	switch {
	case i.Ends != nil && !i.Ends.After(m.Now):
		f.ID, f.Since = AgentIdentityRefused, &metav1.Time{Time: *i.Ends}
		f.Cause = "The certificate of the agent expired on " + i.Ends.UTC().Format(time.RFC3339) + ": it was not renewed in time. The agent needs a bootstrap token to request another one."
	case i.Trouble == Refused:
		f.ID = AgentIdentityRefused
		f.Cause = fmt.Sprintf("The hub %s does not accept the identity of the agent (401): the hub's CA for clients was changed, or this is another hub.", i.Server)
	case i.Trouble == Unusable:
		f.ID, f.Cause = AgentIdentityRefused, "Its kubeconfig cannot be used: it "+diagnosis.TrimPeriod(i.Text)+"."
	default:
		return m.connectionProblem(i, f)
	}
	return []diagnosis.Finding{f}
}

func (m *Managed) refusal() []diagnosis.Finding {
	f := diagnosis.Finding{ID: AgentRefused, Severity: diagnosis.Error, Object: "managedcluster/" + m.name(), Turn: turnAdmin}
	switch m.Refusal {
	case registration.RefusalNotAccepted:
		f.Cause = "The hub does not accept the cluster, or no longer accepts it."
		f.Fix = []string{"kubectl hub accept --clusters " + diagnosis.ShellWord(m.name()) + " --context <CONTEXT OF THE HUB>"}
	case registration.RefusalNoCluster:
		f.Cause, f.Fix = "The hub does not allow the agent to get its ManagedCluster. Usually the ManagedCluster was deleted, and the cluster must join again.", m.rejoin()
	case registration.RefusalUnknown:
		f.Cause, f.Fix = "The hub does not know the identity of the agent.", m.rejoin()
	default:
		return nil
	}
	return []diagnosis.Finding{f}
}

func (m *Managed) lease() []diagnosis.Finding {
	if m.Renewed == nil || m.Lasts <= 0 {
		return nil
	}
	age := m.Now.Sub(*m.Renewed).Round(time.Second)
	if age <= registration.LeaseGracePeriod(m.Lasts)+m.SkewWithin {
		return nil
	}
	return []diagnosis.Finding{{ID: AgentLeaseStale, Severity: diagnosis.Error, Object: "managedcluster/" + m.name(), Turn: m.turn(), Since: &metav1.Time{Time: *m.Renewed},
		Cause: fmt.Sprintf("The agent renewed its lease on the hub %s ago, and should renew it every %s: the hub considers the cluster lost.", age, m.Lasts),
		Fix:   []string{fmt.Sprintf("kubectl -n %s rollout restart deployment %s", m.Namespace, agentName)}}}
}

func (m *Managed) clock() []diagnosis.Finding {
	h := Hub{Now: m.Now, Skew: m.Skew, SkewWithin: m.SkewWithin}
	found := h.clocks()
	for i := range found {
		found[i].Cause = strings.Replace(found[i].Cause, "that of the hub", "that of the cluster", 1)
		found[i].Turn = "an admin of this machine, or of the cluster"
	}
	return found
}

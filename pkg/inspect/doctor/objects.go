// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// WebhookUnreachable means that a webhook causes changes of our objects to be rejected because it is not available.
	WebhookUnreachable diagnosis.ID = "WebhookUnreachable"
	// AcceptancePending means that a cluster has waited long for an admin to accept it.
	AcceptancePending diagnosis.ID = "AcceptancePending"
	// ClusterUnheard means that the agent of an accepted cluster no longer renews its lease.
	ClusterUnheard diagnosis.ID = "ClusterUnheard"
	// CertificateRequestPending means that a certificate request of an agent has waited long for an admin.
	CertificateRequestPending diagnosis.ID = "CertificateRequestPending"
	// SignerMissing means that approved requests get no certificate.
	SignerMissing diagnosis.ID = "SignerMissing"
	// SetLabelUnknown means that a set selects by a label that no cluster has.
	SetLabelUnknown diagnosis.ID = "SetLabelUnknown"
	// BoundSetMissing means that a binding refers to a set that does not exist.
	BoundSetMissing diagnosis.ID = "BoundSetMissing"
	// AgentVersionSkew means that the version of an agent does not work with the hub's.
	AgentVersionSkew diagnosis.ID = "AgentVersionSkew"
	// AgentTrustsOtherCA means that an agent does not renew its lease, and does not trust the current certificate of the hub.
	AgentTrustsOtherCA diagnosis.ID = "AgentTrustsOtherCA"
)

// signsWithin is the time in which an approved request must be signed.
const signsWithin = 5 * time.Minute

// ours returns the resources of our groups that roles name.
func (h *Hub) ours(group string) sets.Set[string] {
	resources := sets.New[string]()
	for _, o := range h.expected("ClusterRole", "Role") {
		for _, rule := range rulesOf(o) {
			if slices.Contains(rule.APIGroups, group) {
				resources.Insert(rule.Resources...)
			}
		}
	}
	return resources
}

// matches returns one of our resources that a webhook is called for, or "".
func (h *Hub) matches(w *Webhook) string {
	for _, rule := range w.Rules {
		for _, group := range h.groups() {
			if !within(group, rule.APIGroups) {
				continue
			}
			for _, resource := range rule.Resources {
				if resource == "*" || resource == "*/*" || h.ours(group).Has(resource) {
					return strings.TrimPrefix(resource+"."+group, "*.")
				}
			}
		}
	}
	return ""
}

func (h *Hub) webhooks() (found []diagnosis.Finding) {
	for i := range h.Webhooks {
		w := &h.Webhooks[i]
		matched := h.matches(w)
		if matched == "" || !w.Fails || w.Service == "" || !w.Seen || w.HasEndpoints {
			continue
		}
		f := diagnosis.Finding{ID: WebhookUnreachable, Severity: diagnosis.Error, Object: w.Resource + "/" + w.Configuration, Turn: "the owner of the Service " + w.Namespace + "/" + w.Service}
		if w.Narrowed {
			f.Severity = diagnosis.Warning
		}
		what := "has no ready endpoint"
		if !w.HasService {
			what = "does not exist"
		}
		f.Cause = fmt.Sprintf("Its webhook %s is called for %s, the Service %s/%s %s, and its failurePolicy is Fail: such changes are refused. "+
			"Restore the Service. Until then, ignore failures of the webhook.", w.Name, matched, w.Namespace, w.Service, what)
		f.Fix = []string{fmt.Sprintf(`kubectl patch %s %s --type=json -p '[{"op":"replace","path":"/webhooks/%d/failurePolicy","value":"Ignore"}]'`, w.Resource, diagnosis.ShellWord(w.Configuration), w.Index)}
		found = append(found, f)
	}
	return found
}

func (h *Hub) clusters() (found []diagnosis.Finding) {
	for i := range h.Clusters.Items {
		c := &h.Clusters.Items[i]
		f := diagnosis.Finding{Severity: diagnosis.Warning, Object: "managedcluster/" + c.Name}
		denied := meta.IsStatusConditionFalse(c.Status.Conditions, registration.ConditionHubAccepted)
		available := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionAvailable)
		switch {
		case !c.DeletionTimestamp.IsZero():
			continue
		case !c.Spec.HubAcceptsClient && !denied && h.age(c.CreationTimestamp.Time) >= h.Patience:
			f.ID, f.Turn, f.Since = AcceptancePending, turnAdmin, &c.CreationTimestamp
			f.Cause = fmt.Sprintf("It has waited for %s to be accepted. To deny it, run kubectl hub deny --clusters %s.", h.age(c.CreationTimestamp.Time), c.Name)
			f.Fix = []string{"kubectl hub accept --clusters " + diagnosis.ShellWord(c.Name)}
		case c.Spec.HubAcceptsClient && available != nil && available.Status == metav1.ConditionUnknown:
			f.ID, f.Turn, f.Since = ClusterUnheard, "the agent of "+c.Name, &available.LastTransitionTime
			f.Cause = fmt.Sprintf("Its agent stopped renewing its lease %s ago: %s.", h.age(available.LastTransitionTime.Time), diagnosis.TrimPeriod(available.Message))
			f.Fix = []string{fmt.Sprintf("kubectl hub doctor --managed --context <CONTEXT OF %s>", c.Name)}
			if trusted := h.trustsOther(c); trusted != "" {
				f.ID, f.Severity, f.Turn = AgentTrustsOtherCA, diagnosis.Error, "an admin of "+c.Name
				f.Cause += fmt.Sprintf(" It trusts the CA %s, and the hub now has a certificate of %s: the CA of the hub was renewed, or this is another "+
					"address of the hub. Give the agent a new bootstrap kubeconfig, so that it trusts the new CA.", trusted, strings.Join(h.Authorities, ", "))
				f.Fix = append(rejoin(c.Name), f.Fix...)
			}
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// claim returns what an agent reports about itself. Other clients could have written it.
func claim(c *clusterv1.ManagedCluster, name string) string {
	for i := range c.Status.ClusterClaims {
		if c.Status.ClusterClaims[i].Name == name {
			return c.Status.ClusterClaims[i].Value
		}
	}
	return ""
}

// VersionOf returns the tag of the image of a component, or "" if its image has no tag or has a digest.
func VersionOf(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		image, _, digest := strings.Cut(c.Image, "@")
		name := image[strings.LastIndex(image, "/")+1:]
		if _, tag, ok := strings.Cut(name, ":"); ok && !digest && c.Name == d.Name {
			return tag
		}
	}
	return ""
}

// agents finds agents whose versions do not work with the hub's.
func (h *Hub) agents() (found []diagnosis.Finding) {
	ours := h.tags()[apiServer]
	for i := range h.Clusters.Items {
		c := &h.Clusters.Items[i]
		version := registration.AgentVersion(claim(c, registration.ClaimAgentVersion))
		skew := registration.AgentSkew(ours, version)
		if skew == "" || !c.DeletionTimestamp.IsZero() {
			continue
		}
		found = append(found, diagnosis.Finding{ID: AgentVersionSkew, Severity: diagnosis.Warning, Object: "managedcluster/" + c.Name, Turn: "an admin of " + c.Name,
			Cause: fmt.Sprintf("Its agent has version %s, and the hub %s: it is %s. An agent may be two minor versions older than its hub, and not newer.", version, ours, skew),
			Fix: []string{fmt.Sprintf("kubectl -n %s set image deployment/%s %[2]s=<IMAGE OF %[2]s %s> --context <CONTEXT OF %s>", registration.AgentNamespace, agentName,
				diagnosis.OneLine(ours), c.Name)}})
	}
	return found
}

// trustsOther returns the certificates by which an agent trusts the hub if none of them verifies the hub's current certificate, and "" otherwise.
func (h *Hub) trustsOther(c *clusterv1.ManagedCluster) string {
	trusted := registration.HubCAHashes(claim(c, registration.ClaimHubCA))
	if len(trusted) == 0 || len(h.Authorities) == 0 || slices.ContainsFunc(trusted, func(t string) bool { return slices.Contains(h.Authorities, t) }) {
		return ""
	}
	return strings.Join(trusted, ", ")
}

func (h *Hub) requests() (found []diagnosis.Finding) {
	for i := range h.Requests.Items {
		r := &h.Requests.Items[i]
		cluster := r.Labels[registration.ClusterNameLabel]
		if cluster == "" || r.Spec.SignerName != registration.SignerName {
			continue
		}
		approved, decided := decision(r)
		f := diagnosis.Finding{Severity: diagnosis.Warning, Object: "certificatesigningrequest/" + r.Name, Turn: turnAdmin, Since: &r.CreationTimestamp}
		switch {
		case !decided && h.age(r.CreationTimestamp.Time) >= h.Patience && !h.waitsForAcceptance(cluster):
			f.ID = CertificateRequestPending
			f.Cause = fmt.Sprintf("%s requested a certificate of cluster %s %s ago, and no controller approves it. Its holder can act as the cluster on the hub: "+
				"approve it if you know that the requester is the agent. Otherwise deny it with kubectl certificate deny.", r.Spec.Username, cluster, h.age(r.CreationTimestamp.Time))
			f.Fix = []string{"kubectl describe csr " + diagnosis.ShellWord(r.Name),
				fmt.Sprintf("kubectl hub accept --clusters %s --csr=<NAME OF THE REQUEST, IF THE AGENT CREATED IT>", diagnosis.ShellWord(cluster))}
		case approved != nil && len(r.Status.Certificate) == 0 && h.age(approved.LastUpdateTime.Time) >= signsWithin:
			f.ID, f.Severity, f.Since = SignerMissing, diagnosis.Error, &approved.LastUpdateTime
			f.Cause = fmt.Sprintf("It was approved %s ago, but no certificate was issued: kube-controller-manager does not run, or has no key to sign with "+
				"(--cluster-signing-cert-file, --cluster-signing-key-file).", h.age(approved.LastUpdateTime.Time))
			f.Fix = []string{"kubectl -n kube-system describe pods -l component=kube-controller-manager"}
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// waitsForAcceptance reports whether the cluster has not been accepted, so that there is a finding about the cluster already.
func (h *Hub) waitsForAcceptance(cluster string) bool {
	return slices.ContainsFunc(h.Clusters.Items, func(c clusterv1.ManagedCluster) bool { return c.Name == cluster && !c.Spec.HubAcceptsClient })
}

func decision(r *certificatesv1.CertificateSigningRequest) (approved *certificatesv1.CertificateSigningRequestCondition, decided bool) {
	for i := range r.Status.Conditions {
		switch c := &r.Status.Conditions[i]; c.Type {
		case certificatesv1.CertificateApproved:
			approved, decided = c, true
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return nil, true
		}
	}
	return approved, decided
}

func (h *Hub) sets() (found []diagnosis.Finding) {
	if !h.Clusters.Seen || len(h.Clusters.Items) == 0 {
		return nil
	}
	keys := sets.New[string]()
	for i := range h.Clusters.Items {
		keys = keys.Insert(slices.Collect(maps.Keys(h.Clusters.Items[i].Labels))...)
	}
	for i := range h.Sets.Items {
		s := &h.Sets.Items[i]
		if h.age(s.CreationTimestamp.Time) < h.Patience {
			continue
		}
		for _, key := range needed(&s.Spec.ClusterSelector) {
			if keys.Has(key) {
				continue
			}
			found = append(found, diagnosis.Finding{ID: SetLabelUnknown, Severity: diagnosis.Warning, Object: "managedclusterset/" + s.Name, Turn: "a user who labels the clusters, or the author of the set",
				Cause: fmt.Sprintf("It selects by the label %s, and none of the %d clusters has that label with any value, so the set has no cluster. Check the spelling.",
					key, len(h.Clusters.Items)),
				Fix: []string{fmt.Sprintf("kubectl hub label <CLUSTER> %s=%s", diagnosis.ShellWord(key), valueOf(&s.Spec.ClusterSelector, key))}})
			break
		}
	}
	return found
}

// needed returns the keys of the labels that each cluster of a set has.
func needed(s *v1beta1.ManagedClusterSelector) (keys []string) {
	switch {
	case s.SelectorType == v1beta1.ExclusiveLabel && s.ExclusiveLabel != nil:
		return []string{s.ExclusiveLabel.Key}
	case s.SelectorType == v1beta1.LabelSelector && s.LabelSelector != nil:
		keys = slices.Sorted(maps.Keys(s.LabelSelector.MatchLabels))
		for _, e := range s.LabelSelector.MatchExpressions {
			if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpExists {
				keys = append(keys, e.Key)
			}
		}
	}
	return keys
}

// valueOf returns a value that the set selects by, as a word of a command.
func valueOf(s *v1beta1.ManagedClusterSelector, key string) string {
	if s.ExclusiveLabel != nil && s.ExclusiveLabel.Key == key {
		return diagnosis.ShellWord(s.ExclusiveLabel.Value)
	}
	if s.LabelSelector != nil {
		if value, ok := s.LabelSelector.MatchLabels[key]; ok {
			return diagnosis.ShellWord(value)
		}
		for _, e := range s.LabelSelector.MatchExpressions {
			if e.Key == key && len(e.Values) > 0 {
				return diagnosis.ShellWord(e.Values[0])
			}
		}
	}
	return "<VALUE>"
}

// SetNotThere describes a binding to a set that does not exist, and what to do. The condition of the binding has the same text.
func SetNotThere(set string) string {
	return fmt.Sprintf("It binds the set %s, which does not exist: placements of the namespace get no clusters from it. To create the set: %s. Otherwise delete the binding.",
		diagnosis.OneLine(set), diagnosis.ShellCommand("kubectl", "hub", "create", "clusterset", set))
}

func (h *Hub) bindings() (found []diagnosis.Finding) {
	if !h.Sets.Seen {
		return nil
	}
	names := sets.New[string]()
	for i := range h.Sets.Items {
		names.Insert(h.Sets.Items[i].Name)
	}
	for i := range h.Bindings.Items {
		b := &h.Bindings.Items[i]
		if names.Has(b.Spec.ClusterSet) || !b.DeletionTimestamp.IsZero() {
			continue
		}
		found = append(found, diagnosis.Finding{ID: BoundSetMissing, Severity: diagnosis.Warning, Object: "managedclustersetbinding/" + b.Name + " in " + b.Namespace,
			Turn: "an owner of the namespace " + b.Namespace, Since: &b.CreationTimestamp,
			Cause: SetNotThere(b.Spec.ClusterSet),
			Fix:   []string{fmt.Sprintf("kubectl -n %s delete managedclustersetbindings.%s %s", diagnosis.ShellWord(b.Namespace), clusterv1.GroupName, diagnosis.ShellWord(b.Name))}})
	}
	return found
}

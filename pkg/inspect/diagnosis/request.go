// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// Findings about an AccessRequest, until it is clear which Cluster it is for.
const (
	// AccessRequestMissing: there is no such request.
	AccessRequestMissing ID = "AccessRequestMissing"
	// AccessRequestIgnored: an annotation makes all programs ignore it.
	AccessRequestIgnored ID = "AccessRequestIgnored"
	// AccessRequestEnding: it is being deleted, and its access is not revoked.
	AccessRequestEnding ID = "AccessRequestEnding"
	// AccessRequestDenied: it was denied, by the policy or by an approver.
	AccessRequestDenied ID = "AccessRequestDenied"
	// ClusterRequestMissing: the ClusterRequest that it refers to does not exist.
	ClusterRequestMissing ID = "ClusterRequestMissing"
	// ClusterRequestDenied: that ClusterRequest is denied, or being deleted.
	ClusterRequestDenied ID = "ClusterRequestDenied"
	// ClusterRequestWaits: the scheduler has not given that ClusterRequest a Cluster.
	ClusterRequestWaits ID = "ClusterRequestWaits"
	// AccessRequestUnhandled: hub-controller-manager has not observed its current generation.
	AccessRequestUnhandled ID = "AccessRequestUnhandled"
	// AccessRequestUnclear: hub-controller-manager cannot determine which Cluster it is for, or whether it is allowed.
	AccessRequestUnclear ID = "AccessRequestUnclear"
)

// These conditions are defined by their writers, and not by the API. docs/reference/conditions.md has them all.
const (
	clusterGranted = "Granted"     // of a ClusterRequest, by the scheduler
	accessReady    = "AccessReady" // of an AccessRequest, by a provider
	accessDenied   = "Denied"      // the same
	rolesFound     = "RolesFound"  // the same
)

// AccessRequestFacts are the known facts about an AccessRequest.
type AccessRequestFacts struct {
	Namespace, Name string
	Now             time.Time
	Request         Read[*openmcpv1alpha1.AccessRequest]
	// ClusterRequest is the one that the request refers to, as long as it has no Cluster.
	ClusterRequest Read[*openmcpv1alpha1.ClusterRequest]
	// Cluster is the one that the request refers to.
	Cluster Read[*openmcpv1alpha1.Cluster]
}

type requestChain struct {
	AccessRequestFacts
	request *openmcpv1alpha1.AccessRequest
	cluster *openmcpv1alpha1.Cluster
}

// OfAccessRequest returns what an AccessRequest waits for.
func OfAccessRequest(facts AccessRequestFacts) Answer {
	r := &requestChain{AccessRequestFacts: facts}
	r.request, _ = facts.Request.Get()
	r.cluster, _ = facts.Cluster.Get()
	links := []link{{"exists", r.exists}}
	if r.request != nil {
		links = append(links, link{"looked at", r.notIgnored}, link{"stays", r.notEnding}, link{"not denied", r.notDenied})
		if r.request.Spec.ClusterRef == nil && r.request.Spec.RequestRef != nil {
			links = append(links, link{"ClusterRequest", r.clusterRequest})
		}
		if r.request.Spec.ClusterRef != nil {
			links = append(links, link{"Cluster", r.clusterThere})
		}
		links = append(links, link{"prepared", r.prepared}, link{"Cluster ready", r.clusterReady}, link{"access", r.access}, link{"roles", r.roles}, link{"time", r.time})
	}
	a := follow(links)
	subject := "AccessRequest " + facts.Namespace + "/" + facts.Name
	switch {
	case a.Finding == nil:
		return a.setVerdict(subject + " gives access")
	case a.Finding.ID == AccessRequestMissing:
		a.Verdict = subject + " does not exist"
	case a.Finding.ID == AccessRequestEnding:
		a.Verdict = subject + " is being deleted, and its access is being revoked"
	case a.Finding.ID == AccessRequestDenied:
		a.Verdict = subject + " is denied"
	case a.Finding.Severity == Warning:
		a.Verdict = subject + " gives access, but not all that it requests"
	case r.granted():
		a.Verdict = subject + " still gives access, and waits for " + a.Finding.Turn
	default:
		a.Verdict = subject + " waits for " + a.Finding.Turn
	}
	return a
}

func (r *requestChain) object() string { return "accessrequest/" + r.Namespace + "/" + r.Name }

func (r *requestChain) command(verb string, more ...string) string {
	return ShellCommand(append([]string{"kubectl", verb, "accessrequest", r.Name, "-n", r.Namespace}, more...)...)
}

// granted reports whether there is access, for the current or an earlier generation of the request.
func (r *requestChain) granted() bool { return r.request != nil && r.request.Status.IsGranted() }

// condition returns a condition, and whether it is about the current generation.
func (r *requestChain) condition(name string) (c metav1.Condition, now bool) {
	found := meta.FindStatusCondition(r.request.Status.Conditions, name)
	if found == nil {
		return c, false
	}
	return *found, found.ObservedGeneration == r.request.Generation
}

// provider returns who must act on the request once it is prepared.
func (r *requestChain) provider() string {
	if name := r.request.Labels[openmcpv1alpha1.ProviderLabel]; name != "" {
		return "the cluster provider " + OneLine(name)
	}
	return "the cluster provider"
}

func (r *requestChain) exists() outcome {
	switch {
	case r.request != nil:
		return passed("created %s", ago(r.Now, r.request.CreationTimestamp.Time))
	case r.Request.IsMissing():
		return broken("it does not exist", Finding{ID: AccessRequestMissing, Severity: Error, Object: r.object(), Turn: "you, or another user who may create requests there",
			Cause: fmt.Sprintf("The namespace %s has no AccessRequest %s. A request is deleted when its ttl has expired, or when the ClusterRequest that it refers to is gone: "+
				"see the events of the namespace.", r.Namespace, r.Name),
			Fix: []string{ShellCommand("kubectl", "get", "accessrequests", "-n", r.Namespace), ShellCommand("kubectl", "events", "-n", r.Namespace)}})
	}
	return unseen(r.Request.Why())
}

func (r *requestChain) notIgnored() outcome {
	if r.request.Annotations[openmcpv1alpha1.OperationAnnotation] != openmcpv1alpha1.OperationAnnotationValueIgnore {
		return passed("by the hub and its providers")
	}
	by := whoSet(&r.request.ObjectMeta, r.Now, "metadata", "annotations", openmcpv1alpha1.OperationAnnotation)
	return broken("by no program", Finding{ID: AccessRequestIgnored, Severity: Error, Object: r.object(), Turn: "you, or another user who may write the request",
		Cause: fmt.Sprintf("The annotation %s=%s%s makes the hub and all providers ignore the request, even after its ttl has expired.", openmcpv1alpha1.OperationAnnotation,
			openmcpv1alpha1.OperationAnnotationValueIgnore, after(", set ", by)),
		Fix: []string{r.command("annotate", openmcpv1alpha1.OperationAnnotation+"-")}})
}

func (r *requestChain) notEnding() outcome {
	if r.request.DeletionTimestamp.IsZero() {
		return passed("is not being deleted")
	}
	text := "the access is not revoked yet"
	if said, _ := r.condition(accessReady); said.Status == metav1.ConditionFalse && said.Message != "" {
		text = TrimPeriod(said.Message)
	}
	return broken(text, Finding{ID: AccessRequestEnding, Severity: Error, Object: r.object(), Since: r.request.DeletionTimestamp, Turn: r.provider(),
		Cause: "The request was deleted, and remains until its access is revoked in the cluster: " + text + ".", Fix: []string{r.command("describe")}})
}

func (r *requestChain) notDenied() outcome {
	denied, _ := r.condition(accessDenied)
	if !r.request.Status.IsDenied() && denied.Status != metav1.ConditionTrue {
		return passed("neither by the policy nor by an approver")
	}
	f := Finding{ID: AccessRequestDenied, Severity: Error, Object: r.object(), Since: since(denied.LastTransitionTime), Turn: "you, or another user who may create another request",
		Cause: "The request was denied" + after(" ", whoSet(&r.request.ObjectMeta, r.Now, "status", "phase")) + ", by a user with the right to write accessrequests/status.",
		Fix:   []string{r.command("delete")}}
	if said, _ := r.condition(openmcpv1alpha1.ConditionPrepared); said.Reason == openmcpv1alpha1.ReasonDeniedByPolicy {
		f.Since = since(said.LastTransitionTime)
		f.Turn = "an admin of the hub, who writes the policy of the scheduler; or you, to request access that it allows"
		f.Cause = "The policy of the hub has denied the request: " + TrimPeriod(said.Message) + "."
	}
	f.Cause += " A denial is permanent, and changing the request does not undo it: delete it, and create another one."
	return broken("permanently", f)
}

// clusterRequest checks the ClusterRequest that the request refers to.
func (r *requestChain) clusterRequest() outcome {
	key := r.request.Spec.RequestRef.NamespacedName()
	describe := ShellCommand("kubectl", "describe", "clusterrequest", key.Name, "-n", key.Namespace)
	f := Finding{Severity: Error, Object: "clusterrequest/" + key.String(), Fix: []string{describe}}
	request, found := r.ClusterRequest.Get()
	if !found && !r.ClusterRequest.IsMissing() {
		return unseen(r.ClusterRequest.Why())
	}
	if !found {
		f.ID, f.Turn, f.Since = ClusterRequestMissing, "you, or another user who may create ClusterRequests", since(r.request.CreationTimestamp)
		f.Cause = fmt.Sprintf("ClusterRequest %s, to which the request refers for its Cluster, does not exist. Create it, or delete this request: its requestRef cannot be changed.", key)
		f.Fix = []string{ShellCommand("kubectl", "get", "clusterrequests", "-n", key.Namespace), r.command("delete")}
		return broken("does not exist", f)
	}
	said := metav1.Condition{}
	if c := meta.FindStatusCondition(request.Status.Conditions, clusterGranted); c != nil {
		said = *c
	}
	why := after(": ", TrimPeriod(cmp.Or(said.Message, said.Reason)))
	f.Since = since(said.LastTransitionTime)
	switch {
	case !request.DeletionTimestamp.IsZero():
		f.ID, f.Turn, f.Since = ClusterRequestDenied, "you, to create another request for another ClusterRequest", request.DeletionTimestamp
		f.Cause, f.Fix = fmt.Sprintf("ClusterRequest %s is being deleted, so it gives no access.", key), []string{r.command("delete")}
	case request.Status.IsDenied():
		f.ID, f.Turn = ClusterRequestDenied, "an admin of the hub, who writes the policy of the scheduler; or you, to request access that it allows"
		f.Cause = fmt.Sprintf("ClusterRequest %s is denied%s.", key, why)
	case request.Status.IsGranted() && request.Status.Cluster != nil:
		return passed("%s has Cluster %s", key, request.Status.Cluster.NamespacedName())
	case said.Type == "":
		f.ID, f.Turn, f.Since = ClusterRequestWaits, "the scheduler of hub-controller-manager", since(request.CreationTimestamp)
		f.Cause = fmt.Sprintf("The scheduler has not handled ClusterRequest %s: it does so within seconds while it runs and is configured.", key)
		f.Fix = []string{"kubectl hub doctor", describe}
	case said.Reason == openmcpv1alpha1.ReasonConfigurationProblem:
		f.ID, f.Turn = ClusterRequestWaits, "an admin of the hub, who configures the scheduler"
		f.Cause = fmt.Sprintf("The scheduler cannot give ClusterRequest %s a Cluster%s.", key, why)
	default:
		f.ID, f.Turn = ClusterRequestWaits, "the scheduler of hub-controller-manager"
		f.Cause = fmt.Sprintf("ClusterRequest %s has no Cluster yet%s.", key, why)
	}
	return broken("not granted"+why, f)
}

// prepared checks the condition Prepared of the request.
func (r *requestChain) prepared() outcome {
	said, now := r.condition(openmcpv1alpha1.ConditionPrepared)
	switch {
	case said.Type == "" && openmcpv1alpha1.IsClusterProviderResponsibleForAccessRequest(r.request, ""):
		return passed("by another program, for %s", r.provider())
	case now && said.Status == metav1.ConditionTrue:
		return passed("for %s", r.provider())
	case !now:
		at := r.request.CreationTimestamp
		if said.Type != "" {
			at = said.LastTransitionTime
		}
		return broken("not in its current generation", Finding{ID: AccessRequestUnhandled, Severity: Error, Object: r.object(), Since: since(at), Turn: "hub-controller-manager",
			Cause: "hub-controller-manager has not handled the current generation of the request: it does so within seconds while it runs, unless it only prepares requests with certain labels.",
			Fix:   []string{"kubectl hub doctor"}})
	}
	text := TrimPeriod(said.Message)
	f := Finding{ID: AccessRequestUnclear, Severity: Error, Object: r.object(), Since: since(said.LastTransitionTime), Cause: "The hub cannot assign the request to a provider: " + text + ".",
		Turn: "you, or another user who may write the request", Fix: []string{r.command("describe")}}
	switch said.Reason {
	case openmcpv1alpha1.ReasonInvalidReference:
		f.ID, f.Turn = AccessClusterMissing, "a user who creates the object that the request refers to; or you, to request another Cluster"
		f.Fix = []string{ShellCommand("kubectl", "get", "clusters.clusters.openmcp.cloud,clusterrequests", "-A"), r.command("delete")}
	case openmcpv1alpha1.ReasonWaitingForAccessRequestDeletion:
		f.ID, f.Turn = AccessClusterMissing, "you, to request another Cluster"
		f.Fix = []string{r.command("delete")}
	case openmcpv1alpha1.ReasonConfigurationProblem:
		f.Turn += "; an admin of the hub, if the policy is the problem"
	}
	return broken(text, f)
}

// time returns how long the access lasts.
func (r *requestChain) time() outcome {
	if r.request.Spec.TTL == nil {
		return passed("until the request is deleted")
	}
	end := r.request.CreationTimestamp.Add(r.request.Spec.TTL.Duration)
	if r.Now.Sub(end) < time.Minute {
		return passed("until %s", end.UTC().Format(time.RFC3339))
	}
	at := metav1.NewTime(end)
	return broken("has expired", Finding{ID: AccessRequestUnhandled, Severity: Error, Object: r.object(), Since: &at, Turn: "hub-controller-manager",
		Cause: "The ttl of the request has expired, but hub-controller-manager has not deleted it: it does so within seconds while it runs.", Fix: []string{"kubectl hub doctor"}})
}

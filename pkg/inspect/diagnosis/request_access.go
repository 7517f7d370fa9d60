// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// Findings about the Cluster of an AccessRequest, and about its provider.
const (
	// AccessClusterMissing: the Cluster does not exist, or is being deleted.
	AccessClusterMissing ID = "AccessClusterMissing"
	// AccessProviderMissing: no provider has observed the Cluster.
	AccessProviderMissing ID = "AccessProviderMissing"
	// AccessClusterNotReady: the Cluster is not ready.
	AccessClusterNotReady ID = "AccessClusterNotReady"
	// AccessNotAnswered: the provider has not observed the current generation of the request.
	AccessNotAnswered ID = "AccessNotAnswered"
	// AccessRefused: the provider cannot grant what is requested.
	AccessRefused ID = "AccessRefused"
	// AccessClusterNotHeld: the Cluster does not have the cluster of its profile.
	AccessClusterNotHeld ID = "AccessClusterNotHeld"
	// AccessClusterUnreachable: the cluster does not respond to the provider, or rejects it.
	AccessClusterUnreachable ID = "AccessClusterUnreachable"
	// AccessSecretsForbidden: the provider may not write the Secret with the credentials.
	AccessSecretsForbidden ID = "AccessSecretsForbidden"
	// RequestedRolesMissing: the cluster does not have roles that the request refers to.
	RequestedRolesMissing ID = "RequestedRolesMissing"
)

// party is who must act for a reason of AccessReady.
type party struct {
	id   ID
	turn func(*requestChain) string
}

// refused is for requests that their author must change.
var refused = party{AccessRefused, func(*requestChain) string { return "you, or another user who may write the request" }}

// parties are by the reasons that the providers here use. For any other reason the provider must act.
var parties = map[string]party{
	"ClusterNotReady":                          {AccessClusterNotReady, (*requestChain).provider},
	openmcpv1alpha1.ReasonInvalidReference:     {AccessClusterMissing, (*requestChain).provider},
	openmcpv1alpha1.ReasonConfigurationProblem: refused,
	"OIDCNotSupported":                         refused,
	"OIDCConflict":                             refused,
	"OIDCIssuerRefused":                        refused,
	"OIDCPrefixRefused":                        refused,
	"ResourceNotManaged": {AccessRefused, func(r *requestChain) string {
		return "the owner of the conflicting object; or you, to create a request with another name"
	}},
	"ClusterInteractionProblem": {AccessClusterUnreachable, func(r *requestChain) string {
		return "an admin of the cluster" + after(" of Cluster ", r.clusterName())
	}},
	"ClusterNotHeld": {AccessClusterNotHeld, func(*requestChain) string {
		return "an admin of the hub, who defines which namespaces may have the cluster"
	}},
	"SecretsForbidden": {AccessSecretsForbidden, func(*requestChain) string {
		return "an admin of the hub, who lets the provider write Secrets in the namespace"
	}},
}

func (r *requestChain) clusterName() string {
	if r.request.Spec.ClusterRef == nil {
		return ""
	}
	return r.request.Spec.ClusterRef.NamespacedName().String()
}

func (r *requestChain) describeCluster() []string {
	ref := r.request.Spec.ClusterRef
	if ref == nil {
		return []string{r.command("describe")}
	}
	return []string{ShellCommand("kubectl", "describe", "cluster."+openmcpv1alpha1.GroupName, ref.Name, "-n", ref.Namespace)}
}

func (r *requestChain) clusterThere() outcome {
	f := Finding{ID: AccessClusterMissing, Severity: Error, Object: "cluster/" + r.clusterName(), Turn: "you, to request another Cluster", Since: since(r.request.CreationTimestamp),
		Fix: []string{ShellCommand("kubectl", "get", "clusters."+openmcpv1alpha1.GroupName, "-A"), r.command("delete")}}
	switch {
	case r.cluster == nil && r.Cluster.IsMissing():
		f.Cause = fmt.Sprintf("Cluster %s does not exist. The Cluster of a request cannot be changed: delete the request, and request another Cluster; or create the Cluster.", r.clusterName())
		return broken("does not exist", f)
	case r.cluster == nil && r.granted():
		return passed("the access exists, whatever the state of the Cluster").without(r.Cluster.Why())
	case r.cluster == nil:
		return unseen(r.Cluster.Why())
	case !r.cluster.DeletionTimestamp.IsZero():
		f.Since, f.Fix = r.cluster.DeletionTimestamp, []string{r.command("delete")}
		f.Cause = fmt.Sprintf("Cluster %s is being deleted, and waits until the requests for it are gone.", r.clusterName())
		return broken("is being deleted", f)
	}
	return passed("%s", r.clusterName())
}

// clusterReady only matters until access is granted: it stays granted.
func (r *requestChain) clusterReady() outcome {
	switch {
	case r.granted():
		return passed("when the access was granted")
	case r.cluster == nil:
		return unseen(orReasonOf(r.Cluster.Why()))
	case r.cluster.Status.Phase == openmcpv1alpha1.StatusPhaseReady:
		return passed("yes")
	}
	f := Finding{ID: AccessClusterNotReady, Severity: Error, Object: "cluster/" + r.clusterName(), Turn: r.provider(), Since: since(r.cluster.CreationTimestamp), Fix: r.describeCluster()}
	if missing := meta.FindStatusCondition(r.cluster.Status.Conditions, openmcpv1alpha1.ConditionProviderMissing); missing != nil {
		f.ID, f.Since, f.Turn = AccessProviderMissing, since(missing.LastTransitionTime), "an admin of "+r.provider()
		f.Cause = "No provider acts on the Cluster, so it is not created and does not become ready: " + TrimPeriod(missing.Message) + "."
		f.Fix = []string{ShellCommand("kubectl", "get", "clusterprofile", r.cluster.Spec.Profile, "-o", "yaml"), "kubectl get deployments -A"}
		return broken("no provider handles it", f)
	}
	text := "its phase is " + orUnknown(OneLine(r.cluster.Status.Phase))
	for _, c := range r.cluster.Status.Conditions {
		if c.Status != metav1.ConditionTrue && c.Message != "" {
			text, f.Since = TrimPeriod(c.Message), since(c.LastTransitionTime)
			break
		}
	}
	f.Cause = fmt.Sprintf("Cluster %s is not ready: %s.", r.clusterName(), text)
	return broken(text, f)
}

func orReasonOf(why string) string {
	if why == "" {
		return "the Cluster is not known"
	}
	return why
}

func orUnknown(text string) string {
	if text == "" {
		return "not known"
	}
	return text
}

// access checks the condition that the provider sets.
func (r *requestChain) access() outcome {
	said, now := r.condition(accessReady)
	switch {
	case now && said.Status == metav1.ConditionTrue && r.granted():
		return passed("%s, since %s", secretOf(r.request), ago(r.Now, said.LastTransitionTime.Time))
	case said.Type == "" && r.granted() && r.request.Status.ObservedGeneration == r.request.Generation:
		return passed("%s", secretOf(r.request)) // of a provider that has no such condition
	case !now || said.Status == metav1.ConditionTrue:
		at := r.request.CreationTimestamp
		if prepared, _ := r.condition(openmcpv1alpha1.ConditionPrepared); prepared.Type != "" {
			at = prepared.LastTransitionTime
		}
		state := "The Cluster is ready"
		if r.cluster == nil {
			state = "You may not see whether the Cluster is ready"
		}
		return broken("not handled", Finding{ID: AccessNotAnswered, Severity: Error, Object: r.object(), Since: since(at), Turn: r.provider(),
			Cause: state + ", and " + r.provider() + " has not handled the current generation of the request: it does so within seconds while it runs.",
			Fix:   []string{"kubectl get deployments -A", r.command("annotate", openmcpv1alpha1.OperationAnnotation+"="+openmcpv1alpha1.OperationAnnotationValueReconcile)}})
	}
	is, known := parties[said.Reason]
	if !known {
		is = party{AccessNotAnswered, (*requestChain).provider}
	}
	text := TrimPeriod(said.Message)
	f := Finding{ID: is.id, Severity: Error, Object: r.object(), Since: since(said.LastTransitionTime), Turn: is.turn(r), Fix: []string{r.command("describe")},
		Cause: "The provider reports: " + text + "."}
	switch is.id {
	case AccessRefused:
		f.Fix = append(f.Fix, r.command("edit"))
	case AccessClusterMissing, AccessClusterNotReady, AccessClusterUnreachable, AccessClusterNotHeld:
		f.Fix = r.describeCluster()
	case AccessSecretsForbidden:
		f.Fix = r.letWrite(said.Message)
	}
	return broken(text, f)
}

// writer matches the provider's user in a message. It allows nothing else: other clients could have written the message.
var writer = regexp.MustCompile(`(--(?:serviceaccount|user)=[A-Za-z0-9_.:@-]{1,253})$`)

// letWrite returns the command that lets a provider write Secrets in the namespace of the request.
func (r *requestChain) letWrite(message string) []string {
	subject := "--serviceaccount=<NAMESPACE:NAME OF THE PROVIDER'S SERVICE ACCOUNT>"
	if said := writer.FindString(message); said != "" {
		subject = said
	}
	return []string{LetWriteSecrets(r.request.Labels[openmcpv1alpha1.ProviderLabel], r.Namespace, subject)}
}

// LetWriteSecrets returns the command that lets a provider write Secrets in a namespace with requests. Providers print it, too. subject is a flag of
// kubectl create rolebinding.
func LetWriteSecrets(provider, namespace, subject string) string {
	return ShellCommand("kubectl", "create", "rolebinding", "cluster-provider-"+provider, "-n", namespace, "--clusterrole="+ProviderSecretsRole) + " " + subject
}

// ProviderSecretsRole is the ClusterRole with the permissions of a provider on Secrets. It is bound in each namespace that has requests, because a
// provider does not need to read the other Secrets of the hub. For the same reason it does not include list or watch.
const ProviderSecretsRole = "clusterhub:cluster-provider-secrets"

func secretOf(request *openmcpv1alpha1.AccessRequest) string {
	if request.Status.SecretRef == nil {
		return "granted"
	}
	return "in the Secret " + OneLine(request.Status.SecretRef.Name)
}

// roles checks the roles that the request refers to. If they do not exist, access is granted with fewer permissions.
func (r *requestChain) roles() outcome {
	said, _ := r.condition(rolesFound)
	if said.Status != metav1.ConditionFalse {
		return passed("none is missing")
	}
	text := TrimPeriod(said.Message)
	return broken(text, Finding{ID: RequestedRolesMissing, Severity: Warning, Object: r.object(), Since: since(said.LastTransitionTime), Turn: "an admin of the cluster, who creates the roles",
		Cause: "The access is granted, but the cluster does not have all roles that the request refers to, and those give no rights: " + text + ".",
		Fix:   []string{r.command("get", "-o", "jsonpath={.spec.token.roleRefs}{.spec.oidc.roleBindings}"), r.command("edit")}})
}

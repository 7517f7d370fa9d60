// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub names, labels and writes a provider's objects on the hub.
package hub

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/namehash"
)

// Identity identifies a provider on the hub. All names and labels that it assigns are derived from it, so that several providers, including those of
// one binary, never treat each other's objects as their own.
type Identity struct {
	Name, Environment string
}

// ProfileName returns the name of the profile of a configuration.
func (i Identity) ProfileName(config string) string {
	return i.Environment + "." + i.Name + "." + config
}

// Group returns the prefix of the names of all finalizers, labels and annotations of the provider.
func (i Identity) Group() string { return i.Environment + "." + i.Name + "." + v1alpha1.GroupName }

// ClusterFinalizer blocks the deletion of a Cluster until its cluster is deleted.
func (i Identity) ClusterFinalizer() string { return i.Group() + "/cluster" }

// AccessFinalizer blocks the deletion of an AccessRequest until its access has been revoked.
func (i Identity) AccessFinalizer() string { return i.Group() + "/accessrequest" }

// OwnLabels are set on all objects of the provider on the hub.
func (i Identity) OwnLabels() client.MatchingLabels {
	return client.MatchingLabels{v1alpha1.ManagedByLabel: i.Name, v1alpha1.EnvironmentLabel: i.Environment}
}

// AccessLabels are set on all objects that the provider creates in a cluster for an AccessRequest.
func (i Identity) AccessLabels(ar *v1alpha1.AccessRequest) client.MatchingLabels {
	return client.MatchingLabels{
		i.NameLabel():                       shortened(ar.Name, validation.LabelValueMaxLength, "__"), // no name contains this separator
		i.Group() + "/managed-by-namespace": ar.Namespace,
	}
}

// NameLabel is set on all objects of the provider in any cluster.
func (i Identity) NameLabel() string { return i.Group() + "/managed-by-name" }

// Origin returns annotations of the same objects. Objects can be recreated with the same name, and exist on several hubs: UIDs distinguish them.
// Labels truncate long names.
func (i Identity) Origin(ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) map[string]string {
	return map[string]string{
		i.Group() + "/accessrequest":     client.ObjectKeyFromObject(ar).String(),
		i.Group() + "/accessrequest-uid": string(ar.UID),
		i.Group() + "/cluster-uid":       string(cluster.UID),
	}
}

// NamesAnnotation of a binding describes which OIDC provider assigns the names in it, and how. The request may have changed since.
func (i Identity) NamesAnnotation() string { return i.Group() + "/oidc-names" }

// TokensUntilAnnotation of a ServiceAccount in a cluster is the time until which its tokens are valid, by the clock of the provider. The Secret of
// the request has a copy.
func (i Identity) TokensUntilAnnotation() string { return i.Group() + "/tokens-until" }

// RequestOf returns the AccessRequest for which an object in a Cluster was created, from its annotations, or nil if they are missing.
func (i Identity) RequestOf(object client.Object, cluster *v1alpha1.Cluster) *v1alpha1.AccessRequest {
	annotations, ar := object.GetAnnotations(), &v1alpha1.AccessRequest{}
	ar.Namespace, ar.Name, _ = strings.Cut(annotations[i.Group()+"/accessrequest"], "/")
	ar.UID = types.UID(annotations[i.Group()+"/accessrequest-uid"])
	if ar.Namespace == "" || ar.Name == "" || ar.UID == "" || annotations[i.Group()+"/cluster-uid"] != string(cluster.UID) {
		return nil
	}
	return ar
}

// Hash returns the part of a name that is unique to an AccessRequest among those of all providers.
func (i Identity) Hash(ar *v1alpha1.AccessRequest) string {
	return namehash.NameHash(i.Environment, i.Name, ar.Namespace, ar.Name)
}

// Responsible reports whether the provider creates the clusters of a profile.
func (i Identity) Responsible(profile *v1alpha1.ClusterProfile) bool {
	environment, labelled := profile.Labels[v1alpha1.EnvironmentLabel]
	return profile.Spec.ProviderRef.Name == i.Name && (!labelled || environment == i.Environment)
}

// Begun reports whether the provider has something to revoke. Labels are not sufficient: users who may write the request may remove them.
func (i Identity) Begun(ar client.Object) bool {
	return controllerutil.ContainsFinalizer(ar, i.AccessFinalizer())
}

// Concerns reports whether a request can be the provider's.
func (i Identity) Concerns(ar client.Object) bool {
	return ar.GetLabels()[v1alpha1.ProviderLabel] == i.Name || i.Begun(ar)
}

const secretSuffix = ".kubeconfig"

// SecretName returns the name of the Secret with the access of an AccessRequest.
func SecretName(accessRequest string) string {
	return shortened(accessRequest, validation.DNS1123LabelMaxLength-len(secretSuffix), "--") + secretSuffix
}

// shortened returns a name of at most that length: the end of a longer one is replaced by its hash.
func shortened(name string, length int, separator string) string {
	if len(name) <= length {
		return name
	}
	end := separator + namehash.NameHash(name)
	return name[:length-len(end)] + end
}

// VersionLabel returns a version of Kubernetes as the value of a label, or "".
func VersionLabel(version string) string {
	version = strings.ReplaceAll(strings.TrimPrefix(version, "v"), "+", "_")
	if len(validation.IsValidLabelValue(version)) > 0 {
		return ""
	}
	return version
}

// AnswerName returns the name of the Secret with the access of a request.
func AnswerName(ar *v1alpha1.AccessRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: ar.Namespace, Name: SecretName(ar.Name)}
}

// TokenSourceName returns the name of the Secret with which short-lived tokens of a request are issued.
func TokenSourceName(ar *v1alpha1.AccessRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: v1alpha1.TokenSourceNamespace, Name: string(ar.UID)}
}

// CreatedFor reports whether a Secret was created by this provider for a request.
func (i Identity) CreatedFor(ar *v1alpha1.AccessRequest, secret *corev1.Secret) bool {
	for label, value := range i.OwnLabels() {
		if secret.Labels[label] != value {
			return false
		}
	}
	return metav1.IsControlledBy(secret, ar) || client.ObjectKeyFromObject(secret) == TokenSourceName(ar)
}

// TokensExpire returns the time until which the tokens of an object are valid, by our own clock, from an annotation. Objects of earlier versions do
// not have it: then it returns otherwise.
func (i Identity) TokensExpire(object client.Object, otherwise time.Time) time.Time {
	until, err := time.Parse(time.RFC3339, object.GetAnnotations()[i.TokensUntilAnnotation()])
	if err != nil {
		return otherwise
	}
	return until
}

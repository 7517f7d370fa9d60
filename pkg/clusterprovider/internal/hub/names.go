// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub is how a provider names, labels and writes what is on the hub.
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

// Identity is who a provider is on the hub. All names and labels that it gives follow from it, so that providers beside each
// other, also two of one binary, never take each other's objects for their own.
type Identity struct {
	Name, Environment string
}

// ProfileName names the profile of a configuration.
func (i Identity) ProfileName(config string) string {
	return i.Environment + "." + i.Name + "." + config
}

// Group begins the names of all finalizers, labels and annotations that are the provider's own.
func (i Identity) Group() string { return i.Environment + "." + i.Name + "." + v1alpha1.GroupName }

// ClusterFinalizer holds a Cluster until its cluster is removed.
func (i Identity) ClusterFinalizer() string { return i.Group() + "/cluster" }

// AccessFinalizer holds an AccessRequest until its access has been taken back.
func (i Identity) AccessFinalizer() string { return i.Group() + "/accessrequest" }

// OwnLabels are on everything that the provider makes on the hub.
func (i Identity) OwnLabels() client.MatchingLabels {
	return client.MatchingLabels{v1alpha1.ManagedByLabel: i.Name, v1alpha1.EnvironmentLabel: i.Environment}
}

// AccessLabels are on everything that the provider makes in a cluster for an AccessRequest.
func (i Identity) AccessLabels(ar *v1alpha1.AccessRequest) client.MatchingLabels {
	return client.MatchingLabels{
		i.NameLabel():                       shortened(ar.Name, validation.LabelValueMaxLength, "__"), // no name has these
		i.Group() + "/managed-by-namespace": ar.Namespace,
	}
}

// NameLabel is on everything that the provider makes in any cluster.
func (i Identity) NameLabel() string { return i.Group() + "/managed-by-name" }

// Origin are annotations that are there, too. Objects of one name can follow each other, and be on several hubs: UIDs tell them
// apart. Labels do not have the whole of a long name.
func (i Identity) Origin(ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) map[string]string {
	return map[string]string{
		i.Group() + "/accessrequest":     client.ObjectKeyFromObject(ar).String(),
		i.Group() + "/accessrequest-uid": string(ar.UID),
		i.Group() + "/cluster-uid":       string(cluster.UID),
	}
}

// NamesAnnotation of a binding says which OIDC provider gives the names in it, and how. The request may ask for another one by now.
func (i Identity) NamesAnnotation() string { return i.Group() + "/oidc-names" }

// TokensUntilAnnotation of a ServiceAccount in a cluster says until when its tokens are valid, by the clock of the provider. The
// Secret that answers the request has a copy.
func (i Identity) TokensUntilAnnotation() string { return i.Group() + "/tokens-until" }

// RequestOf is the AccessRequest that something in a Cluster was made for by its annotations; nil if they do not say so.
func (i Identity) RequestOf(object client.Object, cluster *v1alpha1.Cluster) *v1alpha1.AccessRequest {
	annotations, ar := object.GetAnnotations(), &v1alpha1.AccessRequest{}
	ar.Namespace, ar.Name, _ = strings.Cut(annotations[i.Group()+"/accessrequest"], "/")
	ar.UID = types.UID(annotations[i.Group()+"/accessrequest-uid"])
	if ar.Namespace == "" || ar.Name == "" || ar.UID == "" || annotations[i.Group()+"/cluster-uid"] != string(cluster.UID) {
		return nil
	}
	return ar
}

// Hash is the part of a name that tells AccessRequests of all providers apart.
func (i Identity) Hash(ar *v1alpha1.AccessRequest) string {
	return namehash.NameHash(i.Environment, i.Name, ar.Namespace, ar.Name)
}

// Responsible is whether the provider makes the clusters of a profile.
func (i Identity) Responsible(profile *v1alpha1.ClusterProfile) bool {
	environment, labelled := profile.Labels[v1alpha1.EnvironmentLabel]
	return profile.Spec.ProviderRef.Name == i.Name && (!labelled || environment == i.Environment)
}

// Begun is whether the provider has something to take back. Labels say nothing of that: who may write the request may remove them.
func (i Identity) Begun(ar client.Object) bool {
	return controllerutil.ContainsFinalizer(ar, i.AccessFinalizer())
}

// Concerns is whether a request can be the provider's.
func (i Identity) Concerns(ar client.Object) bool {
	return ar.GetLabels()[v1alpha1.ProviderLabel] == i.Name || i.Begun(ar)
}

const secretSuffix = ".kubeconfig"

// SecretName is the name of the Secret that answers an AccessRequest.
func SecretName(accessRequest string) string {
	return shortened(accessRequest, validation.DNS1123LabelMaxLength-len(secretSuffix), "--") + secretSuffix
}

// shortened is a name of at most that length: the end of a longer one gives way to its hash.
func shortened(name string, length int, separator string) string {
	if len(name) <= length {
		return name
	}
	end := separator + namehash.NameHash(name)
	return name[:length-len(end)] + end
}

// VersionLabel is a version of Kubernetes as the value of a label, or empty.
func VersionLabel(version string) string {
	version = strings.ReplaceAll(strings.TrimPrefix(version, "v"), "+", "_")
	if len(validation.IsValidLabelValue(version)) > 0 {
		return ""
	}
	return version
}

// AnswerName is the name of the Secret that answers a request.
func AnswerName(ar *v1alpha1.AccessRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: ar.Namespace, Name: SecretName(ar.Name)}
}

// TokenSourceName is the name of the Secret that short-lived tokens of a request are made with.
func TokenSourceName(ar *v1alpha1.AccessRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: v1alpha1.TokenSourceNamespace, Name: string(ar.UID)}
}

// MadeFor is whether a Secret has been made by this provider for a request.
func (i Identity) MadeFor(ar *v1alpha1.AccessRequest, secret *corev1.Secret) bool {
	for label, value := range i.OwnLabels() {
		if secret.Labels[label] != value {
			return false
		}
	}
	return metav1.IsControlledBy(secret, ar) || client.ObjectKeyFromObject(secret) == TokenSourceName(ar)
}

// EndOfTokens is until when tokens were asked for, by our own clock, as an object says by an annotation. Those of earlier versions
// do not say so: then it is otherwise.
func (i Identity) EndOfTokens(object client.Object, otherwise time.Time) time.Time {
	until, err := time.Parse(time.RFC3339, object.GetAnnotations()[i.TokensUntilAnnotation()])
	if err != nil {
		return otherwise
	}
	return until
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/namehash"
)

// identity is who a provider is on the hub. All names and labels that it gives follow from it, so that providers beside each
// other, also two of one binary, never take each other's objects for their own.
type identity struct {
	name, environment string
}

// profileName names the profile of a configuration.
func (i identity) profileName(config string) string {
	return i.environment + "." + i.name + "." + config
}

func (i identity) group() string { return i.environment + "." + i.name + "." + v1alpha1.GroupName }

func (i identity) clusterFinalizer() string { return i.group() + "/cluster" }

func (i identity) accessFinalizer() string { return i.group() + "/accessrequest" }

// ownLabels are on everything that the provider makes on the hub.
func (i identity) ownLabels() client.MatchingLabels {
	return client.MatchingLabels{v1alpha1.ManagedByLabel: i.name, v1alpha1.EnvironmentLabel: i.environment}
}

// accessLabels are on everything that the provider makes in a cluster for an AccessRequest.
func (i identity) accessLabels(ar *v1alpha1.AccessRequest) client.MatchingLabels {
	return client.MatchingLabels{
		i.nameLabel():                       shortened(ar.Name, validation.LabelValueMaxLength, "__"), // no name has these
		i.group() + "/managed-by-namespace": ar.Namespace,
	}
}

func (i identity) nameLabel() string { return i.group() + "/managed-by-name" }

// origin are annotations that are there, too. Objects of one name can follow each other, and be on several hubs: UIDs tell them
// apart. Labels do not have the whole of a long name.
func (i identity) origin(ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) map[string]string {
	origin := map[string]string{
		i.group() + "/accessrequest":     client.ObjectKeyFromObject(ar).String(),
		i.group() + "/accessrequest-uid": string(ar.UID),
		i.group() + "/cluster-uid":       string(cluster.UID),
	}
	if ar.Spec.OIDC != nil {
		provider := trustOf(ar)
		origin[i.namesAnnotation()] = names(&provider)
	}
	return origin
}

// namesAnnotation of a binding says which OIDC provider gives the names in it, and how. The request may ask for another one by now.
func (i identity) namesAnnotation() string { return i.group() + "/oidc-names" }

// tokensUntilAnnotation of a ServiceAccount in a cluster says until when its tokens are valid, by the clock of the provider. The
// Secret that answers the request has a copy.
func (i identity) tokensUntilAnnotation() string { return i.group() + "/tokens-until" }

// requestOf is the AccessRequest that something in a Cluster was made for by its annotations; nil if they do not say so.
func (i identity) requestOf(object client.Object, cluster *v1alpha1.Cluster) *v1alpha1.AccessRequest {
	annotations, ar := object.GetAnnotations(), &v1alpha1.AccessRequest{}
	ar.Namespace, ar.Name, _ = strings.Cut(annotations[i.group()+"/accessrequest"], "/")
	ar.UID = types.UID(annotations[i.group()+"/accessrequest-uid"])
	if ar.Namespace == "" || ar.Name == "" || ar.UID == "" || annotations[i.group()+"/cluster-uid"] != string(cluster.UID) {
		return nil
	}
	return ar
}

// hash is the part of a name that tells AccessRequests of all providers apart.
func (i identity) hash(ar *v1alpha1.AccessRequest) string {
	return namehash.NameHash(i.environment, i.name, ar.Namespace, ar.Name)
}

// responsible is whether the provider makes the clusters of a profile.
func (i identity) responsible(profile *v1alpha1.ClusterProfile) bool {
	environment, labelled := profile.Labels[v1alpha1.EnvironmentLabel]
	return profile.Spec.ProviderRef.Name == i.name && (!labelled || environment == i.environment)
}

// begun is whether the provider has something to take back. Labels say nothing of that: who may write the request may remove them.
func (i identity) begun(ar client.Object) bool {
	return controllerutil.ContainsFinalizer(ar, i.accessFinalizer())
}

// concerns is whether a request can be the provider's.
func (i identity) concerns(ar client.Object) bool {
	return ar.GetLabels()[v1alpha1.ProviderLabel] == i.name || i.begun(ar)
}

const secretSuffix = ".kubeconfig"

// secretName is the name of the Secret that answers an AccessRequest.
func secretName(accessRequest string) string {
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

// versionLabel is a version of Kubernetes as the value of a label, or empty.
func versionLabel(version string) string {
	version = strings.ReplaceAll(strings.TrimPrefix(version, "v"), "+", "_")
	if len(validation.IsValidLabelValue(version)) > 0 {
		return ""
	}
	return version
}

// key names an object for people and for comparison.
func key(object client.Object) string {
	if object.GetNamespace() == "" {
		return fmt.Sprintf("%s %s", kindOf(object), object.GetName())
	}
	return fmt.Sprintf("%s %s/%s", kindOf(object), object.GetNamespace(), object.GetName())
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scope is whether objects of a kind are namespaced.
type Scope string

const (
	// Namespaced objects are in a namespace.
	Namespaced Scope = "Namespaced"
	// Cluster is the scope of cluster-scoped objects.
	Cluster Scope = "Cluster"
	// Unknown is the scope of a kind that neither Kubernetes nor the archive defines, if the object names no namespace. It is treated as namespaced:
	// if it is not, the agent detects that and omits the namespace.
	Unknown Scope = "Unknown"
)

// kinds are the kinds of Kubernetes, by group. A kind of these groups that is missing here is of a newer version of Kubernetes, and unknown.
var kinds = map[Scope]map[string]string{
	Cluster: {
		"":                             "Namespace Node PersistentVolume ComponentStatus",
		"admissionregistration.k8s.io": "ValidatingWebhookConfiguration MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
		"apiextensions.k8s.io":         "CustomResourceDefinition",
		"apiregistration.k8s.io":       "APIService",
		"authentication.k8s.io":        "TokenReview SelfSubjectReview",
		"authorization.k8s.io":         "SubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview",
		"certificates.k8s.io":          "CertificateSigningRequest ClusterTrustBundle",
		"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
		"internal.apiserver.k8s.io":    "StorageVersion",
		"networking.k8s.io":            "IngressClass IPAddress ServiceCIDR",
		"node.k8s.io":                  "RuntimeClass",
		"policy":                       "PodSecurityPolicy",
		"rbac.authorization.k8s.io":    "ClusterRole ClusterRoleBinding",
		"resource.k8s.io":              "DeviceClass DeviceTaintRule ResourceSlice",
		"scheduling.k8s.io":            "PriorityClass",
		"storage.k8s.io":               "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
		"storagemigration.k8s.io":      "StorageVersionMigration",
	},
	Namespaced: {
		"":                          "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
		"apps":                      "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
		"authorization.k8s.io":      "LocalSubjectAccessReview",
		"autoscaling":               "HorizontalPodAutoscaler",
		"batch":                     "CronJob Job",
		"certificates.k8s.io":       "PodCertificateRequest",
		"coordination.k8s.io":       "Lease LeaseCandidate",
		"discovery.k8s.io":          "EndpointSlice",
		"events.k8s.io":             "Event",
		"extensions":                "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet",
		"networking.k8s.io":         "Ingress NetworkPolicy",
		"policy":                    "Eviction PodDisruptionBudget",
		"rbac.authorization.k8s.io": "Role RoleBinding",
		"resource.k8s.io":           "ResourceClaim ResourceClaimTemplate",
		"storage.k8s.io":            "CSIStorageCapacity",
	},
}

var scopes = func() map[schema.GroupKind]Scope {
	table := map[schema.GroupKind]Scope{}
	for scope, groups := range kinds {
		for group, names := range groups {
			for name := range strings.FieldsSeq(names) {
				table[schema.GroupKind{Group: group, Kind: name}] = scope
			}
		}
	}
	return table
}()

// scopeOf returns the scope of a kind. Kubernetes' own kinds have priority: an archive cannot redefine them.
func scopeOf(kind schema.GroupKind, namespace string, defined map[schema.GroupKind]Scope) Scope {
	if scope, ok := scopes[kind]; ok {
		return scope
	}
	if scope, ok := defined[kind]; ok {
		return scope
	}
	if namespace != "" {
		return Namespaced
	}
	return Unknown
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWork is a list of objects that an agent applies to one managed cluster, and restores when they are changed there. It is in the
// namespace that has the name of the cluster. A user who may write it can do in the cluster what the agent can: see spec.executor. Deleting
// it deletes the objects, unless spec.deleteOption says otherwise.
type ManifestWork struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name has at most 188 characters: the object that the agent makes for it
	// in the managed cluster has a longer one.
	metav1.ObjectMeta

	// spec is the desired state: the objects, and how they are kept. Users write it.
	Spec ManifestWorkSpec
	// status is the observed state. The agent writes it.
	Status ManifestWorkStatus
}

// ManifestWorkSpec says which objects are in a managed cluster.
type ManifestWorkSpec struct {
	// workload has the objects.
	Workload ManifestsTemplate
	// deleteOption says what becomes of the objects when the work is deleted, and when that is. The default is to delete
	// them, and to delete the work only when a user does.
	DeleteOption *DeleteOption
	// manifestConfigs say, for some of the objects, how they are updated and what of them is reported. At most 1024. The
	// first that fits an object counts.
	ManifestConfigs []ManifestConfigOption
	// executor is whose rights in the managed cluster limit what the work may do there. Setting it takes the permission
	// "execute-as" on manifestworks in the namespace of the work, with the name
	// system:serviceaccount:<namespace>:<name>. The default is all rights of the agent.
	Executor *ManifestWorkExecutor
}

// Manifest is an object as it is wanted in the managed cluster: apiVersion, kind, metadata.name, and all else that it has.
type Manifest struct {
	runtime.RawExtension
}

// ManifestsTemplate has the objects of a work.
type ManifestsTemplate struct {
	// manifests are the objects, 1 to 1024, and 512000 bytes together, unless the flag --max-manifests-bytes of hub-apiserver
	// says otherwise. Each has apiVersion, kind and metadata.name, no generateName, and is there once.
	Manifests []Manifest
}

// DeleteOption says what becomes of the objects of a work that is deleted.
type DeleteOption struct {
	// propagationPolicy is Foreground (the default): the objects are deleted, and the work is there until they are gone.
	// Orphan: they stay. SelectivelyOrphan: those in selectivelyOrphans stay.
	PropagationPolicy DeletePropagationPolicyType
	// selectivelyOrphans are the objects that stay. Only for propagationPolicy SelectivelyOrphan. They stay, too, when
	// they leave the manifests, so that another work can take them over.
	SelectivelyOrphan *SelectivelyOrphan
	// ttlSecondsAfterFinished is after how many seconds a work is deleted that has the condition Complete: 0 or more, and
	// 0 is at once. The default is never. Works of a ManifestWorkReplicaSet are not deleted so.
	TTLSecondsAfterFinished *int64
}

// DeletePropagationPolicyType says what becomes of the objects of a work that is deleted.
type DeletePropagationPolicyType string

const (
	// DeletePropagationPolicyTypeForeground deletes them first.
	DeletePropagationPolicyTypeForeground DeletePropagationPolicyType = "Foreground"
	// DeletePropagationPolicyTypeOrphan lets them stay.
	DeletePropagationPolicyTypeOrphan DeletePropagationPolicyType = "Orphan"
	// DeletePropagationPolicyTypeSelectivelyOrphan lets some of them stay.
	DeletePropagationPolicyTypeSelectivelyOrphan DeletePropagationPolicyType = "SelectivelyOrphan"
)

// SelectivelyOrphan has the objects that stay.
type SelectivelyOrphan struct {
	// orphaningRules are the objects, at most 1024.
	OrphaningRules []OrphaningRule
}

// OrphaningRule names an object that stays. All fields have to be those of the object.
type OrphaningRule ResourceIdentifier

// ResourceIdentifier names an object in the managed cluster.
type ResourceIdentifier struct {
	// group is the API group, at most 253 characters. The default is the core group.
	Group string
	// resource is the plural of the kind, such as deployments: 1 to 253 characters. It is required.
	Resource string
	// name is the name of the object, 1 to 253 characters. It is required.
	Name string
	// namespace is the namespace of the object, at most 253 characters. It is empty for cluster-scoped objects, which is the default.
	Namespace string
}

// ManifestWorkExecutor is whose rights limit a work.
type ManifestWorkExecutor struct {
	// subject is who it is in the managed cluster. It is required.
	Subject ManifestWorkExecutorSubject
}

// ManifestWorkExecutorSubject is who an executor is.
type ManifestWorkExecutorSubject struct {
	// type is ServiceAccount. It is required.
	Type ManifestWorkExecutorSubjectType
	// serviceAccount is a service account of the managed cluster. It is required for the type ServiceAccount.
	ServiceAccount *ManifestWorkSubjectServiceAccount
}

// ManifestWorkExecutorSubjectType is a kind of executors.
type ManifestWorkExecutorSubjectType string

const (
	// ExecutorSubjectTypeServiceAccount is a service account of the managed cluster.
	ExecutorSubjectTypeServiceAccount ManifestWorkExecutorSubjectType = "ServiceAccount"
)

// ManifestWorkSubjectServiceAccount names a service account of the managed cluster.
type ManifestWorkSubjectServiceAccount struct {
	// namespace is the namespace of the service account, 1 to 253 characters. It is required.
	Namespace string
	// name is the name of the service account, 1 to 253 characters. It is required.
	Name string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkList is a list of ManifestWork.
type ManifestWorkList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the works.
	Items []ManifestWork
}

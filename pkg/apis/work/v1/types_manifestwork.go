// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWork is a list of objects that an agent applies to one managed cluster. The agent restores objects that are changed in the cluster. The
// namespace of a ManifestWork is the namespace of its cluster on the hub. A user who may write a ManifestWork can do in the cluster whatever the
// agent can, unless spec.executor limits it. Deleting a ManifestWork deletes its objects, unless spec.deleteOption specifies otherwise.
type ManifestWork struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name has at most 188 characters, since the agent derives a longer name from it for an object in
	// the managed cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the work: the objects, and how they are applied, reported and deleted. Users write it.
	// +optional
	Spec ManifestWorkSpec `json:"spec"`
	// status represents the observed state of the work. The agent writes it.
	// +optional
	Status ManifestWorkStatus `json:"status,omitempty"`
}

// ManifestWorkSpec defines the desired state of a ManifestWork.
type ManifestWorkSpec struct {
	// workload contains the objects to apply.
	// +optional
	Workload ManifestsTemplate `json:"workload,omitempty"`
	// deleteOption defines what happens to the objects when the work is deleted, and when the work is deleted automatically. By default, the objects
	// are deleted with the work, and only users delete the work.
	// +optional
	DeleteOption *DeleteOption `json:"deleteOption,omitempty"`
	// manifestConfigs configure, for some of the objects, how they are updated, adopted and reported: at most 1024 entries. If several entries match
	// an object, each setting is taken from the first of them that has it, except feedbackScrapeType, which is taken from the last.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1024
	ManifestConfigs []ManifestConfigOption `json:"manifestConfigs,omitempty"`
	// executor is the subject in the managed cluster whose rights limit what the work may do there. Setting it requires the permission "execute-as"
	// on manifestworks in the namespace of the work, with the name system:serviceaccount:<namespace>:<name>. By default, the work has all rights of
	// the agent.
	// +optional
	Executor *ManifestWorkExecutor `json:"executor,omitempty"`
}

// Manifest is an object as desired in the managed cluster: apiVersion, kind, metadata.name, and all other fields to apply.
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// ManifestsTemplate contains the objects of a work.
type ManifestsTemplate struct {
	// manifests are the objects to apply, 1 to 1024. Their total size is limited to 512000 bytes by default; the flag --max-manifests-bytes of
	// hub-apiserver sets the limit. Each object requires apiVersion, kind and metadata.name, must not have generateName, and must occur only once.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1024
	Manifests []Manifest `json:"manifests,omitempty"`
}

// DeleteOption defines what happens to the objects of a work when it is deleted, and when it is deleted automatically.
type DeleteOption struct {
	// propagationPolicy is Foreground, Orphan or SelectivelyOrphan. With Foreground (the default), the objects are deleted, and the work exists until
	// they are gone. With Orphan, the objects are not deleted. With SelectivelyOrphan, all objects are deleted except those in selectivelyOrphans.
	// +optional
	// +default="Foreground"
	PropagationPolicy DeletePropagationPolicyType `json:"propagationPolicy,omitempty"`
	// selectivelyOrphans are the objects that are not deleted. Used only if propagationPolicy is SelectivelyOrphan. These objects are also not
	// deleted when they are removed from the manifests, so that another work can take them over.
	// +optional
	SelectivelyOrphan *SelectivelyOrphan `json:"selectivelyOrphans,omitempty"`
	// ttlSecondsAfterFinished is the number of seconds after which a work is deleted once its condition Complete is True: 0 or more, where 0 means
	// immediately. By default, the work is not deleted automatically. The field has no effect on works of a ManifestWorkReplicaSet.
	// +optional
	// +k8s:validation:minimum=0
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`
}

// DeletePropagationPolicyType defines what happens to the objects of a work that is deleted.
// +enum
type DeletePropagationPolicyType string

const (
	// DeletePropagationPolicyTypeForeground deletes the objects before the work.
	DeletePropagationPolicyTypeForeground DeletePropagationPolicyType = "Foreground"
	// DeletePropagationPolicyTypeOrphan deletes no objects.
	DeletePropagationPolicyTypeOrphan DeletePropagationPolicyType = "Orphan"
	// DeletePropagationPolicyTypeSelectivelyOrphan deletes the objects except those in selectivelyOrphans.
	DeletePropagationPolicyTypeSelectivelyOrphan DeletePropagationPolicyType = "SelectivelyOrphan"
)

// SelectivelyOrphan contains the objects that are not deleted with their work.
type SelectivelyOrphan struct {
	// orphaningRules identify the objects that are not deleted, at most 1024.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1024
	OrphaningRules []OrphaningRule `json:"orphaningRules,omitempty"`
}

// OrphaningRule identifies an object that is not deleted. All of its fields must equal those of the object.
type OrphaningRule ResourceIdentifier

// ResourceIdentifier identifies an object in the managed cluster.
type ResourceIdentifier struct {
	// group is the API group of the object, at most 253 characters. The default is the core group.
	// +optional
	// +k8s:validation:maxLength=253
	Group string `json:"group"`
	// resource is the plural resource name of the object, such as deployments, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Resource string `json:"resource"`
	// name is the name of the object, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// namespace is the namespace of the object, at most 253 characters. The default is empty, for cluster-scoped objects.
	// +optional
	// +k8s:validation:maxLength=253
	Namespace string `json:"namespace"`
}

// ManifestWorkExecutor defines whose rights limit a work.
type ManifestWorkExecutor struct {
	// subject is the subject in the managed cluster whose rights limit the work. Required.
	// +required
	Subject ManifestWorkExecutorSubject `json:"subject"`
}

// ManifestWorkExecutorSubject identifies the subject of an executor.
type ManifestWorkExecutorSubject struct {
	// type is the type of the subject: ServiceAccount. Required.
	// +required
	Type ManifestWorkExecutorSubjectType `json:"type"`
	// serviceAccount is a service account in the managed cluster. Required if type is ServiceAccount.
	// +optional
	ServiceAccount *ManifestWorkSubjectServiceAccount `json:"serviceAccount,omitempty"`
}

// ManifestWorkExecutorSubjectType is a type of executor subjects.
// +enum
type ManifestWorkExecutorSubjectType string

const (
	// ExecutorSubjectTypeServiceAccount is a service account in the managed cluster.
	ExecutorSubjectTypeServiceAccount ManifestWorkExecutorSubjectType = "ServiceAccount"
)

// ManifestWorkSubjectServiceAccount identifies a service account in the managed cluster.
type ManifestWorkSubjectServiceAccount struct {
	// namespace is the namespace of the service account, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$"
	Namespace string `json:"namespace"`
	// name is the name of the service account, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$"
	Name string `json:"name"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkList is a list of ManifestWorks.
type ManifestWorkList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ManifestWorks.
	Items []ManifestWork `json:"items"`
}

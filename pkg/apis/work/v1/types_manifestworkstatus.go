// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManifestWorkStatus represents the observed state of a ManifestWork. Its size is at most 512000 bytes.
type ManifestWorkStatus struct {
	// conditions represent the latest observations of the work, at most 128. Applied reports whether all objects are applied, Available whether all
	// objects exist, and Deleting whether the work is being deleted. The conditions of conditionRules are included.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// resourceStatus represents the observed state of each object.
	// +optional
	ResourceStatus ManifestResourceStatus `json:"resourceStatus,omitempty"`
}

// ManifestResourceStatus represents the observed state of each object of a work.
type ManifestResourceStatus struct {
	// manifests are the states of the objects, at most 2048.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=2048
	Manifests []ManifestCondition `json:"manifests,omitempty"`
}

// ManifestCondition represents the observed state of one object.
type ManifestCondition struct {
	// resourceMeta identifies the object. Required.
	// +required
	ResourceMeta ManifestResourceMeta `json:"resourceMeta"`
	// statusFeedback contains the fields that feedbackRules select.
	// +optional
	StatusFeedbacks StatusFeedbackResult `json:"statusFeedback,omitempty"`
	// conditions represent the latest observations of the object, at most 128. Applied reports whether the object is applied, Available whether it
	// exists, and StatusFeedbackSynced whether its fields could be read. The conditions of conditionRules are included.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManifestResourceMeta identifies an object of a work.
type ManifestResourceMeta struct {
	// ordinal is the index of the object in spec.workload.manifests, starting at 0. Required.
	// +required
	// +k8s:validation:minimum=0
	Ordinal int32 `json:"ordinal"`
	// group is the API group of the object, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Group string `json:"group"`
	// version is the API version of the object, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Version string `json:"version"`
	// kind is the kind of the object, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Kind string `json:"kind"`
	// resource is the plural resource name of the object, at most 253 characters. It is empty if the cluster does not know the kind.
	// +optional
	// +k8s:validation:maxLength=253
	Resource string `json:"resource"`
	// name is the name of the object, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// namespace is the namespace of the object, at most 253 characters. It is empty for cluster-scoped objects.
	// +optional
	// +k8s:validation:maxLength=253
	Namespace string `json:"namespace"`
}

// StatusFeedbackResult contains the reported fields of an object.
type StatusFeedbackResult struct {
	// values are the reported fields, at most 1024, with unique names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=1024
	Values []FeedbackValue `json:"values,omitempty"`
}

// FeedbackValue is a reported field of an object.
type FeedbackValue struct {
	// name is the name that the JSONPath or the well-known rule defines for the field, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// fieldValue is the value of the field. Required.
	// +required
	Value FieldValue `json:"fieldValue"`
}

// FieldValue is the value of a field. The field that corresponds to its type contains the value.
type FieldValue struct {
	// type is the type of the value: Integer, String, Boolean or JsonRaw. Required.
	// +required
	Type ValueType `json:"type"`
	// integer is the value if type is Integer.
	// +optional
	Integer *int64 `json:"integer,omitempty"`
	// string is the value if type is String, at most 32768 characters.
	// +optional
	// +k8s:validation:maxLength=32768
	String *string `json:"string,omitempty"`
	// boolean is the value if type is Boolean.
	// +optional
	Boolean *bool `json:"boolean,omitempty"`
	// jsonRaw is the value, a list or an object in JSON, if type is JsonRaw, at most 1024 characters.
	// +optional
	// +k8s:validation:maxLength=1024
	JsonRaw *string `json:"jsonRaw,omitempty"`
}

// ValueType is the type of the value of a field.
// +enum
type ValueType string

const (
	// Integer is the type of an integer.
	Integer ValueType = "Integer"
	// String is the type of a string.
	String ValueType = "String"
	// Boolean is the type of a boolean.
	Boolean ValueType = "Boolean"
	// JsonRaw is the type of a list or an object in JSON.
	JsonRaw ValueType = "JsonRaw"
)

// Types of conditions of works.
const (
	// WorkApplied reports whether all objects are applied.
	WorkApplied string = "Applied"
	// WorkAvailable reports whether all objects exist.
	WorkAvailable string = "Available"
	// WorkProgressing reports whether any object has not reached its desired state yet. It is set by condition rules.
	WorkProgressing string = "Progressing"
	// WorkDegraded reports whether objects fail to reach their desired state. It is set by condition rules.
	WorkDegraded string = "Degraded"
	// WorkComplete reports whether the objects have finished, so that they are no longer updated. It is set by condition rules.
	WorkComplete string = "Complete"
	// WorkDeleting is True while the agent deletes the objects of a deleted work.
	WorkDeleting string = "Deleting"
	// WorkContested is True while other programs repeatedly revert what the agent applies.
	WorkContested string = "Contested"
)

// Types of conditions of objects of works.
const (
	// ManifestApplied reports whether the object is applied.
	ManifestApplied string = "Applied"
	// ManifestContested is True while another program repeatedly reverts what the agent applies.
	ManifestContested string = "Contested"
	// ManifestAdopted is True if the object existed before the work. Its message states whether the object is deleted with the work.
	ManifestAdopted string = "Adopted"
	// ManifestAvailable reports whether the object exists.
	ManifestAvailable string = "Available"
	// ManifestProgressing reports whether the object has not reached its desired state yet. It is set by condition rules.
	ManifestProgressing string = "Progressing"
	// ManifestDegraded reports whether the object fails to reach its desired state. It is set by condition rules.
	ManifestDegraded string = "Degraded"
	// ManifestComplete reports whether the object has finished, so that it is no longer updated. It is set by condition rules.
	ManifestComplete string = "Complete"
)

// Reasons of conditions that rules make.
const (
	// ConditionRuleEvaluated is the reason when the rule evaluated to true or false.
	ConditionRuleEvaluated = "ConditionRuleEvaluated"
	// ConditionRuleExpressionError is the reason when an expression of the rule failed.
	ConditionRuleExpressionError = "ConditionRuleExpressionError"
	// ConditionRuleInvalid is the reason when the rule is invalid, so that it cannot be evaluated.
	ConditionRuleInvalid = "ConditionRuleInvalid"
	// ConditionRuleInternalError is the reason when an internal error prevented the evaluation of the rule.
	ConditionRuleInternalError = "ConditionRuleInternalError"
	// ConditionRulesAggregated is the reason when a condition of a work is aggregated from those of its objects.
	ConditionRulesAggregated = "ConditionRulesAggregated"
)

const (
	// ManifestWorkFinalizer is the finalizer that the agent removes from a ManifestWork after it has deleted the objects.
	ManifestWorkFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"
	// AppliedManifestWorkFinalizer is the finalizer that the agent removes from an AppliedManifestWork after its objects are gone.
	AppliedManifestWorkFinalizer = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
	// ManifestConfigSpecHashAnnotationKey is the annotation of objects that are applied with ignoreFields, and of works of add-ons. Its value is a
	// hash of the configuration.
	ManifestConfigSpecHashAnnotationKey = "open-cluster-management.io/config-spec-hash"
)

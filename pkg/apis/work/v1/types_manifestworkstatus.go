// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManifestWorkStatus is the observed state of a ManifestWork, of at most 512000 bytes.
type ManifestWorkStatus struct {
	// conditions say whether all objects were applied (Applied) and are there (Available), and that the work is being
	// deleted (Deleting). Conditions that rules make are here as well. At most 128.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// resourceStatus has the state of each object.
	// +optional
	ResourceStatus ManifestResourceStatus `json:"resourceStatus,omitempty"`
}

// ManifestResourceStatus has the state of each object of a work.
type ManifestResourceStatus struct {
	// manifests are the objects, at most 2048.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=2048
	Manifests []ManifestCondition `json:"manifests,omitempty"`
}

// ManifestCondition is the state of one object.
type ManifestCondition struct {
	// resourceMeta says which object it is. It is required.
	// +required
	ResourceMeta ManifestResourceMeta `json:"resourceMeta"`
	// statusFeedback has the fields that feedbackRules ask for.
	// +optional
	StatusFeedbacks StatusFeedbackResult `json:"statusFeedback,omitempty"`
	// conditions say whether the object was applied (Applied) and is there (Available), and whether its fields could be
	// read (StatusFeedbackSynced). Conditions that rules make are here as well. At most 128.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=128
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ManifestResourceMeta names an object of a work.
type ManifestResourceMeta struct {
	// ordinal is the index of the object in spec.workload.manifests, from 0 on. It is required.
	// +required
	// +k8s:validation:minimum=0
	Ordinal int32 `json:"ordinal"`
	// group is the API group, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Group string `json:"group"`
	// version is the API version, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Version string `json:"version"`
	// kind is the kind, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Kind string `json:"kind"`
	// resource is the plural of the kind, at most 253 characters. It is empty where the cluster does not know the kind.
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

// StatusFeedbackResult has fields of an object.
type StatusFeedbackResult struct {
	// values are the fields by name, at most 1024.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=1024
	Values []FeedbackValue `json:"values,omitempty"`
}

// FeedbackValue is a field of an object.
type FeedbackValue struct {
	// name is the name that a JSON path or the well-known rule has for it, 1 to 253 characters. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// fieldValue is its value. It is required.
	// +required
	Value FieldValue `json:"fieldValue"`
}

// FieldValue is the value of a field: the one of its fields that type names.
type FieldValue struct {
	// type is Integer, String, Boolean or JsonRaw. It is required.
	// +required
	Type ValueType `json:"type"`
	// integer is a number.
	// +optional
	Integer *int64 `json:"integer,omitempty"`
	// string is a text, at most 32768 characters.
	// +optional
	// +k8s:validation:maxLength=32768
	String *string `json:"string,omitempty"`
	// boolean is true or false.
	// +optional
	Boolean *bool `json:"boolean,omitempty"`
	// jsonRaw is a list or an object as JSON, at most 1024 characters.
	// +optional
	// +k8s:validation:maxLength=1024
	JsonRaw *string `json:"jsonRaw,omitempty"`
}

// ValueType is a type of values.
// +enum
type ValueType string

const (
	// Integer is a number.
	Integer ValueType = "Integer"
	// String is a text.
	String ValueType = "String"
	// Boolean is true or false.
	Boolean ValueType = "Boolean"
	// JsonRaw is a list or an object.
	JsonRaw ValueType = "JsonRaw"
)

// Types of conditions of works.
const (
	// WorkApplied is True when all objects were applied.
	WorkApplied string = "Applied"
	// WorkAvailable is True when all objects are there.
	WorkAvailable string = "Available"
	// WorkProgressing is made by rules: the objects are on the way to what they should be.
	WorkProgressing string = "Progressing"
	// WorkDegraded is made by rules: the objects do not get to what they should be.
	WorkDegraded string = "Degraded"
	// WorkComplete is made by rules: the objects have done what they are for, and are not updated any more.
	WorkComplete string = "Complete"
	// WorkDeleting is True while the agent deletes the objects of a work that was deleted.
	WorkDeleting string = "Deleting"
	// WorkContested is True while other programs undo again and again what the agent applies.
	WorkContested string = "Contested"
)

// Types of conditions of objects of works.
const (
	// ManifestApplied is True when the object was applied.
	ManifestApplied string = "Applied"
	// ManifestContested is True while another program undoes again and again what the agent applies.
	ManifestContested string = "Contested"
	// ManifestAdopted is True if the object existed before the work: the message says whether it is deleted with the work.
	ManifestAdopted string = "Adopted"
	// ManifestAvailable is True when the object is there.
	ManifestAvailable string = "Available"
	// ManifestProgressing is made by rules, as that of works.
	ManifestProgressing string = "Progressing"
	// ManifestDegraded is made by rules, as that of works.
	ManifestDegraded string = "Degraded"
	// ManifestComplete is made by rules: the object is not updated any more.
	ManifestComplete string = "Complete"
)

// Reasons of conditions that rules make.
const (
	// ConditionRuleEvaluated is the reason when the rule gave true or false.
	ConditionRuleEvaluated = "ConditionRuleEvaluated"
	// ConditionRuleExpressionError is the reason when an expression of the rule failed.
	ConditionRuleExpressionError = "ConditionRuleExpressionError"
	// ConditionRuleInvalid is the reason when the rule makes no sense.
	ConditionRuleInvalid = "ConditionRuleInvalid"
	// ConditionRuleInternalError is the reason when the rule could not be tried.
	ConditionRuleInternalError = "ConditionRuleInternalError"
	// ConditionRulesAggregated is the reason of a work's condition that is made of those of its objects.
	ConditionRulesAggregated = "ConditionRulesAggregated"
)

const (
	// ManifestWorkFinalizer keeps a work until its agent has deleted the objects.
	ManifestWorkFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"
	// AppliedManifestWorkFinalizer keeps an AppliedManifestWork until its objects are gone.
	AppliedManifestWorkFinalizer = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
	// ManifestConfigSpecHashAnnotationKey is an annotation of objects that are applied with ignoreFields, and of works of
	// add-ons: a hash of the configuration.
	ManifestConfigSpecHashAnnotationKey = "open-cluster-management.io/config-spec-hash"
)

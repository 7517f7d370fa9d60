// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// ManifestConfigOption configures how some objects of a work are updated, adopted and reported.
type ManifestConfigOption struct {
	// resourceIdentifier selects objects of the work. In name and namespace, * matches any number of characters. Required.
	// +required
	ResourceIdentifier ResourceIdentifier `json:"resourceIdentifier"`
	// feedbackRules select the fields of the objects that are reported in the status, at most 16 rules. By default, no fields are reported.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	FeedbackRules []FeedbackRule `json:"feedbackRules,omitempty"`
	// feedbackScrapeType is Poll (the default), to read the fields periodically, or Watch, to read them when they change.
	// +optional
	// +default="Poll"
	FeedbackScrapeType FeedbackScrapeType `json:"feedbackScrapeType,omitempty"`
	// updateStrategy defines how the objects are created and updated. The default type is Update.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
	// conditionRules derive conditions from the state of the objects: at most 64 rules, one for each condition type.
	// +optional
	// +listType=map
	// +listMapKey=condition
	// +k8s:validation:maxItems=64
	ConditionRules []ConditionRule `json:"conditionRules,omitempty"`
	// adoption defines what happens if an object that no work created exists when the manifest is first applied. With Always, the object is adopted:
	// it is updated according to updateStrategy, and deleted with the work. With IfNoDiff, it is adopted only if the manifest changes nothing in it.
	// With Never, it is not changed, and the manifest is not applied. If the field is not set, the object is adopted as with Always, but a Namespace
	// is not deleted with the work. The condition Adopted of the manifest reports an adoption.
	// +optional
	Adoption AdoptionPolicy `json:"adoption,omitempty"`
}

// AdoptionPolicy defines what happens to an object that existed before its work.
// +enum
type AdoptionPolicy string

const (
	// AdoptAlways adopts the object.
	AdoptAlways AdoptionPolicy = "Always"
	// AdoptIfNoDiff adopts the object if the manifest changes nothing in it.
	AdoptIfNoDiff AdoptionPolicy = "IfNoDiff"
	// AdoptNever does not change the object.
	AdoptNever AdoptionPolicy = "Never"
)

// FeedbackScrapeType defines when reported fields are read.
// +enum
type FeedbackScrapeType string

const (
	// FeedbackPollType reads the fields periodically.
	FeedbackPollType FeedbackScrapeType = "Poll"
	// FeedbackWatchType reads the fields when they change.
	FeedbackWatchType FeedbackScrapeType = "Watch"
)

// FeedbackRule selects fields of an object that are reported.
type FeedbackRule struct {
	// type is WellKnownStatus or JSONPaths. With WellKnownStatus, the agent reports the fields that it knows for the kind, such as the replicas of a
	// Deployment. With JSONPaths, it reports the fields in jsonPaths. Required.
	// +required
	Type FeedBackType `json:"type"`
	// jsonPaths are the fields to report, at most 64, with unique names. Used only if type is JSONPaths.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=64
	JsonPaths []JsonPath `json:"jsonPaths,omitempty"`
}

// FeedBackType is a type of feedback rules.
// +enum
type FeedBackType string

const (
	// WellKnownStatusType reports the fields that the agent knows for the kind.
	WellKnownStatusType FeedBackType = "WellKnownStatus"
	// JSONPathsType reports the fields in jsonPaths.
	JSONPathsType FeedBackType = "JSONPaths"
)

// JsonPath is a field of an object that is reported.
type JsonPath struct {
	// name is the name of the value in the status, 1 to 253 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// version is the API version of the objects that the path applies to, at most 63 characters. Fields of objects of other versions are not
	// reported. The default is the version of the manifest.
	// +optional
	// +k8s:validation:maxLength=63
	Version string `json:"version,omitempty"`
	// path is a JSONPath as in kubectl get -o jsonpath, such as .status.readyReplicas, 1 to 1024 characters. It must select one number, string or
	// boolean. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=1024
	Path string `json:"path"`
}

// ConditionRule derives a condition from the state of an object. The condition is reported for the object and, aggregated over all objects that have
// it, for the work.
type ConditionRule struct {
	// condition is the type of the condition, 1 to 316 characters. It cannot be Applied, Deleting, StatusFeedbackSynced or StatusTruncated, which the
	// agent sets. Some types have a meaning to controllers: an object whose condition Complete is True is no longer updated, and rollouts depend on
	// Progressing and Degraded. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=316
	Condition string `json:"condition"`
	// type is WellKnownConditions or CEL. With WellKnownConditions, the agent applies its own rule for the condition and the kind, such as Complete
	// of a Job. With CEL, the condition is True if all celExpressions are true. Required.
	// +required
	Type ConditionRuleType `json:"type"`
	// celExpressions are CEL expressions that evaluate to a boolean: at most 16, each of 1 to 4096 characters. The variable object is the object. Used
	// only if type is CEL. A write is rejected if an expression is invalid or has another type, or if its new expressions have more than 65536 bytes
	// in total; an unknown function causes a warning.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	// +k8s:validation:items:minLength=1
	// +k8s:validation:items:maxLength=4096
	CelExpressions []string `json:"celExpressions,omitempty"`
	// message is the message of the condition, at most 4096 characters.
	// +optional
	// +k8s:validation:maxLength=4096
	Message string `json:"message,omitempty"`
	// messageExpression is a CEL expression that evaluates to the message of the condition, at most 4096 bytes. The variables are object, and result,
	// which is true if the condition is True. If it evaluates to a non-empty string, it takes precedence over message.
	// +optional
	// +k8s:validation:maxLength=4096
	MessageExpression string `json:"messageExpression,omitempty"`
}

// ConditionRuleType is a type of condition rules.
// +enum
type ConditionRuleType string

const (
	// WellKnownConditionsType applies the agent's rule for the condition and the kind.
	WellKnownConditionsType ConditionRuleType = "WellKnownConditions"
	// CelConditionExpressionsType evaluates the expressions in celExpressions.
	CelConditionExpressionsType ConditionRuleType = "CEL"
)

// UpdateStrategy defines how an object is created and updated.
type UpdateStrategy struct {
	// type is Update, Replace, CreateOnly, ServerSideApply or ReadOnly. With Update (the default), the agent sets the fields of the manifest, even if
	// other managers own them, removes fields that were removed from the manifest, and preserves all other fields. With Replace, it removes all
	// fields that are not in the manifest, except labels, annotations and the status, as the agent of Open Cluster Management does for Update. With
	// CreateOnly, it creates the object but does not update it. With ServerSideApply, it applies the object, and a field of another manager is a
	// conflict unless serverSideApply.force is true. With ReadOnly, it does not create, change or delete the object, but only reads it for
	// feedbackRules and conditionRules.
	// +optional
	// +default="Update"
	Type UpdateStrategyType `json:"type,omitempty"`
	// serverSideApply configures server-side apply. Used only if type is ServerSideApply.
	// +optional
	ServerSideApply *ServerSideApplyConfig `json:"serverSideApply,omitempty"`
}

// UpdateStrategyType is a way to create and update an object.
// +enum
type UpdateStrategyType string

const (
	// UpdateStrategyTypeUpdate sets the fields of the manifest, and removes fields that were removed from it.
	UpdateStrategyTypeUpdate UpdateStrategyType = "Update"
	// UpdateStrategyTypeReplace replaces the content of the object.
	UpdateStrategyTypeReplace UpdateStrategyType = "Replace"
	// UpdateStrategyTypeCreateOnly creates the object, and does not update it.
	UpdateStrategyTypeCreateOnly UpdateStrategyType = "CreateOnly"
	// UpdateStrategyTypeServerSideApply applies the manifest, and preserves the fields of other managers unless force is true.
	UpdateStrategyTypeServerSideApply UpdateStrategyType = "ServerSideApply"
	// UpdateStrategyTypeReadOnly only reads the object.
	UpdateStrategyTypeReadOnly UpdateStrategyType = "ReadOnly"
)

// DefaultFieldManager is the default field manager of the agent.
const DefaultFieldManager = "work-agent"

// ServerSideApplyConfig configures server-side apply of a manifest.
type ServerSideApplyConfig struct {
	// force defines whether the agent takes over conflicting fields of other managers. The default is false: if another manager owns a field with a
	// different value, the manifest is not applied, and the condition Applied is False.
	// +optional
	Force bool `json:"force"`
	// fieldManager is the field manager of the manifest, at most 128 characters. It must start with work-agent, which is the default.
	// +optional
	// +default="work-agent"
	// +k8s:validation:maxLength=128
	// +k8s:validation:pattern="^work-agent"
	FieldManager string `json:"fieldManager,omitempty"`
	// ignoreFields are fields of the manifest that are not applied: at most 2 entries, one for each condition.
	// +optional
	// +listType=map
	// +listMapKey=condition
	// +k8s:validation:maxItems=2
	IgnoreFields []IgnoreField `json:"ignoreFields,omitempty"`
}

// IgnoreField contains fields of a manifest that are not applied. At least one of its lists must not be empty.
type IgnoreField struct {
	// condition defines when the fields are ignored. With OnSpokePresent (the default), they are ignored while the object exists, so that they are
	// only applied when it is created. With OnSpokeChange, they are ignored after another client has changed them in the managed cluster.
	// +optional
	// +default="OnSpokePresent"
	Condition IgnoreFieldsCondition `json:"condition,omitempty"`
	// jsonPaths are JSONPaths of fields as in kubectl get -o jsonpath, such as .spec.replicas: at most 128, each of 1 to 1024 characters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	// +k8s:validation:items:minLength=1
	// +k8s:validation:items:maxLength=1024
	JSONPaths []string `json:"jsonPaths,omitempty"`
	// jsonPointers are JSON pointers (RFC 6901) to fields, such as /spec/replicas: at most 128, each of 1 to 1024 characters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	// +k8s:validation:items:minLength=1
	// +k8s:validation:items:maxLength=1024
	JSONPointers []string `json:"jsonPointers,omitempty"`
	// jqPathExpressions are jq path expressions of fields, such as .spec.containers[] | select(.name == "a") | .image: at most 128, each of 1 to 1024
	// characters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	// +k8s:validation:items:minLength=1
	// +k8s:validation:items:maxLength=1024
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}

// IgnoreFieldsCondition defines when fields are ignored.
// +enum
type IgnoreFieldsCondition string

const (
	// IgnoreFieldsConditionOnSpokeChange ignores fields after another client has changed them.
	IgnoreFieldsConditionOnSpokeChange IgnoreFieldsCondition = "OnSpokeChange"
	// IgnoreFieldsConditionOnSpokePresent ignores fields while the object exists.
	IgnoreFieldsConditionOnSpokePresent IgnoreFieldsCondition = "OnSpokePresent"
)

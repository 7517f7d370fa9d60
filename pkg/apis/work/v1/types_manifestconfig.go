// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// ManifestConfigOption says how some objects of a work are updated, and what of them is reported.
type ManifestConfigOption struct {
	// resourceIdentifier says which objects these are: those of the work that it names. In name and namespace, * stands
	// for any characters. It is required.
	// +required
	ResourceIdentifier ResourceIdentifier `json:"resourceIdentifier"`
	// feedbackRules select the fields of the objects that are reported in the status, at most 16. By default no field is reported.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	FeedbackRules []FeedbackRule `json:"feedbackRules,omitempty"`
	// feedbackScrapeType is when fields are read. Poll (the default): now and then. Watch: when they change.
	// +optional
	// +default="Poll"
	FeedbackScrapeType FeedbackScrapeType `json:"feedbackScrapeType,omitempty"`
	// updateStrategy says how the objects are updated.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
	// conditionRules make conditions of the state of the objects, at most 64, one for each condition.
	// +optional
	// +listType=map
	// +listMapKey=condition
	// +k8s:validation:maxItems=64
	ConditionRules []ConditionRule `json:"conditionRules,omitempty"`
	// adoption says what becomes of an object that exists when the manifest is applied first, and that no work has created. Always: it is adopted: updated
	// as updateStrategy says, and deleted with the work. IfNoDiff: it is adopted only if the manifest changes nothing in it. Never: it is left alone,
	// and the manifest is not applied. Without it an object is adopted, too, but a Namespace stays when the work is deleted. The
	// condition Adopted of the manifest reports an adoption.
	// +optional
	Adoption AdoptionPolicy `json:"adoption,omitempty"`
}

// AdoptionPolicy says what becomes of an object that existed before its work.
// +enum
type AdoptionPolicy string

const (
	// AdoptAlways adopts the object.
	AdoptAlways AdoptionPolicy = "Always"
	// AdoptIfNoDiff adopts the object if the manifest changes nothing in it.
	AdoptIfNoDiff AdoptionPolicy = "IfNoDiff"
	// AdoptNever leaves the object alone.
	AdoptNever AdoptionPolicy = "Never"
)

// FeedbackScrapeType is when fields are read.
// +enum
type FeedbackScrapeType string

const (
	// FeedbackPollType reads them now and then.
	FeedbackPollType FeedbackScrapeType = "Poll"
	// FeedbackWatchType reads them when they change.
	FeedbackWatchType FeedbackScrapeType = "Watch"
)

// FeedbackRule says which fields are reported.
type FeedbackRule struct {
	// type is WellKnownStatus: the usual ones of a kind that the agent knows, such as the replicas of a Deployment.
	// JSONPaths: those in jsonPaths. It is required.
	// +required
	Type FeedBackType `json:"type"`
	// jsonPaths are the fields, at most 64, by name. Only for the type JSONPaths.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=64
	JsonPaths []JsonPath `json:"jsonPaths,omitempty"`
}

// FeedBackType says which fields are reported.
// +enum
type FeedBackType string

const (
	// WellKnownStatusType reports the usual fields of a kind.
	WellKnownStatusType FeedBackType = "WellKnownStatus"
	// JSONPathsType reports the fields that jsonPaths name.
	JSONPathsType FeedBackType = "JSONPaths"
)

// JsonPath is a field that is reported.
type JsonPath struct {
	// name is the name of the value in the status, 1 to 253 characters. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// version is the API version of the object in which the path is looked up, at most 63 characters. In an object of
	// another version the field is not reported. The default is the version of the manifest.
	// +optional
	// +k8s:validation:maxLength=63
	Version string `json:"version,omitempty"`
	// path is a path as kubectl has it with -o jsonpath, such as .status.readyReplicas: 1 to 1024 characters. It has to
	// lead to one number, text or boolean. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=1024
	Path string `json:"path"`
}

// ConditionRule makes a condition of the state of an object. The condition is shown for the object, and, from all of its
// objects together, for the work.
type ConditionRule struct {
	// condition is the type of the condition, 1 to 316 characters: not Applied, Deleting, StatusFeedbackSynced or StatusTruncated, which
	// the agent sets. Some types have an effect: an object that is Complete is no longer updated, and rollouts depend on Progressing and
	// Degraded. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=316
	Condition string `json:"condition"`
	// type is WellKnownConditions: the rule that the agent has for the condition and the kind, such as Complete of a Job.
	// CEL: the condition is True if all celExpressions are. It is required.
	// +required
	Type ConditionRuleType `json:"type"`
	// celExpressions are expressions in CEL, each of which gives true or false: at most 16, of 1 to 4096 bytes. The object
	// is the variable object. Only for the type CEL. What is no CEL, or gives something else, is refused; a function that is not
	// known is warned of. A write has at most 65536 bytes of expressions that are new.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	CelExpressions []string `json:"celExpressions,omitempty"`
	// message is the message of the condition, at most 4096 characters.
	// +optional
	// +k8s:validation:maxLength=4096
	Message string `json:"message,omitempty"`
	// messageExpression is an expression in CEL that gives the message of the condition, at most 4096 bytes. Its variables
	// are object, and result: whether the condition is True. If it gives a text that is not empty, message does not count.
	// +optional
	// +k8s:validation:maxLength=4096
	MessageExpression string `json:"messageExpression,omitempty"`
}

// ConditionRuleType says how a condition is made.
// +enum
type ConditionRuleType string

const (
	// WellKnownConditionsType takes the agent's rule for the kind and the condition.
	WellKnownConditionsType ConditionRuleType = "WellKnownConditions"
	// CelConditionExpressionsType takes the expressions of the rule.
	CelConditionExpressionsType ConditionRuleType = "CEL"
)

// UpdateStrategy says how an object is updated.
type UpdateStrategy struct {
	// type is how the object is created and updated. Update (the default): the fields of the manifest are set, also
	// those that other managers own, and those that have left the manifest are removed; all other fields stay. Replace: fields that the
	// manifest does not have are removed, but labels, annotations and the status, as Open Cluster Management's agent does
	// it for Update. CreateOnly: the object is created and not updated. ServerSideApply: it is applied, and a field of
	// another manager is a conflict, or taken over with force. ReadOnly: it is neither created nor changed nor deleted,
	// only read for feedbackRules and conditionRules.
	// +optional
	// +default="Update"
	Type UpdateStrategyType `json:"type,omitempty"`
	// serverSideApply says how the object is applied. Only for the type ServerSideApply.
	// +optional
	ServerSideApply *ServerSideApplyConfig `json:"serverSideApply,omitempty"`
}

// UpdateStrategyType says how an object is updated.
// +enum
type UpdateStrategyType string

const (
	// UpdateStrategyTypeUpdate sets the fields of the manifest, and removes those that left it.
	UpdateStrategyTypeUpdate UpdateStrategyType = "Update"
	// UpdateStrategyTypeReplace replaces the content of the object.
	UpdateStrategyTypeReplace UpdateStrategyType = "Replace"
	// UpdateStrategyTypeCreateOnly makes an object and does not update it.
	UpdateStrategyTypeCreateOnly UpdateStrategyType = "CreateOnly"
	// UpdateStrategyTypeServerSideApply applies the manifest, and leaves alone what others own.
	UpdateStrategyTypeServerSideApply UpdateStrategyType = "ServerSideApply"
	// UpdateStrategyTypeReadOnly only reads the object.
	UpdateStrategyTypeReadOnly UpdateStrategyType = "ReadOnly"
)

// DefaultFieldManager is the name under which manifests are applied.
const DefaultFieldManager = "work-agent"

// ServerSideApplyConfig says how a manifest is applied.
type ServerSideApplyConfig struct {
	// force takes fields from other managers. The default is that a field of another manager is a conflict: nothing is
	// applied, and the condition Applied is False.
	// +optional
	Force bool `json:"force"`
	// fieldManager is the name under which the manifest is applied, at most 128 characters. It begins with work-agent,
	// which is the default.
	// +optional
	// +default="work-agent"
	// +k8s:validation:maxLength=128
	// +k8s:validation:pattern="^work-agent"
	FieldManager string `json:"fieldManager,omitempty"`
	// ignoreFields are fields of the manifest that are not applied, one entry for each condition.
	// +optional
	// +listType=map
	// +listMapKey=condition
	// +k8s:validation:maxItems=2
	IgnoreFields []IgnoreField `json:"ignoreFields,omitempty"`
}

// IgnoreField has fields of a manifest that are not applied. At least one of its lists has an entry.
type IgnoreField struct {
	// condition is when they are ignored. OnSpokePresent (the default): while the object exists, so that they only apply when it is
	// created. OnSpokeChange: after another client has changed them in the managed cluster.
	// +optional
	// +default="OnSpokePresent"
	Condition IgnoreFieldsCondition `json:"condition,omitempty"`
	// jsonPaths are fields as kubectl has them with -o jsonpath, such as .spec.replicas: at most 128, of 1 to 1024
	// characters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	JSONPaths []string `json:"jsonPaths,omitempty"`
	// jsonPointers are fields as in RFC 6901, such as /spec/replicas: at most 128, of 1 to 1024 characters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	JSONPointers []string `json:"jsonPointers,omitempty"`
	// jqPathExpressions are fields as paths of jq, such as .spec.containers[] | select(.name == "a") | .image: at most
	// 128, of 1 to 1024 characters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}

// IgnoreFieldsCondition is when fields are not applied.
// +enum
type IgnoreFieldsCondition string

const (
	// IgnoreFieldsConditionOnSpokeChange ignores fields that another client has changed.
	IgnoreFieldsConditionOnSpokeChange IgnoreFieldsCondition = "OnSpokeChange"
	// IgnoreFieldsConditionOnSpokePresent leaves out fields of an object that is there.
	IgnoreFieldsConditionOnSpokePresent IgnoreFieldsCondition = "OnSpokePresent"
)

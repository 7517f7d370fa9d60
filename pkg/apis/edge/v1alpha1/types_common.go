// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Property is a fact or an intent that constraints are about.
type Property struct {
	// name of the property, 1 to 128 characters. Letters, digits and the characters _ - / ! ? + ~ ' . are allowed, and letters of other
	// scripts. It does not begin as a number does, and is not "in". Each name is there once in a list. Properties that the hub makes
	// itself, such as openhorizon.arch and openhorizon.service.url, are taken out of what users write, with a warning.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=128
	Name string `json:"name"`
	// value is a text of at most 1024 characters, a number, or true or false.
	Value Value `json:"value"`
	// type is how value is compared: string, version (1 to 3 numbers with dots between them, such as 1.2.0), boolean, int, float, or "list
	// of strings" (a text with commas between the entries). The default is the JSON type of value.
	// +optional
	// +k8s:validation:maxLength=16
	Type PropertyType `json:"type,omitempty"`
}

// PropertyType is how the value of a property is compared.
type PropertyType string

const (
	// PropertyString is text.
	PropertyString PropertyType = "string"
	// PropertyVersion is a version, which can be in a range.
	PropertyVersion PropertyType = "version"
	// PropertyBoolean is true or false.
	PropertyBoolean PropertyType = "boolean"
	// PropertyInt is a number without fraction.
	PropertyInt PropertyType = "int"
	// PropertyFloat is a number.
	PropertyFloat PropertyType = "float"
	// PropertyList is a text with commas between its entries.
	PropertyList PropertyType = "list of strings"
)

// Policy has the properties of one side of a deployment, and the constraints on the other side.
type Policy struct {
	// properties are the values that constraints of the other side are evaluated with, at most 128, each name once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=128
	Properties []Property `json:"properties,omitempty"`
	// constraints are required of the other side, all of them: at most 64 expressions of at most 4096 characters each, such as
	// 'purpose == "retail" AND openhorizon.memory > 2048'. A property that is not there makes every comparison false, != too.
	// AND binds tighter than OR. No constraints are true.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	// +k8s:validation:items:maxLength=4096
	Constraints []string `json:"constraints,omitempty"`
}

// ServiceVersion is one version of a service that may be deployed.
type ServiceVersion struct {
	// version of the service, exactly as spec.version of the EdgeService has it, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Version string `json:"version"`
	// priority says which version is tried first. Versions without it come last, in the order of the list.
	// +optional
	Priority *Priority `json:"priority,omitempty"`
}

// Priority is the place of a version among several.
type Priority struct {
	// priority_value is the place: the lowest is tried first. 1 to 1000, each once among the versions of a service.
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=1000
	PriorityValue int32 `json:"priority_value"`
	// retries is how often a version that does not start is tried again before the next one is, 0 to 100. The default is 0.
	// +optional
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=100
	Retries int32 `json:"retries,omitempty"`
	// retry_durations is the time in which the retries have to happen, in seconds, 0 to 604800 (a week). The default is 0: no time
	// is set.
	// +optional
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=604800
	RetryDurations int32 `json:"retry_durations,omitempty"`
	// verified_durations is how long a version has to run until it counts as started, in seconds, 0 to 604800 (a week). The default is 0:
	// as soon as the cluster says that it runs.
	// +optional
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=604800
	VerifiedDurations int32 `json:"verified_durations,omitempty"`
}

// ServiceInput sets variables of a service.
type ServiceInput struct {
	// serviceOrgid is the namespace of the service. The default is the namespace of the object that has the input.
	// +optional
	// +k8s:validation:maxLength=63
	ServiceOrgid string `json:"serviceOrgid,omitempty"`
	// serviceUrl is the name of the service, as spec.url of the EdgeService has it, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ServiceUrl string `json:"serviceUrl"`
	// serviceArch is the architecture that the variables are for. "" (the default) and "*" are all.
	// +optional
	// +k8s:validation:maxLength=63
	ServiceArch string `json:"serviceArch,omitempty"`
	// serviceVersionRange are the versions that the variables are for, such as [1.0.0,2.0.0) or [1.0.0,INFINITY). A single version is
	// the range from there on. The default is all versions. At most 128 characters.
	// +optional
	// +k8s:validation:maxLength=128
	ServiceVersionRange string `json:"serviceVersionRange,omitempty"`
	// inputs are the variables, at most 128, each name once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=128
	Inputs []Input `json:"inputs,omitempty"`
}

// Input is the value of a variable. It is no place for secrets: users who may read the object can read it.
type Input struct {
	// name of the variable, as the service has it in userInput, 1 to 128 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=128
	Name string `json:"name"`
	// value of the variable, of the type that the service says: a text of at most 4096 characters, a number, true or false, or a list of
	// at most 128 texts.
	Value Value `json:"value"`
}

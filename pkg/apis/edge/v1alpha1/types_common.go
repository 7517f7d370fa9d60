// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Property is a fact or an intent that constraints refer to.
type Property struct {
	// name is the name of the property, 1 to 128 characters. It may contain letters of any script, digits and the characters _ - / ! ? + ~ ' .
	// and must not begin like a number or be "in". Each name must be unique in a list. Built-in properties, such as openhorizon.arch and
	// openhorizon.service.url, are removed from the specs of users, with a warning.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=128
	Name string `json:"name"`
	// value is a string of at most 1024 characters, a number or a boolean.
	Value Value `json:"value"`
	// type defines how value is compared: string, version (1 to 3 numbers separated by dots, such as 1.2.0), boolean, int, float, or "list of
	// strings" (a string of items separated by commas). The default is the JSON type of value.
	// +optional
	// +k8s:validation:maxLength=16
	Type PropertyType `json:"type,omitempty"`
}

// PropertyType defines how the value of a property is compared.
type PropertyType string

const (
	// PropertyString is a string.
	PropertyString PropertyType = "string"
	// PropertyVersion is a version, which constraints can compare with a range.
	PropertyVersion PropertyType = "version"
	// PropertyBoolean is true or false.
	PropertyBoolean PropertyType = "boolean"
	// PropertyInt is a number without a fraction.
	PropertyInt PropertyType = "int"
	// PropertyFloat is a number.
	PropertyFloat PropertyType = "float"
	// PropertyList is a string of items separated by commas.
	PropertyList PropertyType = "list of strings"
)

// Policy contains the properties of one side of a deployment, and its constraints on the other side.
type Policy struct {
	// properties are the properties with which the constraints of the other side are evaluated, at most 128, each name once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=128
	Properties []Property `json:"properties,omitempty"`
	// constraints are expressions that the other side must satisfy, all of them: at most 64, each of at most 4096 characters, such as 'purpose
	// == "retail" AND openhorizon.memory > 2048'. A comparison with a property that does not exist is false, even with !=. AND has a higher
	// precedence than OR. An empty list is satisfied by every other side.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	// +k8s:validation:items:maxLength=4096
	Constraints []string `json:"constraints,omitempty"`
}

// ServiceVersion is a version of a service that may be deployed.
type ServiceVersion struct {
	// version is the version of the service, exactly as in spec.version of the EdgeService, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Version string `json:"version"`
	// priority defines the order in which versions are tried. Versions without a priority come last, in the order of the list.
	// +optional
	Priority *Priority `json:"priority,omitempty"`
}

// Priority is the priority of a version among the versions of a service, and how often it is retried.
type Priority struct {
	// priority_value is the priority, 1 to 1000: the version with the lowest value is tried first. It must be unique among the versions of a
	// service.
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=1000
	PriorityValue int32 `json:"priority_value"`
	// retries is the number of times that a version that does not start is retried before the next version is tried, 0 to 100. The default is
	// 0.
	// +optional
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=100
	Retries int32 `json:"retries,omitempty"`
	// retry_durations is the time window of the retries in seconds, 0 to 604800 (a week). The default is 0: no limit.
	// +optional
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=604800
	RetryDurations int32 `json:"retry_durations,omitempty"`
	// verified_durations is the time in seconds that a version must run before it counts as started, 0 to 604800 (a week). The default is 0:
	// it counts as started as soon as the cluster reports that it runs.
	// +optional
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=604800
	VerifiedDurations int32 `json:"verified_durations,omitempty"`
}

// ServiceInput sets variables of a service.
type ServiceInput struct {
	// serviceOrgid is the namespace of the service. The default is the namespace of the object that contains the input. At most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	ServiceOrgid string `json:"serviceOrgid,omitempty"`
	// serviceUrl is the name of the service, as in spec.url of the EdgeService, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ServiceUrl string `json:"serviceUrl"`
	// serviceArch is the architecture to which the variables apply. "" (the default) and "*" mean all architectures.
	// +optional
	// +k8s:validation:maxLength=63
	ServiceArch string `json:"serviceArch,omitempty"`
	// serviceVersionRange is the range of versions to which the variables apply, such as [1.0.0,2.0.0) or [1.0.0,INFINITY). A single version
	// means that version and all later ones. The default is all versions. At most 128 characters.
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

// Input is the value of a variable. It must not contain secrets: all users who may read the object can read it.
type Input struct {
	// name is the name of the variable, as in userInput of the service, 1 to 128 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=128
	Name string `json:"name"`
	// value is the value of the variable, of the type that the service declares: a string of at most 4096 characters, a number, a boolean, or
	// a list of at most 128 strings.
	Value Value `json:"value"`
}

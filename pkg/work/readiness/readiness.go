// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness says whether an object does what it was applied for, by what is known of its kind: a Deployment is ready when its
// replicas are those of its last spec and available, a Job when it has succeeded. An object that is there is available; that says less.
package readiness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// State is how far an object has come.
type State string

const (
	// Ready is an object that does what it is for. So is one of a kind about which nothing is known, and that does not say otherwise.
	Ready State = "Ready"
	// Waiting is an object that is not there yet, and may get there.
	Waiting State = "Waiting"
	// Failed is an object that does not get there unless somebody changes something.
	Failed State = "Failed"
)

type answer struct {
	state State
	why   string
}

func ready(format string, args ...any) answer   { return answer{Ready, fmt.Sprintf(format, args...)} }
func waiting(format string, args ...any) answer { return answer{Waiting, fmt.Sprintf(format, args...)} }
func failed(format string, args ...any) answer  { return answer{Failed, fmt.Sprintf(format, args...)} }

var kinds = map[schema.GroupKind]func(object) answer{
	{Group: "apps", Kind: "Deployment"}:                               deployment,
	{Group: "apps", Kind: "StatefulSet"}:                              statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:                                daemonSet,
	{Group: "batch", Kind: "Job"}:                                     job,
	{Kind: "Pod"}:                                                     pod,
	{Kind: "PersistentVolumeClaim"}:                                   claim,
	{Kind: "Service"}:                                                 service,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definition,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiService,
}

// Of is the state of an object as it is in the cluster, and a sentence about it.
func Of(u *unstructured.Unstructured) (State, string) {
	if u == nil || u.Object == nil {
		return Waiting, "the object is not there"
	}
	if u.GetDeletionTimestamp() != nil {
		return Waiting, "it is being deleted"
	}
	o := object{u.Object}
	// What a status says of another generation is about another spec.
	generation := o.count(0, "metadata", "generation")
	if observed, ok := o.number("status", "observedGeneration"); ok && observed < generation {
		return Waiting, fmt.Sprintf("its controller has seen generation %d, and not yet %d", observed, generation)
	}
	of := kinds[u.GroupVersionKind().GroupKind()]
	if of == nil {
		of = other
	}
	a := of(o)
	return a.state, a.why
}

// object is read with care: whatever is not as it should be counts as not there.
type object struct{ fields map[string]any }

func (o object) value(path ...string) (any, bool) {
	var value any = o.fields
	for _, name := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = fields[name]; !ok {
			return nil, false
		}
	}
	return value, true
}

func (o object) number(path ...string) (int64, bool) {
	value, _ := o.value(path...)
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

// count is a number, or what it is by default.
func (o object) count(otherwise int64, path ...string) int64 {
	if n, ok := o.number(path...); ok {
		return n
	}
	return otherwise
}

func (o object) text(path ...string) string {
	value, _ := o.value(path...)
	text, _ := value.(string)
	return text
}

func (o object) list(path ...string) []any {
	value, _ := o.value(path...)
	list, _ := value.([]any)
	return list
}

// condition is one of the status; without it, its status is "".
func (o object) condition(name string) (status, reason, message string) {
	for _, item := range o.list("status", "conditions") {
		fields, _ := item.(map[string]any)
		c := object{fields}
		if c.text("type") == name {
			return c.text("status"), c.text("reason"), c.text("message")
		}
	}
	return "", "", ""
}

// because is a reason with its message, as far as they are there.
func because(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return "no reason is given"
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}

// other is a kind about which nothing is known. Only what most kinds mean by these conditions is taken from it.
func other(o object) answer {
	for _, name := range []string{"Ready", "Available"} {
		switch status, reason, message := o.condition(name); status {
		case "True":
			return ready("condition %s is True", name)
		case "False", "Unknown":
			return waiting("condition %s is %s: %s", name, status, because(reason, message))
		}
	}
	return ready("it is there")
}

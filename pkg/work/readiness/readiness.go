// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness determines whether an object is ready, according to its kind: a Deployment is ready when its replicas are those of its last spec
// and available, a Job when it has succeeded. In contrast, an object is available as soon as it exists.
package readiness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// State is the state of an object.
type State string

const (
	// Ready means that the object does what it is for. This includes objects of unknown kinds that do not report otherwise.
	Ready State = "Ready"
	// Waiting means that the object is not ready yet, and may become ready.
	Waiting State = "Waiting"
	// Failed means that the object does not become ready unless a user or program changes something.
	Failed State = "Failed"
)

type result struct {
	state State
	why   string
}

func ready(format string, args ...any) result   { return result{Ready, fmt.Sprintf(format, args...)} }
func waiting(format string, args ...any) result { return result{Waiting, fmt.Sprintf(format, args...)} }
func failed(format string, args ...any) result  { return result{Failed, fmt.Sprintf(format, args...)} }

var kinds = map[schema.GroupKind]func(fieldReader) result{
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

// Of returns the state of an object in the cluster, and a sentence about it.
func Of(u *unstructured.Unstructured) (State, string) {
	if u == nil || u.Object == nil {
		return Waiting, "the object does not exist"
	}
	if u.GetDeletionTimestamp() != nil {
		return Waiting, "it is being deleted"
	}
	o := fieldReader{u.Object}
	// A status for a different generation is about a different spec.
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

// fieldReader reads fields of an object. A value of an unexpected type counts as missing.
type fieldReader struct{ fields map[string]any }

func (o fieldReader) value(path ...string) (any, bool) {
	var value any = o.fields
	for _, name := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		value, ok = fields[name]
		if !ok {
			return nil, false
		}
	}
	return value, true
}

func (o fieldReader) number(path ...string) (int64, bool) {
	value, _ := o.value(path...)
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

// count returns a number, or the given default.
func (o fieldReader) count(otherwise int64, path ...string) int64 {
	if n, ok := o.number(path...); ok {
		return n
	}
	return otherwise
}

func (o fieldReader) text(path ...string) string {
	value, _ := o.value(path...)
	text, _ := value.(string)
	return text
}

func (o fieldReader) list(path ...string) []any {
	value, _ := o.value(path...)
	list, _ := value.([]any)
	return list
}

// condition returns a condition of the status; if it does not exist, status is "".
func (o fieldReader) condition(name string) (status, reason, message string) {
	for _, item := range o.list("status", "conditions") {
		fields, _ := item.(map[string]any)
		c := fieldReader{fields}
		if c.text("type") == name {
			return c.text("status"), c.text("reason"), c.text("message")
		}
	}
	return "", "", ""
}

// because formats a reason and a message, either of which may be empty.
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

// other is for unknown kinds. It only uses conditions that have the same meaning for most kinds.
func other(o fieldReader) result {
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

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package feedback reads fields of objects for the status of their work.
package feedback

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/jsonpath"
	"github.com/clusterhub/clusterhub/pkg/work/readable"
)

const (
	// MaxJSONRaw is the maximum length of a list or object, as JSON, in bytes. It is the limit of the API.
	MaxJSONRaw = 1024
	// MaxText is the maximum length of a text, in bytes.
	MaxText = 16 << 10
	// MaxTotal is the maximum length of all values of an object with their names, in bytes.
	MaxTotal = 64 << 10
	// maxErrors is the maximum number of errors that are reported for one object.
	maxErrors = 10
)

// Options are set by flags of the agent.
type Options struct {
	// Raw makes Read return lists, objects and fractions as JSON; without it, they are errors.
	Raw bool
	// MaxJSONRaw is the maximum length of these, if it is less than the constant MaxJSONRaw and not 0.
	MaxJSONRaw int
}

func (o Options) maxJSONRaw() int {
	if o.MaxJSONRaw > 0 {
		return min(o.MaxJSONRaw, MaxJSONRaw)
	}
	return MaxJSONRaw
}

type path struct{ name, path string }

// wellKnown maps the kinds of the type WellKnownStatus to their fields, in the order in which these are reported.
var wellKnown = map[schema.GroupVersionKind][]path{
	{Group: "apps", Version: "v1", Kind: "Deployment"}: {
		{"ReadyReplicas", ".status.readyReplicas"},
		{"Replicas", ".status.replicas"},
		{"AvailableReplicas", ".status.availableReplicas"},
	},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}: {
		{"NumberReady", ".status.numberReady"},
		{"DesiredNumberScheduled", ".status.desiredNumberScheduled"},
		{"NumberAvailable", ".status.numberAvailable"},
	},
	{Group: "batch", Version: "v1", Kind: "Job"}: {
		{"JobComplete", `.status.conditions[?(@.type=="Complete")].status`},
		{"JobSucceeded", ".status.succeeded"},
	},
	{Version: "v1", Kind: "Pod"}: {
		{"PodReady", `.status.conditions[?(@.type=="Ready")].status`},
		{"PodPhase", ".status.phase"},
	},
}

// IsWellKnown reports whether the type WellKnownStatus supports a kind.
func IsWellKnown(kind schema.GroupVersionKind) bool { return len(wellKnown[kind]) > 0 }

// reader reads one object.
type reader struct {
	object  *unstructured.Unstructured
	fields  map[string]any
	whole   bool
	options Options
	meter   *jsonpath.Meter

	values []workv1.FeedbackValue
	names  map[string]bool
	size   int
	errs   []error
	failed int
}

// Read returns the values that rules select, in the order of the rules. With an error, it returns those that could be read.
func Read(object *unstructured.Unstructured, rules []workv1.FeedbackRule, options Options) ([]workv1.FeedbackValue, error) {
	r := &reader{object: object, options: options, meter: jsonpath.NewMeter(jsonpath.Steps), names: map[string]bool{}}
	r.fields, r.whole = readable.Of(object)
	for i := range rules {
		r.read(&rules[i])
	}
	if r.failed > len(r.errs) {
		r.errs = append(r.errs, fmt.Errorf("and %d more errors", r.failed-len(r.errs)))
	}
	return r.values, utilerrors.NewAggregate(r.errs)
}

func (r *reader) fail(err error) {
	r.failed++
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, err)
	}
}

func (r *reader) read(rule *workv1.FeedbackRule) {
	kind := r.object.GroupVersionKind()
	switch rule.Type {
	case workv1.WellKnownStatusType:
		paths := wellKnown[kind]
		if len(paths) == 0 {
			r.fail(fmt.Errorf("cannot find the wellknown statuses for resource with gvk %s", kind.String()))
		}
		for _, p := range paths {
			r.add(p.name, p.path)
		}
	case workv1.JSONPathsType:
		for i := range rule.JsonPaths {
			p := &rule.JsonPaths[i]
			if p.Version != "" && p.Version != kind.Version {
				r.fail(fmt.Errorf("version set in the path %s is not matched for the related resource", p.Name))
				continue
			}
			r.add(p.Name, p.Path)
		}
	default:
		r.fail(fmt.Errorf("expected the type %s or %s of a rule, got %q", workv1.WellKnownStatusType, workv1.JSONPathsType, rule.Type))
	}
}

func (r *reader) add(name, path string) {
	// The names in a status are unique.
	if r.names[name] {
		r.fail(fmt.Errorf("duplicate name %s: the first one is used", name))
		return
	}
	r.names[name] = true
	value, err := r.value(name, path)
	if err != nil {
		r.fail(err)
		return
	}
	if value == nil {
		return
	}
	size := len(name) + sizeOf(value)
	if r.size+size > MaxTotal {
		r.fail(fmt.Errorf("the values of the object are longer than %d bytes: %s is left out", MaxTotal, name))
		return
	}
	r.size += size
	r.values = append(r.values, workv1.FeedbackValue{Name: name, Value: *value})
}

// value returns the value at a path, or nil if it does not exist.
func (r *reader) value(name, path string) (*workv1.FieldValue, error) {
	parsed, err := jsonpath.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("failed to parse json path %s of %s with error: %w", path, name, err)
	}
	found, err := parsed.Find(r.fields, r.meter)
	if err == nil && len(found) == 0 && !r.whole {
		err = errors.New(readable.Limits)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to find value for %s with error: %w", name, err)
	}
	if len(found) == 0 || found[0] == nil {
		return nil, nil
	}
	// The first of several values is used.
	switch v := found[0].(type) {
	case int64:
		return &workv1.FieldValue{Type: workv1.Integer, Integer: &v}, nil
	case bool:
		return &workv1.FieldValue{Type: workv1.Boolean, Boolean: &v}, nil
	case string:
		if len(v) > MaxText {
			return nil, fmt.Errorf("the length of the text for name %s is larger than the maximum length %d", name, MaxText)
		}
		v = bounds.Plain(v) // as the hub stores it
		return &workv1.FieldValue{Type: workv1.String, String: &v}, nil
	default:
		return r.raw(name, v)
	}
}

func (r *reader) raw(name string, value any) (*workv1.FieldValue, error) {
	if !r.options.Raw {
		return nil, fmt.Errorf("the type %T of the value for %s is not found", value, name)
	}
	limit := r.options.maxJSONRaw()
	text, err := marshal(value, limit)
	if err != nil {
		return nil, fmt.Errorf("failed to parse the resource to json string for name %s: %w", name, err)
	}
	if len(text) > limit {
		return nil, fmt.Errorf("the length of returned json raw string for name %s is larger than the maximum length %d", name, limit)
	}
	return &workv1.FieldValue{Type: workv1.JsonRaw, JsonRaw: &text}, nil
}

// marshal returns the JSON of a value, or a text that is too long if a quick check shows that the JSON would be.
func marshal(value any, limit int) (string, error) {
	if remaining := limit; !fits(value, &remaining) {
		return string(make([]byte, limit+1)), nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// fits subtracts the minimum length of a value's JSON from room, and reports whether room is left.
func fits(value any, remaining *int) bool {
	*remaining--
	switch v := value.(type) {
	case string:
		*remaining -= len(v)
	case []any:
		for _, item := range v {
			if *remaining < 0 || !fits(item, remaining) {
				return false
			}
		}
	case map[string]any:
		for key, item := range v {
			*remaining -= len(key)
			if *remaining < 0 || !fits(item, remaining) {
				return false
			}
		}
	}
	return *remaining >= 0
}

func sizeOf(value *workv1.FieldValue) int {
	switch {
	case value.String != nil:
		return len(*value.String)
	case value.JsonRaw != nil:
		return len(*value.JsonRaw)
	}
	return 20
}

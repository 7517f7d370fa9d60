// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	apibounds "github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/generated/openapi"
)

// bound is one constraint of OpenAPI, its path, and a value that violates it.
type bound struct {
	name   string
	at     []any
	beyond any
}

// bounds returns the constraints of a schema. It fails if the example does not have the field.
func bounds(t *testing.T, s *spec.Schema, example any, at []any) []bound {
	t.Helper()
	var found []bound
	add := func(name string, beyond any) {
		if example == nil {
			t.Errorf("the example has no %v, which has the constraint %s", at, name)
			return
		}
		found = append(found, bound{name: name, at: append([]any{}, at...), beyond: beyond})
	}
	if len(s.Enum) > 0 {
		add("enum", "Other")
	}
	if s.Pattern != "" {
		add("pattern "+s.Pattern, misfit(t, s))
	}
	if s.MinLength != nil {
		add("minLength", strings.Repeat("a", int(*s.MinLength)-1))
	}
	if s.MaxLength != nil {
		add("maxLength", strings.Repeat("a", int(*s.MaxLength)+1))
	}
	if s.Minimum != nil {
		add("minimum", int64(*s.Minimum)-1)
	}
	if s.Maximum != nil {
		add("maximum", int64(*s.Maximum)+1)
	}
	list, _ := example.([]any)
	if s.MinItems != nil {
		add("minItems", append([]any{}, list[:*s.MinItems-1]...))
	}
	if s.MaxItems != nil && len(list) > 0 {
		add("maxItems", repeated(list[0], int(*s.MaxItems)+1))
	}
	if s.MaxProperties != nil {
		many := map[string]any{}
		for i := range *s.MaxProperties + 1 {
			many[fmt.Sprint("a", i)] = "1"
		}
		add("maxProperties", many)
	}
	for i := range s.AllOf {
		found = append(found, bounds(t, &s.AllOf[i], example, at)...)
	}
	fields, _ := example.(map[string]any)
	for name := range s.Properties {
		p := s.Properties[name]
		if name == "metadata" || name == "patternName" && fields["policyName"] != nil { // they exclude each other
			continue
		}
		if value, given := fields[name]; given || len(constraints(&p)) > 0 {
			found = append(found, bounds(t, &p, value, append(at, name))...)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		if len(list) > 0 {
			found = append(found, bounds(t, s.Items.Schema, list[0], append(at, 0))...)
		} else if list != nil && len(constraints(s.Items.Schema)) > 0 {
			t.Errorf("the example has an empty %v", at)
		}
	}
	return found
}

// constraints returns the constraints of a schema itself, without those of its fields.
func constraints(s *spec.Schema) []string {
	var names []string
	for name, given := range map[string]bool{
		"enum": len(s.Enum) > 0, "pattern": s.Pattern != "", "minLength": s.MinLength != nil, "maxLength": s.MaxLength != nil,
		"minimum": s.Minimum != nil, "maximum": s.Maximum != nil, "minItems": s.MinItems != nil, "maxItems": s.MaxItems != nil,
		"maxProperties": s.MaxProperties != nil,
	} {
		if given {
			names = append(names, name)
		}
	}
	return names
}

// repeated returns a list of this many items, no two of which have the same key.
func repeated(item any, times int) []any {
	items := make([]any, times)
	for i := range items {
		items[i] = item
		if object, ok := item.(map[string]any); ok {
			object = runtime.DeepCopyJSON(object)
			for _, key := range []string{"name", "type", "key"} {
				if value, ok := object[key].(string); ok {
					object[key] = fmt.Sprint(value, i)
				}
			}
			items[i] = object
		}
	}
	return items
}

// misfit returns a string that a pattern does not match, and that satisfies all other constraints.
func misfit(t *testing.T, s *spec.Schema) string {
	t.Helper()
	for _, candidate := range []string{"a b/%?", "-", "x y z", "ftp:"} {
		if !regexp.MustCompile(s.Pattern).MatchString(candidate) {
			return candidate
		}
	}
	t.Fatalf("every candidate matches %s", s.Pattern)
	return ""
}

// replaced returns a copy of an object with a different value at a path.
func replaced(t *testing.T, object map[string]any, at []any, value any) map[string]any {
	t.Helper()
	result := runtime.DeepCopyJSON(object)
	var in any = result
	for i, step := range at {
		last := i == len(at)-1
		switch step := step.(type) {
		case string:
			if last {
				in.(map[string]any)[step] = value
			} else {
				in = in.(map[string]any)[step]
			}
		case int:
			if last {
				in.([]any)[step] = value
			} else {
				in = in.([]any)[step]
			}
		}
	}
	return result
}

// decoded returns an object as the server decodes it, including defaults.
func decoded(t *testing.T, object map[string]any) runtime.Object {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	u := unstructured.Unstructured{Object: object}
	gv := u.GroupVersionKind().GroupVersion()
	gv.Version = runtime.APIVersionInternal
	got, err := runtime.Decode(Codecs.UniversalDecoder(gv), data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return got
}

// TestOpenAPI_MatchesValidation validates each value that OpenAPI forbids: the server must reject what editors, pipelines and kubectl explain
// consider invalid.
func TestOpenAPI_MatchesValidation(t *testing.T) {
	schemas := resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, Scheme)
	stated := 0
	for _, text := range slices.Concat(bounded, boundedWorks, boundedEdge) {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		gvk := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
		t.Run(gvk.Version+" "+gvk.Kind, func(t *testing.T) {
			schema, err := schemas.ResolveSchema(gvk)
			if err != nil {
				t.Fatal(err)
			}
			validator := validate.NewSchemaValidator(schema, nil, "", strfmt.Default)
			valid := decoded(t, object)
			if result := validator.Validate(object); !result.IsValid() {
				t.Fatalf("OpenAPI refuses the example: %v", result.Errors)
			}
			validation := func(o runtime.Object) field.ErrorList {
				if errs := apibounds.Declared(t.Context(), Scheme, gvk.GroupVersion(), o, nil); len(errs) > 0 {
					return errs
				}
				return refusals(t, o, valid)
			}
			if errs := validation(valid); len(errs) > 0 {
				t.Fatalf("validation refuses the example: %v", errs)
			}
			found := bounds(t, schema, object, nil)
			if len(found) == 0 {
				t.Fatal("OpenAPI states no bound")
			}
			stated += len(found)
			for _, b := range found {
				t.Run(fmt.Sprint(b.at, " ", b.name), func(t *testing.T) {
					bad := replaced(t, object, b.at, b.beyond)
					if validator.Validate(bad).IsValid() {
						t.Errorf("OpenAPI takes %v", b.beyond)
					}
					errs := validation(decoded(t, bad))
					if len(errs) == 0 {
						t.Errorf("validation takes %v, which OpenAPI refuses", b.beyond)
					}
					tooMany := slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Type == field.ErrorTypeTooMany })
					if counts := b.name == "maxItems" || b.name == "maxProperties"; counts && !tooMany {
						t.Errorf("validation does not count: %v", errs)
					}
				})
			}
		})
	}
	// The generator silently drops markers that it does not know.
	if stated < 283 {
		t.Errorf("OpenAPI states %d bounds, some are lost", stated)
	}
}

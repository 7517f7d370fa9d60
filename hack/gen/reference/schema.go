// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// table has a row for each field of a type. name returns the text for the type of a field.
func table(schema spec.Schema, name func(spec.Schema) string) string {
	var b strings.Builder
	b.WriteString("| field | type | |\n|---|---|---|\n")
	for _, field := range fieldsOf(schema) {
		s := schema.Properties[field]
		if _, kind := schema.Properties["metadata"]; kind && (field == "apiVersion" || field == "kind") {
			continue // each kind has them, and they say nothing of it
		}
		title := "`" + field + "`"
		if slices.Contains(schema.Required, field) {
			title += " *required*"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", title, name(s), cell(s))
	}
	return b.String()
}

// fieldsOf are the fields of a type: apiVersion, kind and metadata first, then spec and status, then the rest by name.
func fieldsOf(schema spec.Schema) []string {
	first := []string{"apiVersion", "kind", "metadata", "spec", "status"}
	var fields []string
	for _, f := range first {
		if _, there := schema.Properties[f]; there {
			fields = append(fields, f)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(first, f) {
			fields = append(fields, f)
		}
	}
	return fields
}

// cell returns the description of a field in a schema, in one line.
func cell(s spec.Schema) string {
	text := oneLine(s.Description)
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	var more []string
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		more = append(more, "One of "+strings.Join(values, ", ")+".")
	}
	switch value := s.Default.(type) {
	case nil, map[string]any:
	case string:
		if value != "" && !strings.Contains(s.Description, value) {
			more = append(more, "Default: `"+value+"`.")
		}
	default:
		if text := fmt.Sprint(value); text != "0" && text != "false" && !strings.Contains(s.Description, text) {
			more = append(more, "Default: `"+text+"`.")
		}
	}
	more = append(more, bounds(s)...)
	return strings.TrimSpace(text + " " + strings.Join(more, " "))
}

// bounds are the limits that the schema has of itself, but for those that its description names.
func bounds(s spec.Schema) (all []string) {
	unsaid := func(number *int64) *int64 {
		if number == nil || *number == 0 || strings.Contains(s.Description, fmt.Sprint(*number)) {
			return nil
		}
		return number
	}
	between := func(what string, low, high *int64) {
		low, high = unsaid(low), unsaid(high)
		switch {
		case low != nil && high != nil:
			all = append(all, fmt.Sprintf("%d to %d %s.", *low, *high, what))
		case high != nil:
			all = append(all, fmt.Sprintf("At most %d %s.", *high, what))
		case low != nil:
			all = append(all, fmt.Sprintf("At least %d %s.", *low, what))
		}
	}
	between("characters", s.MinLength, s.MaxLength)
	between("items", s.MinItems, s.MaxItems)
	for _, limit := range []struct {
		word  string
		value *float64
	}{{"At least", s.Minimum}, {"At most", s.Maximum}} {
		if limit.value == nil {
			continue
		}
		// Not with an exponent.
		if value := strconv.FormatFloat(*limit.value, 'f', -1, 64); !strings.Contains(s.Description, value) {
			all = append(all, limit.word+" "+value+".")
		}
	}
	if s.Pattern != "" {
		all = append(all, "Pattern: `"+strings.ReplaceAll(s.Pattern, "|", "\\|")+"`.")
	}
	return all
}

// oneLine fits into a cell of a table: line breaks, bars and what would be markup are taken out.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", "\\|", "<", "&lt;", ">", "&gt;", "*", "\\*", "_", "\\_", "[", "\\[").Replace(text)
}

// basic is the name of a type that has no section: a string, a number, a list or a map of others.
func basic(s spec.Schema, name func(spec.Schema) string) string {
	switch {
	case len(s.Type) == 0:
		if s.Extensions["x-kubernetes-int-or-string"] == true {
			return "integer or string"
		}
		return "any"
	case s.Type[0] == "array" && s.Items != nil && s.Items.Schema != nil:
		return "list of " + name(*s.Items.Schema)
	case s.Type[0] == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + name(*s.AdditionalProperties.Schema)
	case s.Format != "" && s.Format != "int32" && s.Format != "int64":
		return s.Type[0] + " (" + s.Format + ")"
	}
	return s.Type[0]
}

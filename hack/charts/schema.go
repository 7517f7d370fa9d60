// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Value is one line of the table of a chart's values.
type Value struct{ Path, Default, Description string }

// object is a JSON schema, or a part of one.
type object = map[string]any

// values reads values.yaml: the comment above a key is its description, and a line `@schema {…}` in it adds to its schema. A key without
// a comment has that of the key with the same path in an earlier block.
type values struct {
	apiServices []string
	table       []Value
	// said are descriptions and additions by the path below a block.
	said map[string]said
}

type said struct {
	description string
	schema      object
	value       string
}

// Schema is the schema of a chart's values, and the table of them. Values that it does not know are refused, but for what Helm and charts
// around this one add. apiServices are the names that a line `@schema-apiservices` allows.
func Schema(data []byte, apiServices []string) (schema []byte, table []Value, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, nil, err
	}
	v := values{apiServices: apiServices, said: map[string]said{}}
	root, err := v.mapping(document.Content[0], nil)
	if err != nil {
		return nil, nil, err
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	properties := root["properties"].(object)
	properties["global"] = object{"type": "object", "description": "What a chart around this one says to all its charts. It is not used here."}
	properties["enabled"] = object{"type": "boolean", "description": "Whether a chart around this one deploys it. It is not used here."}
	schema, err = json.MarshalIndent(root, "", "  ")
	return append(schema, '\n'), v.table, err
}

func (v *values) mapping(node *yaml.Node, path []string) (object, error) {
	properties := object{}
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := append(path[:len(path):len(path)], key.Value)
		property, err := v.property(key.HeadComment, value, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(at, "."), err)
		}
		properties[key.Value] = property
	}
	return object{"type": "object", "additionalProperties": false, "properties": properties}, nil
}

func (v *values) property(comment string, value *yaml.Node, path []string) (object, error) {
	description, more, err := read(comment)
	if err != nil {
		return nil, err
	}
	if value.Kind == yaml.MappingNode && len(value.Content) > 0 && !open(path[len(path)-1]) {
		property, err := v.mapping(value, path)
		if err == nil && description != "" {
			property["description"] = description
		}
		return property, err
	}
	text, err := inline(value)
	if err != nil {
		return nil, err
	}
	below := strings.Join(path[1:], ".")
	before, again := v.said[below]
	if description == "" && again {
		description = before.description
		if more == nil {
			more = before.schema
		}
	}
	if description == "" {
		return nil, fmt.Errorf("it has no comment, and neither has one of that name in an earlier block")
	}
	if comment != "" || text != before.value {
		v.table = append(v.table, Value{strings.Join(path, "."), text, description})
	}
	if comment != "" {
		v.said[below] = said{description, more, text}
	}
	property := object{"description": description}
	if kind := kindOf(value); kind != "" {
		property["type"] = kind
	}
	maps.Copy(property, more)
	if strings.Contains(comment, "@schema-apiservices") {
		property["items"] = object{"enum": v.apiServices}
	}
	if property["type"] == nil {
		return nil, fmt.Errorf("the type of null has to be said, by a line such as: # @schema {\"type\": [\"integer\", \"null\"]}")
	}
	return property, nil
}

// open are values that are blocks of their own although they have defaults.
func open(key string) bool { return key == "resources" || key == "labels" }

func kindOf(value *yaml.Node) string {
	switch {
	case value.Kind == yaml.MappingNode:
		return "object"
	case value.Kind == yaml.SequenceNode:
		return "array"
	}
	return map[string]string{"!!bool": "boolean", "!!int": "integer", "!!str": "string"}[value.Tag]
}

// read takes a comment apart. Of several paragraphs the last is about the key.
func read(comment string) (description string, schema object, err error) {
	paragraphs := strings.Split(comment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		if text, ok := strings.CutPrefix(line, "@schema "); ok {
			if err := json.Unmarshal([]byte(text), &schema); err != nil {
				return "", nil, fmt.Errorf("@schema: %w", err)
			}
			continue
		}
		if !strings.HasPrefix(line, "@") {
			words = append(words, line)
		}
	}
	return strings.TrimSpace(strings.Join(words, " ")), schema, nil
}

// inline is a value on one line.
func inline(value *yaml.Node) (string, error) {
	var v any
	if err := value.Decode(&v); err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	return string(text), err
}

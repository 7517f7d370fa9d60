// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strconv"

	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ValueType defines which field of a Value is set.
type ValueType string

const (
	// ValueNone is a value that is null or not set.
	ValueNone ValueType = ""
	// ValueString is a string.
	ValueString ValueType = "String"
	// ValueNumber is a number.
	ValueNumber ValueType = "Number"
	// ValueBoolean is true or false.
	ValueBoolean ValueType = "Boolean"
	// ValueList is a list of strings.
	ValueList ValueType = "List"
)

// Value is a string, a number, a boolean, or a list of strings. Its JSON form is the plain value.
type Value struct {
	// type defines which of the other fields is set.
	Type ValueType `json:"-"`
	// string is the string.
	String string `json:"-"`
	// number is the number. Numbers have the range and the precision of float64.
	Number float64 `json:"-"`
	// boolean is the boolean.
	Boolean bool `json:"-"`
	// list are the strings of a list.
	List []string `json:"-"`
}

// Any returns the value as encoding/json decodes it, or nil if it is null or not set.
func (v Value) Any() any {
	switch v.Type {
	case ValueString:
		return v.String
	case ValueNumber:
		if v.Number == float64(int64(v.Number)) && v.Number > -1e15 && v.Number < 1e15 {
			return int64(v.Number)
		}
		return v.Number
	case ValueBoolean:
		return v.Boolean
	case ValueList:
		if v.List == nil {
			return []string{}
		}
		return v.List
	}
	return nil
}

// ValueOf returns the Value for a value that encoding/json or CBOR decoded.
func ValueOf(decoded any) (Value, error) {
	switch typed := decoded.(type) {
	case nil:
		return Value{}, nil
	case string:
		return Value{Type: ValueString, String: typed}, nil
	case bool:
		return Value{Type: ValueBoolean, Boolean: typed}, nil
	case float64:
		return Value{Type: ValueNumber, Number: typed}, nil
	case int64:
		number := float64(typed)
		// Integers above 1<<53 are accepted only in the form in which this type writes them, which ends in zeros.
		if read := strconv.FormatFloat(number, 'f', -1, 64); read != strconv.FormatInt(typed, 10) {
			return Value{}, fmt.Errorf("the number %d would become %s, since numbers have the precision of float64: write it in quotes", typed, read)
		}
		return Value{Type: ValueNumber, Number: number}, nil
	case []string:
		return Value{Type: ValueList, List: typed}, nil
	case []any:
		list := make([]string, len(typed))
		for i := range typed {
			text, ok := typed[i].(string)
			if !ok {
				return Value{}, fmt.Errorf("a list must only have strings, and entry %d is not a string: write it in quotes", i)
			}
			list[i] = text
		}
		return Value{Type: ValueList, List: list}, nil
	}
	return Value{}, fmt.Errorf("a value must be a string, a number, true, false, or a list of strings")
}

// MarshalJSON encodes the plain value.
func (v Value) MarshalJSON() ([]byte, error) {
	return json.Marshal(v.Any())
}

// UnmarshalJSON decodes the plain value.
func (v *Value) UnmarshalJSON(data []byte) error {
	var decoded any
	if err := utiljson.Unmarshal(data, &decoded); err != nil {
		return err
	}
	return v.set(decoded)
}

// MarshalCBOR encodes the plain value.
func (v Value) MarshalCBOR() ([]byte, error) {
	return cbor.Marshal(v.Any())
}

// UnmarshalCBOR decodes the plain value.
func (v *Value) UnmarshalCBOR(data []byte) error {
	var decoded any
	if err := cbor.Unmarshal(data, &decoded); err != nil {
		return err
	}
	return v.set(decoded)
}

func (v *Value) set(decoded any) (err error) {
	*v, err = ValueOf(decoded)
	return err
}

// OpenAPISchemaType returns no type for OpenAPI version 2, which cannot express a union of types.
func (Value) OpenAPISchemaType() []string { return nil }

// OpenAPISchemaFormat returns the format in OpenAPI.
func (Value) OpenAPISchemaFormat() string { return "" }

// OpenAPIV3OneOfTypes returns the types in OpenAPI version 3.
func (Value) OpenAPIV3OneOfTypes() []string { return []string{"array", "boolean", "number", "string"} }

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Equivalent reports whether two policy documents have the same meaning. AWS returns them percent-encoded, and other programs write them in a
// different order, or with a list of one value in place of a string. An invalid document is equivalent to nothing.
func Equivalent(a, b string) bool {
	x, err := normalize(a)
	if err != nil {
		return false
	}
	y, err := normalize(b)
	return err == nil && reflect.DeepEqual(x, y)
}

func normalize(document string) (map[string]any, error) {
	if !strings.HasPrefix(strings.TrimSpace(document), "{") {
		// RFC 3986: a plus sign is a plus sign.
		decoded, err := url.PathUnescape(document)
		if err != nil {
			return nil, err
		}
		document = decoded
	}
	var policy map[string]any
	if err := json.Unmarshal([]byte(document), &policy); err != nil {
		return nil, err
	}
	if policy == nil {
		return nil, errors.New("it is null")
	}
	statements, many := policy["Statement"].([]any)
	if !many {
		statements = []any{policy["Statement"]}
	}
	texts := make([]string, len(statements))
	for i, s := range statements {
		if statement, ok := s.(map[string]any); ok {
			for _, key := range []string{"Principal", "NotPrincipal"} {
				if statement[key] == "*" {
					statement[key] = map[string]any{"AWS": "*"}
				}
			}
		}
		text, err := json.Marshal(asSets(s)) // sorts the keys
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	slices.Sort(texts)
	policy["Statement"] = texts
	return policy, nil
}

// asSets replaces every value below a statement by the sorted list of its alternatives.
func asSets(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = asSets(v[key])
		}
		return v
	case []any:
		set := make([]string, len(v))
		for i := range v {
			set[i] = fmt.Sprint(v[i])
		}
		slices.Sort(set)
		return slices.Compact(set)
	}
	return []string{fmt.Sprint(value)}
}

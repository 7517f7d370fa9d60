// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ignorefields

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// removePointer removes the field or list item that an RFC 6901 pointer names, if it exists.
func removePointer(object map[string]any, pointer string) error {
	tokens, err := parsePointer(pointer)
	if err != nil {
		return err
	}
	removeAt(object, tokens)
	return nil
}

func parsePointer(pointer string) ([]string, error) {
	if !strings.HasPrefix(pointer, "/") {
		return nil, errors.New("expected a pointer that begins with /, such as /spec/replicas")
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(token), "~") {
			return nil, errors.New("expected ~0 for ~ and ~1 for /, got another character after ~")
		}
		// ~01 is ~1, and not /.
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return tokens, nil
}

// removeAt returns the value without what the tokens name.
func removeAt(value any, tokens []string) any {
	switch v := value.(type) {
	case map[string]any:
		inner, ok := v[tokens[0]]
		switch {
		case !ok:
		case len(tokens) == 1:
			delete(v, tokens[0])
		default:
			v[tokens[0]] = removeAt(inner, tokens[1:])
		}
	case []any:
		i, ok := index(tokens[0], len(v))
		switch {
		case !ok:
		case len(tokens) == 1:
			return slices.Delete(v, i, i+1)
		default:
			v[i] = removeAt(v[i], tokens[1:])
		}
	}
	return value
}

// index parses an index without a sign and without leading zeros.
func index(token string, length int) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil && strconv.Itoa(i) == token && i >= 0 && i < length
}

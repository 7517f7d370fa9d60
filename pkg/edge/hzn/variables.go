// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hzn

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// unquoted is the prefix of texts that stand for variables without quotes.
const unquoted = "\ue000"

// quoteVariables puts quotes around variables that have none, such as those in place of numbers: hzn inserts their values before it parses the file.
func quoteVariables(data []byte) []byte {
	if !bytes.ContainsRune(data, '$') {
		return data
	}
	var out bytes.Buffer
	quoted := false
	for i := 0; i < len(data); i++ {
		switch {
		case quoted && data[i] == '\\' && i+1 < len(data):
			out.WriteByte(data[i])
			i++
		case data[i] == '"':
			quoted = !quoted
		case !quoted && data[i] == '$':
			if found := variable.FindIndex(data[i:min(len(data), i+maxVariable)]); found != nil && found[0] == 0 {
				out.WriteString(`"` + unquoted)
				out.Write(data[i : i+found[1]])
				out.WriteByte('"')
				i += found[1] - 1
				continue
			}
		}
		out.WriteByte(data[i])
	}
	return out.Bytes()
}

// maxVariable is the maximum length of the name of a variable without quotes, so that many of them take no time.
const maxVariable = 256

var variable = regexp.MustCompile(`\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)`)

// expand replaces variables in all texts by their values. Variables in values are not expanded.
func (r *reader) expand(value any, at string) any {
	switch typed := value.(type) {
	case string:
		if name, ok := strings.CutPrefix(typed, unquoted); ok {
			return r.scalar(name, at)
		}
		return variable.ReplaceAllStringFunc(typed, func(found string) string {
			value, _ := r.variable(found, at)
			return value
		})
	case []any:
		for i := range typed {
			typed[i] = r.expand(typed[i], fmt.Sprintf("%s[%d]", at, i))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(typed)) {
			if name, ok := strings.CutPrefix(key, unquoted); ok {
				r.fail(at, "has the variable %s in place of the name of a field: write the name", strings.Trim(name, "${}"))
				continue
			}
			typed[key] = r.expand(typed[key], join(at, key))
		}
	}
	return value
}

// variable returns the value of a variable, which is written as $NAME or ${NAME}; if it is not known, it returns the text as written.
func (r *reader) variable(written, at string) (string, bool) {
	name := strings.Trim(written, "${}")
	if r.options.Variable != nil {
		if value, known := r.options.Variable(name); known {
			return value, true
		}
	}
	r.fail(at, "has the variable %s, which has no value: give it one", name)
	return written, false
}

// scalar returns the value of a variable without quotes. It must be a number, true, false or a quoted text, so that a value changes nothing else in
// the file.
func (r *reader) scalar(written, at string) any {
	text, known := r.variable(written, at)
	if !known {
		return nil
	}
	var value any
	if err := utiljson.Unmarshal([]byte(text), &value); err == nil {
		switch value.(type) {
		case int64, float64, bool, string:
			return value
		}
	}
	r.fail(at, "has the variable %s without quotes, so its value must be a number, true or false", strings.Trim(written, "${}"))
	return nil
}

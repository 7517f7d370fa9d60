// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// documents splits a file at lines that consist of three dashes, or begin with three dashes and a space: YAML does so even within a text. Dashes in
// the middle of a line, as in certificates, separate nothing.
func documents(data []byte) [][]byte {
	var docs [][]byte
	start := 0
	for i := 0; i < len(data); {
		end := len(data)
		if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		if rest, ok := bytes.CutPrefix(data[i:end], []byte("---")); ok && (len(rest) == 0 || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0]))) {
			docs = append(docs, data[start:i])
			start = i
		}
		i = end
	}
	return append(docs, data[start:])
}

// parse parses a document as kubectl does. It returns nil without an error if the document is empty.
//
// The document is parsed twice. The first result is a tree in which an alias is one value, which takes memory in proportion to the document; the
// expanded size is computed from it. Only then does the parser that kubectl also uses expand it.
func parse(doc []byte, left *budget) (map[string]any, error) {
	if len(doc) > MaxDocument {
		return nil, fmt.Errorf("has a document of %d bytes, and may have one of %d", len(doc), MaxDocument)
	}
	if !utf8.Valid(doc) || bytes.IndexByte(doc, 0) >= 0 {
		return nil, errors.New("is not text in UTF-8")
	}
	n := marks(doc)
	left.marks -= n
	if n > MaxValues || left.marks < 0 {
		return nil, errValues
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(doc))
	var tree yamlv3.Node
	switch err := decoder.Decode(&tree); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, notYAML(err)
	}
	if err := decoder.Decode(&yamlv3.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("has a document that ends before its last line: begin each document with a line '---'")
	}
	m := &measure{of: map[*yamlv3.Node]size{}}
	whole, err := m.node(&tree)
	if err != nil {
		return nil, err
	}
	if whole.bytes > MaxExpanded {
		return nil, fmt.Errorf("has a document that expands to more than %d bytes: aliases repeat too much in it", MaxExpanded)
	}
	left.values -= whole.values
	if left.values < 0 {
		return nil, errValues
	}
	return expand(doc)
}

var errValues = fmt.Errorf("has more values than an archive may have: %d, those that aliases repeat included", MaxValues)

func expand(doc []byte) (map[string]any, error) {
	// Messages of this parser may contain values, so they are not passed on.
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, errors.New("has a document that Kubernetes does not accept: use plain maps, lists, strings, numbers and booleans")
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, errors.New("has a document that cannot be converted to JSON: use plain maps, lists, strings, numbers and booleans")
	}
	switch object := value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return object, nil
	}
	return nil, errors.New("has a document that is not an object of Kubernetes: begin it with apiVersion and kind")
}

// notYAML returns an error with the position of the syntax error. The message of the parser is not passed on: it names an unknown alias, which may be
// a password that the author forgot to quote.
func notYAML(err error) error {
	var line int
	if n, _ := fmt.Sscanf(err.Error(), "yaml: line %d:", &line); n == 1 {
		return fmt.Errorf("is not YAML, near line %d of a document", line)
	}
	return errors.New("is not YAML: quote strings that begin with a mark such as * & ! or @")
}

// budget is the number of values and marks that the remaining documents of an archive may have.
type budget struct{ values, marks int }

// newBudget also allows the same number of marks that begin no value, in texts and comments.
func newBudget() *budget { return &budget{values: MaxValues, marks: 2 * MaxValues} }

// marks returns an upper bound for the number of values in a document: each value begins a line, or follows one of these characters. Counting them
// takes no memory, while the tree takes some hundred bytes for each. It counts all line breaks of YAML.
func marks(doc []byte) int {
	n := bytes.Count(doc, []byte("\u0085")) + bytes.Count(doc, []byte("\u2028")) + bytes.Count(doc, []byte("\u2029"))
	for i, c := range doc {
		switch c {
		case '\n', '\r', ',', '[', '{':
			n++
		case '-', ':', '?':
			// Within a word they are a part of it.
			if i+1 == len(doc) || doc[i+1] <= ' ' || doc[i+1] >= utf8.RuneSelf {
				n++
			}
		}
	}
	return n - bytes.Count(doc, []byte("\r\n"))
}

// size is the size of a value after all aliases are expanded.
type size struct{ values, bytes, depth int }

// measure computes sizes without expanding anything.
type measure struct {
	of map[*yamlv3.Node]size
}

// underWay is the size of a value that is being measured: a node that finds it is inside of that value.
var underWay = size{values: -1}

func (m *measure) node(n *yamlv3.Node) (size, error) {
	if known, ok := m.of[n]; ok {
		if known == underWay {
			return size{}, fmt.Errorf("has an alias that refers to a value that contains it, in line %d", n.Line)
		}
		return known, nil
	}
	m.of[n] = underWay
	total, err := m.children(n)
	if err != nil {
		return size{}, err
	}
	if total.depth > MaxDepth {
		return size{}, fmt.Errorf("has more than %d levels of lists and maps, in line %d", MaxDepth, n.Line)
	}
	m.of[n] = total
	return total, nil
}

func (m *measure) children(n *yamlv3.Node) (size, error) {
	if err := plain(n); err != nil {
		return size{}, err
	}
	// Two bytes for separators.
	total := size{values: 1, bytes: len(n.Value) + 2}
	children := n.Content
	if n.Kind == yamlv3.AliasNode {
		total = size{}
		children = []*yamlv3.Node{n.Alias}
	}
	deepest := 0
	for _, child := range children {
		s, err := m.node(child)
		if err != nil {
			return size{}, err
		}
		// A sum that exceeds the limits stays there, so that it cannot overflow: every summand is within the product of the two.
		total.values = min(total.values+s.values, MaxValues+1)
		total.bytes = min(total.bytes+s.bytes, MaxExpanded+1)
		deepest = max(deepest, s.depth)
	}
	total.depth = deepest
	if n.Kind == yamlv3.MappingNode || n.Kind == yamlv3.SequenceNode {
		total.depth++
	}
	return total, nil
}

// plain rejects values on which YAML parsers disagree.
func plain(n *yamlv3.Node) error {
	if n.Style&yamlv3.TaggedStyle != 0 {
		switch n.ShortTag() {
		case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
		default:
			return fmt.Errorf("has a tag in line %d: write the value without it", n.Line)
		}
	}
	if n.Kind != yamlv3.MappingNode {
		return nil
	}
	keys := make(map[string]bool, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yamlv3.ScalarNode {
			return fmt.Errorf("has a key in line %d that is not a string", key.Line)
		}
		if keys[key.Value] {
			return fmt.Errorf("has a key twice in a map, the second time in line %d", key.Line)
		}
		keys[key.Value] = true
	}
	return nil
}

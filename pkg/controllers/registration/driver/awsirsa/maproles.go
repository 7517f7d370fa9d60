// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mapRolesDocument is a YAML list of {rolearn, username, groups}. It decides who has access to the hub, nodes included, so entries of others are
// preserved byte by byte, and a document that cannot be read is not changed. As in EKS, the case of keys and ARNs does not matter, and of two
// entries of one ARN the last counts.
type mapRolesDocument struct {
	text string
	// list is in root, and was has its original entries.
	root, list *yaml.Node
	was        []*yaml.Node
}

// errBroken reports that other entries need what an edit removes.
var errBroken = errors.New("the change would break it")

// set gives the document exactly one entry of the role. It changes nothing if that exists, or if it returns an error.
func (m *mapRolesDocument) set(arn, cluster string) error {
	first, count, right := 0, 0, false
	for i, item := range m.list.Content {
		if !isOf(item, arn) {
			continue
		}
		if other := namedCluster(field(item, "username"), mappedUser); other != "" && other != cluster {
			return fmt.Errorf("its entry of the role %s belongs to the ManagedCluster %q", arn, other)
		}
		count++
		if count == 1 {
			first = i
		}
		right = field(item, "username") == mappedUser(cluster) && sameSet(groups(item), mappedGroups(cluster))
	}
	if count == 1 && right {
		return nil
	}
	wanted := mapping(arn, cluster)
	if count == 0 {
		m.list.Content = append(m.list.Content, wanted)
		return nil
	}
	was := m.list.Content[first]
	wanted.HeadComment, wanted.FootComment = was.HeadComment, was.FootComment
	m.list.Content[first] = wanted
	m.without(func(item *yaml.Node) bool { return item != wanted && isOf(item, arn) })
	return nil
}

// drop removes the entries of the role that belong to the cluster. If the role is ours, it also removes those that name no cluster.
func (m *mapRolesDocument) drop(arn, cluster string, mine bool) {
	m.without(func(item *yaml.Node) bool {
		owner := namedCluster(field(item, "username"), mappedUser)
		return isOf(item, arn) && (owner == cluster || owner == "" && mine)
	})
}

// readMapRoles reads the document.
func readMapRoles(text string) (*mapRolesDocument, error) {
	m := &mapRolesDocument{text: text, root: &yaml.Node{}}
	switch strings.TrimSpace(text) {
	case "", "``", `""`, "''": // EKS reads these as empty
		text = "[]"
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	err := decoder.Decode(m.root)
	if errors.Is(err, io.EOF) { // only comments
		decoder = yaml.NewDecoder(strings.NewReader(text + "\n[]"))
		err = decoder.Decode(m.root)
	}
	if err != nil {
		return nil, malformed(err.Error())
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, malformed("it has more than one document")
	}
	if len(m.root.Content) != 1 {
		return nil, malformed("it has no list")
	}
	m.list = m.root.Content[0]
	if m.list.Kind == yaml.ScalarNode && m.list.Tag == "!!null" {
		m.list.Kind, m.list.Tag, m.list.Value = yaml.SequenceNode, "!!seq", ""
	}
	if m.list.Kind != yaml.SequenceNode {
		return nil, malformed("it is not a list")
	}
	for i, item := range m.list.Content {
		if resolve(item).Kind != yaml.MappingNode {
			return nil, malformed(fmt.Sprintf("item %d is not an entry of a role", i+1))
		}
	}
	m.was = slices.Clone(m.list.Content)
	return m, nil
}

func malformed(why string) error {
	return fmt.Errorf("%s is malformed and is not touched: %s", mapRoles, oneLine(why))
}

// write returns the document with all changes.
func (m *mapRolesDocument) write() (string, error) {
	if slices.Equal(m.list.Content, m.was) {
		return m.text, nil
	}
	if text, ok := m.splice(); ok {
		return text, nil
	}
	if len(m.was) == 0 {
		m.list.Style = 0 // entries cannot follow "[]"
	}
	text, err := encode(m.root)
	if err != nil {
		return "", err
	}
	// A removed entry may have had an anchor that others use, and not all that can be read is written as the same.
	got, err := readMapRoles(text)
	if err == nil && !sameEntries(got.list, m.list) {
		err = errors.New("the meaning of another entry would change: write that entry without anchors and aliases")
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBroken, err)
	}
	return text, nil
}

// splice changes only the lines of the entries that have changed. It returns false if an entry does not have lines of its own.
func (m *mapRolesDocument) splice() (text string, ok bool) {
	if len(m.was) == 0 || len(m.list.Content) == 0 {
		return "", false
	}
	lines := strings.SplitAfter(m.text, "\n")
	start := make([]int, len(m.was)+1)
	for i, item := range m.was {
		// The dash may have a line of its own.
		for start[i] = item.Line - 1; !strings.HasPrefix(strings.TrimSpace(lines[start[i]]), "-"); start[i]-- {
			if start[i] == 0 {
				return "", false
			}
		}
		if i > 0 && start[i] <= start[i-1] {
			return "", false
		}
	}
	start[len(m.was)] = len(lines)
	indent, _, _ := strings.Cut(lines[start[0]], "-")
	var b strings.Builder
	put := func(lines []string) {
		for _, line := range lines {
			b.WriteString(line)
		}
	}
	next := 0
	// upTo skips the removed entries. The text between two entries belongs to neither.
	upTo := func(i int) {
		for ; next < i; next++ {
			put(lines[endOfEntry(lines, start[next], start[next+1]):start[next+1]])
		}
	}
	put(lines[:start[0]])
	for _, item := range m.list.Content {
		if i := slices.Index(m.was[next:], item); i >= 0 {
			upTo(next + i)
			put(lines[start[next]:start[next+1]])
			next++
			continue
		}
		entry, err := encode(&yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{bare(item)}})
		if err != nil {
			return "", false
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteString("\n")
		}
		for line := range strings.Lines(entry) {
			b.WriteString(indent + line)
		}
	}
	upTo(len(m.was))
	text = b.String()
	// YAML has many rules for lines, so the result is verified.
	got, err := readMapRoles(text)
	return text, err == nil && sameEntries(got.list, m.list)
}

// endOfEntry returns the line after the last one of an entry that is neither empty nor a comment.
func endOfEntry(lines []string, start, end int) int {
	for ; end > start+1; end-- {
		if line := strings.TrimSpace(lines[end-1]); line != "" && !strings.HasPrefix(line, "#") {
			break
		}
	}
	return end
}

// bare returns an entry without the comments, which are in the text.
func bare(item *yaml.Node) *yaml.Node {
	copied := *item
	copied.HeadComment, copied.FootComment = "", ""
	return &copied
}

func sameEntries(a, b *yaml.Node) bool {
	var x, y []any
	return a.Decode(&x) == nil && b.Decode(&y) == nil && reflect.DeepEqual(x, y)
}

func encode(node *yaml.Node) (string, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	err := encoder.Encode(node)
	if err == nil {
		err = encoder.Close()
	}
	return b.String(), err
}

func mapping(arn, cluster string) *yaml.Node {
	text := func(s string) *yaml.Node {
		n := &yaml.Node{}
		n.SetString(s)
		return n
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, group := range mappedGroups(cluster) {
		list.Content = append(list.Content, text(group))
	}
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
		text("rolearn"), text(arn), text("username"), text(mappedUser(cluster)), text("groups"), list,
	}}
}

func (m *mapRolesDocument) without(drop func(*yaml.Node) bool) {
	m.list.Content = slices.DeleteFunc(slices.Clone(m.list.Content), drop)
}

func isOf(item *yaml.Node, arn string) bool { return strings.EqualFold(field(item, "rolearn"), arn) }

func field(item *yaml.Node, key string) string {
	if v := value(item, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

func groups(item *yaml.Node) []string {
	v := value(item, "groups")
	if v == nil {
		return nil
	}
	var names []string
	for _, n := range v.Content {
		names = append(names, resolve(n).Value)
	}
	return names
}

func value(item *yaml.Node, key string) *yaml.Node {
	m := resolve(item)
	for i := 0; i+1 < len(m.Content); i += 2 {
		if strings.EqualFold(m.Content[i].Value, key) {
			return resolve(m.Content[i+1])
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The document mapRoles is a YAML list of {rolearn, username, groups}. It decides who may come into the hub, nodes
// included, so what is not ours is kept to the letter, comments too, and what cannot be read is not touched. As EKS reads
// it, the case of keys and ARNs does not matter, and of two entries of one ARN the last counts.

// setMapping returns the document with one entry of the role, or the same document if it has it.
func setMapping(document, arn, cluster string) (string, error) {
	root, list, err := readMapRoles(document)
	if err != nil {
		return "", err
	}
	first, count, right := 0, 0, false
	for i, item := range list.Content {
		if !isOf(item, arn) {
			continue
		}
		if other := namedCluster(field(item, "username"), mappedUser); other != "" && other != cluster {
			return "", fmt.Errorf("its entry of the role %s belongs to the ManagedCluster %q", arn, other)
		}
		if count++; count == 1 {
			first = i
		}
		right = field(item, "username") == mappedUser(cluster) && sameSet(groups(item), mappedGroups(cluster))
	}
	if count == 1 && right {
		return document, nil
	}
	wanted := mapping(arn, cluster)
	if count == 0 {
		if len(list.Content) == 0 {
			list.Style = 0 // "[]" is not how one goes on
		}
		list.Content = append(list.Content, wanted)
		return writeMapRoles(root)
	}
	was := list.Content[first]
	wanted.HeadComment, wanted.FootComment = was.HeadComment, was.FootComment
	list.Content[first] = wanted
	without(list, func(item *yaml.Node) bool { return item != wanted && isOf(item, arn) })
	return writeMapRoles(root)
}

// dropMapping returns the document without the entries of the role that are the cluster's, or, if the role is the
// cluster's, those that are nobody's.
func dropMapping(document, arn, cluster string, mine bool) (string, error) {
	root, list, err := readMapRoles(document)
	if err != nil {
		// Nobody comes in by a document that cannot be read, but one that is repaired may have the entry: look again.
		return "", err
	}
	before := len(list.Content)
	without(list, func(item *yaml.Node) bool {
		owner := namedCluster(field(item, "username"), mappedUser)
		return isOf(item, arn) && (owner == cluster || owner == "" && mine)
	})
	if len(list.Content) == before {
		return document, nil
	}
	return writeMapRoles(root)
}

// readMapRoles returns the document and the list in it.
func readMapRoles(document string) (root, list *yaml.Node, err error) {
	root = &yaml.Node{}
	switch strings.TrimSpace(document) {
	case "", "``", `""`, "''": // what EKS takes for nothing
		document = "[]"
	}
	decoder := yaml.NewDecoder(strings.NewReader(document))
	if err := decoder.Decode(root); errors.Is(err, io.EOF) { // only comments
		return readMapRoles(document + "\n[]")
	} else if err != nil {
		return nil, nil, malformed(err.Error())
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, nil, malformed("it has more than one document")
	}
	if len(root.Content) != 1 {
		return nil, nil, malformed("it has no list")
	}
	list = root.Content[0]
	if list.Kind == yaml.ScalarNode && list.Tag == "!!null" {
		list.Kind, list.Tag, list.Value = yaml.SequenceNode, "!!seq", ""
	}
	if list.Kind != yaml.SequenceNode {
		return nil, nil, malformed("it is not a list")
	}
	for i, item := range list.Content {
		if m := resolve(item); m.Kind != yaml.MappingNode {
			return nil, nil, malformed(fmt.Sprintf("item %d is not an entry of a role", i+1))
		}
	}
	return root, list, nil
}

func malformed(why string) error {
	return fmt.Errorf("%s is malformed and is not touched: %s", mapRoles, why)
}

func writeMapRoles(root *yaml.Node) (string, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	err := encoder.Encode(root)
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return "", err
	}
	document := b.String()
	// An entry that has gone may have had an anchor that others use.
	if strings.Contains(document, "*") {
		if _, _, err := readMapRoles(document); err != nil {
			return "", fmt.Errorf("the change would break it: %w", err)
		}
	}
	return document, nil
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

func without(list *yaml.Node, drop func(*yaml.Node) bool) {
	var kept []*yaml.Node
	for _, item := range list.Content {
		if !drop(item) {
			kept = append(kept, item)
		}
	}
	list.Content = kept
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

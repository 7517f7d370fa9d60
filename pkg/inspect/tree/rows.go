// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// Row is a printed line of a tree.
type Row struct {
	// Name has the branches of the tree before it.
	Name                   string
	State                  inspect.HealthState
	Reason, Since, Message string
}

// Rows returns the lines of a tree, and what could not be read.
func (n *Node) Rows(now time.Time) (rows []Row, unseen []string) {
	n.rows("", "", now, &rows, &unseen)
	return rows, unseen
}

func (n *Node) rows(first, rest string, now time.Time, rows *[]Row, unseen *[]string) {
	row := Row{Name: first + n.title(), State: n.State, Reason: n.Reason, Message: n.Message}
	if n.Since != nil {
		row.Since = duration.HumanDuration(now.Sub(n.Since.Time))
	}
	*rows = append(*rows, row)
	*unseen = append(*unseen, n.Unseen...)
	for i, c := range n.Children {
		branch, below := "├─", "│ "
		if i == len(n.Children)-1 {
			branch, below = "└─", "  "
		}
		c.rows(rest+branch, rest+below, now, rows, unseen)
	}
}

// groups has, for each kind, the text for a number of healthy objects, and the plural for others.
var groups = map[string]struct{ healthy, plural string }{
	KindCluster:          {"clusters available", "clusters"},
	KindSet:              {"sets", "sets"},
	KindWork:             {"works available", "works"},
	KindManifest:         {"manifests available", "manifests"},
	KindCondition:        {"conditions healthy", "conditions"},
	KindNamespace:        {"namespaces on the hub", "namespaces on the hub"},
	KindManagedNamespace: {"namespaces in the cluster", "namespaces in the cluster"},
	KindAccessRequest:    {"access requests granted", "access requests"},
	KindReplicaSet:       {"replica sets rolled out", "replica sets"},
	KindPlacement:        {"placements satisfied", "placements"},
}

func (n *Node) title() string {
	if n.of == 0 {
		name := n.Name
		if n.Namespace != "" && (n.Kind == KindPlacement || n.Kind == KindAccessRequest || n.Kind == KindReplicaSet) {
			name = n.Namespace + "/" + name
		}
		return n.Kind + "/" + name
	}
	words := groups[n.Kind].healthy
	if n.State != inspect.Healthy {
		words = groups[n.Kind].plural
	}
	if words == "" {
		words = n.Kind
	}
	if n.more {
		words = "more " + words
	}
	names := strings.Join(n.names, ", ")
	if n.of > len(n.names) {
		names += ", …"
	}
	return fmt.Sprintf("%d %s: %s", n.of, words, names)
}

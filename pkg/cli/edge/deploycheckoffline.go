// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/check"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// nodeFlags are facts of nodes that the files lack, such as those of Open Horizon.
type nodeFlags struct{ arch, namespace, scope string }

var nodeScopes = []string{"cluster", "namespace"}

func (n *nodeFlags) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&n.arch, "node-arch", "", "Architecture of nodes in files of Open Horizon, such as amd64. These files do not have what an agent reports to the hub.")
	fs.StringVar(&n.namespace, "node-namespace", "", "Namespace of the agents of these nodes.")
	fs.StringVar(&n.scope, "node-scope", "", "Scope of the rights of the agents of these nodes: cluster or namespace. Nothing is deployed as long as it is unknown.")
	kit.Must(cmd.RegisterFlagCompletionFunc("node-scope", cobra.FixedCompletions(nodeScopes, cobra.ShellCompDirectiveNoFileComp)))
}

func (n *nodeFlags) validate() error {
	if n.scope != "" && !slices.Contains(nodeScopes, n.scope) {
		return fmt.Errorf("--node-scope must be %s, not %q", strings.Join(nodeScopes, " or "), n.scope)
	}
	if n.scope != "" && n.namespace == "" {
		return fmt.Errorf("--node-scope and --node-namespace must be set together: set both or neither")
	}
	return nil
}

// fill sets missing facts of a node.
func (n *nodeFlags) fill(node *api.EdgeNode) {
	node.Spec.NodeType = cmp.Or(node.Spec.NodeType, api.NodeTypeCluster)
	node.Status.Arch = n.arch
	if node.Spec.NodeType != api.NodeTypeCluster {
		return
	}
	node.Status.Namespace = n.namespace
	if n.scope != "" {
		scoped := n.scope == "namespace"
		node.Status.NamespaceScoped = &scoped
	}
}

// serviceName returns the name that an EdgeService must have.
func serviceName(s *api.EdgeService) string {
	return edge.ServiceName(s.Spec.URL, s.Spec.Version, s.Spec.Arch)
}

// offline computes the result from the files alone. Their size is bounded, and so is the unpacked size of an archive.
func (o *deployCheckOptions) offline(_ context.Context, q *asked) (*api.DeployCheck, error) {
	if q.policyName != "" || q.patternName != "" {
		return nil, fmt.Errorf("the files have no %s: with nodes in the files, everything is evaluated from the files. Add it, or use the hub by --node or --all", q.name())
	}
	question := &check.Question{Namespace: q.namespace, Name: q.name(), Limit: check.MaxLimit}
	if q.policy != nil {
		question.Policy = &q.policy.Spec
	} else {
		question.Pattern = &q.pattern.Spec
	}
	for _, s := range q.namedServices() {
		read, err := model.ReadArchive(&s.Spec)
		if err != nil {
			return nil, fmt.Errorf("EdgeService %s/%s: the hub would reject it: %w", s.Namespace, s.Name, err)
		}
		var contents *archive.Contents
		if read != nil {
			contents = &read.Contents
		}
		service := model.Service(s.Namespace, &s.Spec, contents)
		question.Services, question.Published = append(question.Services, service), append(question.Published, service)
	}
	for _, n := range q.nodes {
		question.Nodes = append(question.Nodes, check.Read(model.Node(n.Name, &n.Spec, &n.Status)))
	}
	answer := q.check()
	for {
		status, err := check.Answer(question)
		if err != nil {
			return nil, err
		}
		status.Nodes = append(answer.Status.Nodes, status.Nodes...)
		answer.Status = *status
		question.Continue = status.Continue
		if question.Continue == "" {
			return answer, nil
		}
	}
}

// print prints the result.
func (o *deployCheckOptions) print(c *api.DeployCheck) error {
	if !o.out.IsTable() {
		return o.out.PrintObjects(o.Out, c)
	}
	for _, warning := range c.Status.Warnings {
		o.Warn("%s", warning)
	}
	ofPattern := c.Spec.Pattern != nil || c.Spec.PatternName != ""
	names := []string{"Node", "Verdict", "Version", "Namespace", "Reason", "+Message"}
	if ofPattern {
		names = slices.Insert(names, 1, "Service")
	}
	rows := &metav1.Table{ColumnDefinitions: kit.Columns(names...)}
	for i := range c.Status.Nodes {
		for _, cells := range nodeRows(&c.Status.Nodes[i], ofPattern) {
			rows.Rows = append(rows.Rows, metav1.TableRow{Cells: cells})
		}
	}
	if len(rows.Rows) > 0 {
		if err := o.out.PrintRows(o.Out, rows); err != nil {
			return err
		}
	}
	l := &kit.Lines{Out: o.Out}
	total := c.Status.Selected
	var others []string
	for _, e := range c.Status.Excluded {
		total += e.Nodes
		others = append(others, fmt.Sprintf("%s %d", e.Reason, e.Nodes))
	}
	l.Printf("It would be deployed to %d of %d nodes.", c.Status.Selected, total)
	if len(others) > 0 {
		l.Printf("Not to the others: %s.", strings.Join(others, ", "))
	}
	if hidden := int(total) - len(c.Status.Nodes); hidden > 0 && c.Status.Continue == "" {
		l.Printf("%d of the nodes are not shown: you see nodes of which you may get the cluster, by its name or by a set (managedclustersets/clusters).", hidden)
	}
	return l.Err
}

// nodeRows returns the rows of a node: one, or for a pattern one for each of its services.
func nodeRows(n *api.NodeVerdict, ofPattern bool) (rows [][]any) {
	verdict := map[bool]string{true: "yes", false: "no"}
	row := func(service string, deployable bool, version, namespace, reason, message string) {
		cells := []any{n.Node, verdict[deployable], dash(version), dash(namespace), dash(reason), dash(message)}
		if ofPattern {
			cells = slices.Insert(cells, 1, any(dash(service)))
		}
		rows = append(rows, cells)
	}
	if len(n.Services) == 0 {
		row("", n.Deployable, "", "", n.Reason, n.Message)
	}
	for i := range n.Services {
		s := &n.Services[i]
		row(s.Name, s.Deployable, s.Version, s.TargetNamespace, s.Reason, s.Message)
	}
	return rows
}

func dash(text string) string { return cmp.Or(text, "-") }

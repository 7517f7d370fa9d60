// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeagents

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// Constraints by which the examples choose nodes.
const (
	ofTheCluster   = "openhorizon.kubernetesNamespaceScoped == false"
	ofOneNamespace = "openhorizon.kubernetesNamespaceScoped == true"
	inXYZ          = "openhorizon.kubernetesNamespace == xyz"
	retail         = "purpose == retail"
)

// examples runs the eight examples of the design, in its order: four for the node of the whole cluster, and four for that of a namespace. The outcome
// agrees with the output of deploycheck.
func (w *world) examples() {
	w.mustAs(owner, "", "patch", "edgenode", ofABC, "--type=json",
		"-p", `[{"op":"add","path":"/spec/properties","value":[{"name":"purpose","value":"retail"}]}]`)
	constrained, other, embeds := edge.PolicyConstraint, edge.OtherClusterNamespace, edge.OtherEmbeddedNamespace
	for i, e := range []struct {
		clusterNamespace, embedded string
		constraints                []string
		// goes is the namespace of the service, and the reasons tell for each node whether it gets the service, or why not.
		goes           string
		rome, abc, xyz edge.Reason
		// conflict reports whether a warning is expected.
		conflict bool
	}{
		{"", "", []string{ofTheCluster}, byDefault, edge.Fits, constrained, constrained, false},
		{"abc", "", []string{ofTheCluster}, "abc", edge.Fits, constrained, other, false},
		{"", "xyz", []string{ofTheCluster}, "xyz", edge.Fits, embeds, constrained, false},
		{"abc", "xyz", []string{ofTheCluster}, "abc", edge.Fits, constrained, other, false},

		{"abc", "", []string{ofOneNamespace}, "abc", constrained, edge.Fits, other, false},
		{"", "", []string{ofOneNamespace, retail}, "abc", constrained, edge.Fits, constrained, false},
		{"", "", []string{ofOneNamespace, retail, inXYZ}, "", constrained, constrained, constrained, false},
		{"abc", "", []string{inXYZ}, "", constrained, constrained, other, true},
	} {
		p := policy{name: fmt.Sprintf("example-%d", i+1), service: fmt.Sprintf("example-%d", i+1), versions: oneVersion,
			clusterNamespace: e.clusterNamespace, constraints: e.constraints}
		w.Logf("Example %d", i+1)
		if said := w.service(p.service, "1.0.0", e.embedded); strings.Contains(said, "Warning") != (e.embedded != "") {
			w.Errorf("of an archive that names the namespace %q it is said: %s", e.embedded, said)
		}
		node := []string{whole, ofABC, ofXYZ}
		reasons := []edge.Reason{e.rome, e.abc, e.xyz}
		w.checked(p, e.goes, node, reasons)

		warned := w.write(p)
		if strings.Contains(warned, "Warning") != e.conflict {
			w.Errorf("of the policy it is said: %s", warned)
		}
		if e.goes == "" {
			w.judged(p.name, 0, counted(reasons)...)
			w.placed(p.name)
			w.lands(p.service)
			continue
		}
		on := node[slices.Index(reasons, edge.Fits)]
		w.placed(p.name, on+" 1.0.0 "+e.goes+" Running")
		w.judged(p.name, 1, counted(reasons)...)
		w.lands(p.service, e.goes+" 1.0.0")
	}

	w.Log("The warning comes with every write, and names the check")
	p := policy{name: "example-8", service: "example-8", versions: oneVersion, clusterNamespace: "abc", constraints: []string{inXYZ, retail}}
	for range 2 {
		harness.Contains(w.T, w.write(p), "Warning: ", "deploycheck", "abc")
		p.constraints = append(p.constraints, "purpose == retail OR purpose == lab")
	}
	p.clusterNamespace = "xyz"
	if said := w.write(p); strings.Contains(said, "Warning") {
		w.Errorf("a policy without a conflict: %s", said)
	}
	for i := range 8 {
		w.mustAs(deployer, "", "delete", "deploymentpolicy", fmt.Sprintf("example-%d", i+1), "-n", shop)
	}
	for i := range 8 {
		w.lands(fmt.Sprintf("example-%d", i+1))
	}
}

// counted returns how many nodes each rule excludes, by the name of the rule.
func counted(reasons []edge.Reason) (all []string) {
	count := map[edge.Reason]int{}
	for _, r := range reasons {
		if r != edge.Fits {
			count[r]++
		}
	}
	for r, n := range count {
		all = append(all, fmt.Sprintf("%s=%d", r, n))
	}
	slices.Sort(all)
	return all
}

// checked runs deploycheck as the deployer for a policy that does not exist.
func (w *world) checked(p policy, goes string, nodes []string, reasons []edge.Reason) {
	w.Helper()
	var want []string
	for i, node := range nodes {
		if reasons[i] == edge.Fits {
			want = append(want, node+" yes 1.0.0 "+goes+" -")
			continue
		}
		want = append(want, fmt.Sprintf("%s no - - %s", node, reasons[i]))
	}
	table, code := w.deployCheck(p)
	var rows []string
	for _, line := range strings.Split(table, "\n") {
		if row := strings.Join(strings.Fields(line), " "); slices.Contains(nodes, strings.SplitN(row, " ", 2)[0]) {
			rows = append(rows, row)
		}
	}
	if wanted := map[bool]int{true: 0, false: 2}[goes != ""]; code != wanted || !slices.Equal(rows, want) {
		w.Errorf("the check ends with %d and says\n%s\nwant %d and\n%s", code, table, wanted, strings.Join(want, "\n"))
	}
	var check edgev1alpha1.DeployCheck
	printed, inJSON := w.deployCheck(p, "-o", "json")
	if err := json.Unmarshal([]byte(printed), &check); err != nil || inJSON != code || len(check.Status.Nodes) != len(nodes) || check.Status.Deployable != (goes != "") {
		w.Fatalf("as JSON it ends with %d and says %v: %s", inJSON, err, printed)
	}
	for i, verdict := range check.Status.Nodes {
		if verdict.Node != nodes[i] || verdict.Deployable != (reasons[i] == edge.Fits) || !verdict.Deployable && verdict.Reason != string(reasons[i]) ||
			verdict.Deployable && verdict.Services[0].TargetNamespace != goes {
			w.Errorf("as JSON it says %+v", verdict)
		}
	}
}

// deployCheck returns the output of kubectl hub deploycheck for the deployer, and its exit code.
func (w *world) deployCheck(p policy, args ...string) (stdout string, code int) {
	w.Helper()
	stdout, stderr, err := w.admins.Run(w.T, append([]string{"deploycheck", "-f", w.file(p), "-n", shop, "--context", "hub", "--as", deployer}, args...)...)
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() == 2:
		return stdout, 2
	case err != nil:
		w.Fatalf("kubectl hub deploycheck: %v: %s%s", err, stdout, stderr)
	}
	return stdout, 0
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"encoding/csv"
	"os"
	"slices"
	"strings"
	"testing"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/constraint"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// world is a node and a deployment. By default everything fits.
type world struct {
	node       NodeSpec
	deployment DeploymentSpec
}

// newWorld returns a world in which the node is a cluster with an agent in that namespace, and the policy has one version.
func newWorld(scope Scope, namespace string) *world {
	return &world{
		node: NodeSpec{Name: "n", Type: Cluster, Facts: Facts{Arch: "amd64", Scope: scope, Namespace: namespace}},
		deployment: DeploymentSpec{Name: "p", Org: "org", Service: "s", Choices: []Choice{{Version: "1.0.0"}},
			Services: []Service{service("1.0.0")}},
	}
}

// service returns a version whose archive names these namespaces.
func service(version string, namespaces ...string) Service {
	slices.Sort(namespaces)
	return Service{Org: "org", Name: "s", Version: version, Arch: "amd64", ForClusters: true,
		Contents: &archive.Contents{Namespaces: namespaces, Objects: []archive.Object{{Group: "apps", Kind: "Deployment", Name: "s", Scope: archive.Namespaced}}}}
}

func (w *world) device() *world {
	w.node.Type = Device
	w.node.Facts.Scope, w.node.Facts.Namespace = "", ""
	w.deployment.Services[0].ForDevices = true
	return w
}

func (w *world) pattern() *world {
	w.deployment.Pattern, w.node.Pattern = true, w.deployment.Name
	return w
}

func (w *world) to(clusterNamespace string) *world {
	w.deployment.ClusterNamespace = clusterNamespace
	return w
}

func (w *world) embedded(namespaces ...string) *world {
	w.deployment.Services[0].Contents.Namespaces = namespaces
	return w
}

func (w *world) constraints(expressions ...string) *world {
	w.deployment.Policy.Constraints = expressions
	return w
}

func (w *world) has(name string, value any) *world {
	w.node.Policy.Properties = append(w.node.Policy.Properties, constraint.Property{Name: name, Value: value})
	return w
}

func (w *world) decide(t testing.TB) Decision {
	t.Helper()
	n, d := w.read(t)
	return Decide(n, d)
}

func (w *world) read(t testing.TB) (*Node, *Deployment) {
	t.Helper()
	n, err := NewNode(w.node)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDeployment(w.deployment)
	if err != nil {
		t.Fatal(err)
	}
	return n, d
}

// expect checks a decision: with the reason Fits, the last argument is the namespace.
func expect(t testing.TB, got Decision, reason Reason, namespace string) {
	t.Helper()
	if got.Reason != reason || got.Namespace != namespace || got.Compatible != (reason == Fits) {
		t.Errorf("got %s in %q (%s), want %s in %q", got.Reason, got.Namespace, got.Message, reason, namespace)
	}
	if got.Message == "" || !got.Compatible && got.Version != "" {
		t.Errorf("a decision without a message, or with a version that is not deployed: %+v", got)
	}
}

// The rows of Open Horizon's rule: all combinations of scope, namespace of the agent, pattern, clusterNamespace and embedded namespace.
func TestDecide_NamespaceMatrix(t *testing.T) {
	file, err := os.Open("testdata/namespace-matrix.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table := csv.NewReader(file)
	table.Comma = '\t'
	rows, err := table.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows = rows[1:]
	if len(rows) != 72 {
		t.Fatalf("the matrix has %d rows, and should have 72", len(rows))
	}
	reasons := map[string][]Reason{
		"pattern":         {PatternWithoutNamespace, PatternOtherNamespace, PatternWithNamespace},
		"svc!=agent":      {OtherEmbeddedNamespace},
		"deployer!=agent": {OtherClusterNamespace},
	}
	for _, row := range rows {
		t.Run(strings.Join(row[:5], "/"), func(t *testing.T) {
			// The matrix has names with capital letters, which are not valid for namespaces.
			lower := func(i int) string { return strings.ToLower(row[i]) }
			scope := ClusterScoped
			if row[0] == "true" {
				scope = NamespaceScoped
			}
			w := newWorld(scope, LegacyNamespace(lower(1))).to(lower(3))
			if row[2] != "" {
				w.pattern()
			}
			if row[4] != "" {
				w.embedded(lower(4))
			}
			got := w.decide(t)
			if row[5] == "true" {
				expect(t, got, Fits, lower(6))
				return
			}
			if !slices.Contains(reasons[row[6]], got.Reason) {
				t.Errorf("got %s (%s), want one of %v", got.Reason, got.Message, reasons[row[6]])
			}
			expect(t, got, got.Reason, "")
		})
	}
}

const ns = api.PropertyKubernetesNamespace

// The examples of the design of Open Horizon (S), what it leaves to others (D), and patterns (P).
func TestDecide_Cases(t *testing.T) {
	const agent = DefaultNamespace
	cluster := func() *world { return newWorld(ClusterScoped, agent) }
	scoped := func() *world { return newWorld(NamespaceScoped, "abc") }
	for name, test := range map[string]struct {
		world     *world
		reason    Reason
		namespace string
	}{
		"S1": {cluster(), Fits, agent},
		"S2": {cluster().to("abc"), Fits, "abc"},
		"S3": {cluster().embedded("xyz"), Fits, "xyz"},
		"S4": {cluster().to("abc").embedded("xyz"), Fits, "abc"},
		"S5": {scoped().to("abc"), Fits, "abc"},
		"S6": {scoped(), Fits, "abc"},
		"S7": {scoped().constraints(ns + "==xyz"), PolicyConstraint, ""},
		"S8": {scoped().to("abc").constraints(ns + "==xyz"), PolicyConstraint, ""},

		"D1":             {newWorld(ClusterScoped, "qa"), Fits, "qa"},
		"D2":             {cluster().to("abc").constraints(ns + "==abc"), PolicyConstraint, ""},
		"D3":             {cluster().to("abc").constraints(ns + "==" + agent), Fits, "abc"},
		"D4":             {cluster().to("abc").constraints(ns + " != abc"), Fits, "abc"},
		"D5":             {cluster().to("abc").has("purpose", "t").constraints("purpose==t && " + ns + "==another"), PolicyConstraint, ""},
		"D6":             {scoped().embedded("xyz"), OtherEmbeddedNamespace, ""},
		"D7":             {scoped().embedded("abc"), Fits, "abc"},
		"D8":             {scoped().to("abc").embedded("xyz"), Fits, "abc"},
		"D9":             {scoped().to("xyz"), OtherClusterNamespace, ""},
		"D9 embedded":    {scoped().to("xyz").embedded("abc"), OtherClusterNamespace, ""},
		"D10":            {scoped().to("abc").constraints(ns + ` in "abc,xyz"`), Fits, "abc"},
		"D11":            {scoped().to("abc").constraints(ns + ` in "qq,xyz"`), PolicyConstraint, ""},
		"D12":            {scoped().to("abc").has("purpose", "t").constraints(ns + "==xyz OR purpose==t"), Fits, "abc"},
		"D13":            {scoped().to("abc").has("purpose", "t").constraints("purpose==nope OR " + ns + "==xyz"), PolicyConstraint, ""},
		"D14":            {scoped().to("abc").constraints(ns+"==abc", ns+"==xyz"), PolicyConstraint, ""},
		"D15":            {scoped().to("abc").constraints(api.PropertyKubernetesNamespaceScoped + "==false"), PolicyConstraint, ""},
		"D15 cluster":    {cluster().to("abc").constraints(api.PropertyKubernetesNamespaceScoped + "==false"), Fits, "abc"},
		"D16":            {scoped().constraints(ns + " != xyz"), Fits, "abc"},
		"D18":            {newWorld(NamespaceScoped, LegacyNamespace("")), Fits, agent},
		"D19":            {cluster().device().to("abc"), Fits, ""},
		"D23":            {cluster().embedded("abc", "xyz"), SeveralNamespaces, ""},
		"D23 scoped":     {scoped().embedded("abc", "xyz"), SeveralNamespaces, ""},
		"D23 overridden": {cluster().to("qq").embedded("abc", "xyz"), Fits, "qq"},

		"P1":       {cluster().pattern(), Fits, agent},
		"P2":       {cluster().pattern().embedded("xyz"), Fits, "xyz"},
		"P3":       {cluster().pattern().to("abc"), PatternWithNamespace, ""},
		"P3 agent": {cluster().pattern().to(agent), PatternWithNamespace, ""},
		"P4":       {scoped().pattern(), PatternWithoutNamespace, ""},
		"P5":       {scoped().pattern().to("abc"), Fits, "abc"},
		"P5 same":  {scoped().pattern().to("abc").embedded("abc"), Fits, "abc"},
		"P5 other": {scoped().pattern().to("abc").embedded("xyz"), Fits, "abc"},
		"P6":       {scoped().pattern().to("xyz"), PatternOtherNamespace, ""},
		"P9":       {cluster().pattern().device().to("abc"), Fits, ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, test.world.decide(t), test.reason, test.namespace) })
	}
}

// D17: an unquoted name that begins with a digit is not an expression.
func TestNewDeployment_InvalidConstraint(t *testing.T) {
	if _, err := NewDeployment(newWorld(ClusterScoped, "abc").constraints(ns + " == 5g-edge").deployment); err == nil || !strings.Contains(err.Error(), "policy p: constraints: ") {
		t.Errorf("got %v", err)
	}
	w := newWorld(ClusterScoped, "abc")
	w.deployment.Service = "other"
	if _, err := NewDeployment(w.deployment); err == nil || !strings.Contains(err.Error(), "is not service other") {
		t.Errorf("got %v", err)
	}
	expect(t, newWorld(NamespaceScoped, "5g-edge").constraints(ns+` == "5g-edge"`).decide(t), Fits, "5g-edge")
}

// D20: clusterNamespace is ignored for a service that is for devices alone, and D22: the namespace of the archive is used if no other is set.
func TestDecide_NodeTypes(t *testing.T) {
	w := newWorld(ClusterScoped, "").device().to("abc")
	w.deployment.Services[0].ForClusters, w.deployment.Services[0].Contents = false, nil
	expect(t, w.decide(t), Fits, "")
	w = newWorld(ClusterScoped, "abc")
	w.deployment.Services[0].ForClusters = false
	expect(t, w.decide(t), NotForClusters, "")
	w = newWorld(ClusterScoped, "abc").device()
	w.deployment.Services[0].ForDevices = false
	expect(t, w.decide(t), NotForDevices, "")
	w = newWorld(ClusterScoped, "abc")
	w.deployment.Services[0].Contents = nil
	expect(t, w.decide(t), ArchiveUnreadable, "")
	w = newWorld(ClusterScoped, "abc")
	w.node.Type = "robot"
	expect(t, w.decide(t), TypeUnknown, "")
}

// P7 and P8: each service of a pattern is decided separately, so all are deployed to the namespace of the pattern, or each to its own.
func TestDecide_ServicesOfPattern(t *testing.T) {
	for _, embedded := range [][]string{nil, {"xyz"}} {
		expect(t, newWorld(NamespaceScoped, "abc").pattern().to("abc").embedded(embedded...).decide(t), Fits, "abc")
	}
	for _, embedded := range []string{"xxx", "yyy"} {
		expect(t, newWorld(ClusterScoped, "abc").pattern().embedded(embedded).decide(t), Fits, embedded)
	}
}

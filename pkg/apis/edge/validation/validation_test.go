// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/install"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// languages refuse what has the word "bad" in it.
var languages = Languages{Constraint: notBad, Constraints: fewTogether, VersionRange: notBad}

// fewTogether refuses lists that have more than one "much" in them.
func fewTogether(expressions []string) error {
	if strings.Count(strings.Join(expressions, " "), "much") > 1 {
		return errors.New("expected few, got many")
	}
	return nil
}

func notBad(text string) error {
	if strings.Contains(text, "bad") {
		return errors.New("expected good, got bad")
	}
	return nil
}

// row is an object with one change, and the field that is wrong then; empty if nothing is.
type row[T any] struct {
	what   string
	change func(*T)
	field  string
}

// try validates as the API server does: the declared bounds, and then the rest.
func try[T any](t *testing.T, rows []row[T], valid func() *T, validate func(*T) field.ErrorList) {
	t.Helper()
	for _, r := range rows {
		object := valid()
		r.change(object)
		errs := bounds.Declared(t.Context(), scheme, v1alpha1.SchemeGroupVersion, any(object).(runtime.Object), nil)
		if len(errs) == 0 {
			errs = validate(object)
		}
		switch {
		case r.field == "" && len(errs) > 0:
			t.Errorf("%s: %v", r.what, errs)
		case r.field != "" && (len(errs) == 0 || !strings.HasPrefix(errs[0].Field, r.field)):
			t.Errorf("%s: %v, want a fault of %s", r.what, errs, r.field)
		}
	}
}

func text(s string) edge.Value    { return edge.Value{Type: edge.ValueString, String: s} }
func number(n float64) edge.Value { return edge.Value{Type: edge.ValueNumber, Number: n} }
func long(n int) string           { return strings.Repeat("a", n) }
func filled[T any](n int, of T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = of
	}
	return list
}

func node() *edge.EdgeNode {
	return &edge.EdgeNode{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", ResourceVersion: "1"},
		Spec: edge.EdgeNodeSpec{
			NodeType: edge.NodeTypeCluster, Pattern: "shop/all", Label: "l",
			Policy:     edge.Policy{Properties: []edge.Property{{Name: "purpose", Value: text("retail")}}, Constraints: []string{"a == b"}},
			Deployment: &edge.Policy{Properties: []edge.Property{{Name: "purpose", Value: text("other")}}},
		},
	}
}

func TestValidateEdgeNode(t *testing.T) {
	property := func(p edge.Property) func(*edge.EdgeNode) {
		return func(n *edge.EdgeNode) { n.Spec.Properties = []edge.Property{p} }
	}
	const value, name = "spec.properties[0].value", "spec.properties[0].name"
	try(t, []row[edge.EdgeNode]{
		{"valid", func(*edge.EdgeNode) {}, ""},
		{"a name with dots", func(n *edge.EdgeNode) { n.Name = "c1.example.com" }, "metadata.name"},
		{"a namespace", func(n *edge.EdgeNode) { n.Namespace = "a" }, "metadata.namespace"},
		{"a device", func(n *edge.EdgeNode) { n.Spec.NodeType = edge.NodeTypeDevice }, ""},
		{"another type", func(n *edge.EdgeNode) { n.Spec.NodeType = "Cluster" }, "spec.nodeType"},
		{"a pattern without namespace", func(n *edge.EdgeNode) { n.Spec.Pattern = "all" }, "spec.pattern"},
		{"a pattern that climbs", func(n *edge.EdgeNode) { n.Spec.Pattern = "shop/../all" }, "spec.pattern"},
		{"a long label", func(n *edge.EdgeNode) { n.Spec.Label = long(254) }, "spec.label"},
		{"a long description", func(n *edge.EdgeNode) { n.Spec.Description = long(4097) }, "spec.description"},
		{"a bad constraint", func(n *edge.EdgeNode) { n.Spec.Constraints = []string{"a == b", "bad"} }, "spec.constraints[1]"},
		{"a bad constraint in an overlay", func(n *edge.EdgeNode) { n.Spec.Deployment.Constraints = []string{"bad"} }, "spec.deployment.constraints[0]"},
		{"a bad constraint in the other", func(n *edge.EdgeNode) { n.Spec.Management = &edge.Policy{Constraints: []string{"bad"}} }, "spec.management.constraints[0]"},
		{"constraints that are much together", func(n *edge.EdgeNode) { n.Spec.Constraints = []string{"much", "a == b", "much"} }, "spec.constraints"},
		{"a long constraint", func(n *edge.EdgeNode) { n.Spec.Constraints = []string{long(4097)} }, "spec.constraints[0]"},
		{"many constraints", func(n *edge.EdgeNode) { n.Spec.Constraints = filled(65, "a == b") }, "spec.constraints"},
		{"many properties", func(n *edge.EdgeNode) { n.Spec.Properties = filled(129, edge.Property{Name: "a", Value: number(1)}) }, "spec.properties"},
		{"a property twice", func(n *edge.EdgeNode) { n.Spec.Properties = filled(2, edge.Property{Name: "a", Value: number(1)}) }, "spec.properties[1]"},
		{"a property without name", property(edge.Property{Value: number(1)}), name},
		{"a long name", property(edge.Property{Name: long(129), Value: number(1)}), name},
		{"a name in another script", property(edge.Property{Name: "店舗€", Value: number(1)}), ""},
		{"a name with a space", property(edge.Property{Name: "a b", Value: number(1)}), name},
		{"a name with an operator", property(edge.Property{Name: "a==b", Value: number(1)}), name},
		{"a name that is a number", property(edge.Property{Name: "5g", Value: number(1)}), name},
		{"a name that is a negative number", property(edge.Property{Name: "-5", Value: number(1)}), name},
		{"an operator", property(edge.Property{Name: "in", Value: number(1)}), name},
		{"a name that begins as an operator", property(edge.Property{Name: "inside", Value: number(1)}), ""},
		{"another type", property(edge.Property{Name: "a", Value: number(1), Type: "integer"}), "spec.properties[0].type"},
		{"no value", property(edge.Property{Name: "a"}), value},
		{"a list", property(edge.Property{Name: "a", Value: edge.Value{Type: edge.ValueList}}), value},
		{"a long value", property(edge.Property{Name: "a", Value: text(long(1025))}), value},
		{"a string", property(edge.Property{Name: "a", Value: text("x"), Type: edge.PropertyString}), ""},
		{"a string that is a number", property(edge.Property{Name: "a", Value: number(1), Type: edge.PropertyString}), value},
		{"a list of strings", property(edge.Property{Name: "a", Value: text("x,y"), Type: edge.PropertyList}), ""},
		{"a version", property(edge.Property{Name: "a", Value: text("1.2.0"), Type: edge.PropertyVersion}), ""},
		{"a version with a leading zero", property(edge.Property{Name: "a", Value: text("1.02"), Type: edge.PropertyVersion}), value},
		{"a version before its release", property(edge.Property{Name: "a", Value: text("1.2.0-rc1"), Type: edge.PropertyVersion}), value},
		{"a version that is a number", property(edge.Property{Name: "a", Value: number(1), Type: edge.PropertyVersion}), value},
		{"a boolean", property(edge.Property{Name: "a", Value: edge.Value{Type: edge.ValueBoolean}, Type: edge.PropertyBoolean}), ""},
		{"a quoted boolean", property(edge.Property{Name: "a", Value: text("true"), Type: edge.PropertyBoolean}), value},
		{"an int", property(edge.Property{Name: "a", Value: number(-3), Type: edge.PropertyInt}), ""},
		{"an int with a fraction", property(edge.Property{Name: "a", Value: number(1.5), Type: edge.PropertyInt}), value},
		{"a float", property(edge.Property{Name: "a", Value: number(1.5), Type: edge.PropertyFloat}), ""},
		{"a quoted float", property(edge.Property{Name: "a", Value: text("1.5"), Type: edge.PropertyFloat}), value},
	}, node, func(n *edge.EdgeNode) field.ErrorList { return ValidateEdgeNode(n, languages) })
}

func TestValidateEdgeNodeStatusUpdate(t *testing.T) {
	one, none := int64(1), int64(0)
	scoped := true
	try(t, []row[edge.EdgeNode]{
		{"nothing is known", func(*edge.EdgeNode) {}, ""},
		{"all is known", func(n *edge.EdgeNode) {
			n.Status = edge.EdgeNodeStatus{Arch: "amd64", CPU: &one, Memory: &one, KubernetesVersion: "v1.29.1-eks-508b6b3", Namespace: "blue", NamespaceScoped: &scoped, ClusterID: "a-b"}
		}, ""},
		{"no CPU", func(n *edge.EdgeNode) { n.Status.CPU = &none }, "status.cpu"},
		{"no memory", func(n *edge.EdgeNode) { n.Status.Memory = &none }, "status.memory"},
		{"an upper-case namespace", func(n *edge.EdgeNode) { n.Status.Namespace = "ABC" }, "status.namespace"},
		{"a scope without a namespace", func(n *edge.EdgeNode) { n.Status.NamespaceScoped = &scoped }, "status.namespace"},
		{"a version with a line end", func(n *edge.EdgeNode) { n.Status.KubernetesVersion = "v1\n" }, "status.kubernetesVersion"},
		{"a long id", func(n *edge.EdgeNode) { n.Status.ClusterID = long(254) }, "status.clusterID"},
		{"an arch with spaces", func(n *edge.EdgeNode) { n.Status.Arch = "amd 64" }, "status.arch"},
		{"any arch", func(n *edge.EdgeNode) { n.Status.Arch = "*" }, "status.arch"},
		{"an object without name", func(n *edge.EdgeNode) { n.Status.ClusterObjects = []edge.ClusterScopedObject{{Kind: "A"}} }, "status.clusterObjects[0].name"},
		{"many objects", func(n *edge.EdgeNode) { n.Status.ClusterObjects = make([]edge.ClusterScopedObject, 257) }, "status.clusterObjects"},
	}, node, func(n *edge.EdgeNode) field.ErrorList { return ValidateEdgeNodeStatusUpdate(n, node()) })
}

// A stored spec that a later version of the hub would refuse can still be labelled, and lose its finalizers.
func TestUpdates_ValidateOnlyChangedSpec(t *testing.T) {
	n := node()
	n.Spec.Constraints = []string{"bad"}
	labelled := n.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	if errs := ValidateEdgeNodeUpdate(labelled, n, languages); len(errs) > 0 {
		t.Error(errs)
	}
	labelled.Spec.Label = "changed"
	if errs := ValidateEdgeNodeUpdate(labelled, n, languages); len(errs) != 1 {
		t.Error(errs)
	}
}

func TestLanguages_AreRequired(t *testing.T) {
	if errs := ValidateEdgeNode(node(), Languages{}); len(errs) != 1 {
		t.Errorf("got %v", errs)
	}
}

func service() *edge.EdgeService {
	return &edge.EdgeService{
		ObjectMeta: metav1.ObjectMeta{Name: "web--1.0.0--amd64", Namespace: "shop", ResourceVersion: "1"},
		Spec: edge.EdgeServiceSpec{
			URL: "web", Version: "1.0.0", Arch: "amd64", UserInput: []edge.Variable{{Name: "A", Type: edge.PropertyInt}},
			ClusterDeployment: &edge.ClusterDeployment{OperatorYamlArchive: []byte("x")},
		},
	}
}

func TestValidateEdgeService(t *testing.T) {
	rename := func(url, version, arch string) func(*edge.EdgeService) {
		return func(s *edge.EdgeService) {
			s.Name, s.Spec.URL, s.Spec.Version, s.Spec.Arch = edge.ServiceName(url, version, arch), url, version, arch
		}
	}
	try(t, []row[edge.EdgeService]{
		{"valid", func(*edge.EdgeService) {}, ""},
		{"another name", func(s *edge.EdgeService) { s.Name = "web" }, "metadata.name"},
		{"a url", rename("https://example.com/Web", "1.0.0", "amd64"), ""},
		{"no url", rename("", "1.0.0", "amd64"), "spec.url"},
		{"a url with a space", rename("a b", "1.0.0", "amd64"), "spec.url"},
		{"a long url", rename(long(254), "1.0.0", "amd64"), "spec.url"},
		{"a short version", rename("web", "1", "amd64"), ""},
		{"a version before its release", rename("web", "1.0.0-rc.1", "amd64"), ""},
		{"a version with four parts", rename("web", "1.0.0.0", "amd64"), "spec.version"},
		{"a range", rename("web", "[1.0.0,2.0.0)", "amd64"), "spec.version"},
		{"any arch", rename("web", "1.0.0", "*"), ""},
		{"no arch", rename("web", "1.0.0", ""), "spec.arch"},
		{"a variable twice", func(s *edge.EdgeService) { s.Spec.UserInput = filled(2, edge.Variable{Name: "A"}) }, "spec.userInput[1]"},
		{"many variables", func(s *edge.EdgeService) { s.Spec.UserInput = filled(129, edge.Variable{Name: "A"}) }, "spec.userInput"},
		{"a variable of another type", func(s *edge.EdgeService) { s.Spec.UserInput[0].Type = edge.PropertyVersion }, "spec.userInput[0].type"},
		{"nothing to run", func(s *edge.EdgeService) { s.Spec.ClusterDeployment = nil }, "spec.clusterDeployment"},
		{"for devices", func(s *edge.EdgeService) {
			s.Spec.ClusterDeployment, s.Spec.Deployment = nil, &runtime.RawExtension{Raw: []byte("{}")}
		}, ""},
		{"a deployment that is text", func(s *edge.EdgeService) { s.Spec.Deployment = &runtime.RawExtension{Raw: []byte(`"{}"`)} }, "spec.deployment"},
		{"a large deployment", func(s *edge.EdgeService) {
			s.Spec.Deployment = &runtime.RawExtension{Raw: []byte("{" + long(maxDeployment) + "}")}
		}, "spec.deployment"},
		{"an empty archive", func(s *edge.EdgeService) { s.Spec.ClusterDeployment.OperatorYamlArchive = nil }, "spec.clusterDeployment.operatorYamlArchive"},
		{"the largest archive", func(s *edge.EdgeService) { s.Spec.ClusterDeployment.OperatorYamlArchive = make([]byte, MaxArchive) }, ""},
		{"a larger one", func(s *edge.EdgeService) { s.Spec.ClusterDeployment.OperatorYamlArchive = make([]byte, MaxArchive+1) }, "spec.clusterDeployment.operatorYamlArchive"},
		{"a bad policy", func(s *edge.EdgeService) { s.Spec.Policy = &edge.Policy{Constraints: []string{"bad"}} }, "spec.policy.constraints[0]"},
	}, service, func(s *edge.EdgeService) field.ErrorList { return ValidateEdgeService(s, languages) })
}

func TestValidateEdgeServiceUpdate_ServiceIsImmutable(t *testing.T) {
	try(t, []row[edge.EdgeService]{
		{"a label", func(s *edge.EdgeService) { s.Spec.Label = "l" }, ""},
		{"another url", func(s *edge.EdgeService) { s.Spec.URL = "other" }, "spec.url"},
		{"another version", func(s *edge.EdgeService) { s.Spec.Version = "2.0.0" }, "spec.version"},
		{"another arch", func(s *edge.EdgeService) { s.Spec.Arch = "arm64" }, "spec.arch"},
		{"a bad archive", func(s *edge.EdgeService) { s.Spec.ClusterDeployment.OperatorYamlArchive = nil }, "spec.clusterDeployment"},
	}, service, func(s *edge.EdgeService) field.ErrorList { return ValidateEdgeServiceUpdate(s, service(), languages) })
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"slices"
	"strings"
	"testing"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// The warnings when a policy is published, for the cases of Open Horizon. Where its program is wrong, the two hypotheses are right.
func TestAnalyze_Policies(t *testing.T) {
	const (
		none     = ""
		excluded = "all namespace-scoped nodes are excluded"
		nothing  = "nothing can be deployed"
	)
	for name, test := range map[string]struct {
		clusterNamespace string
		constraints      []string
		want             string
	}{
		"no constraint":             {"abc", nil, none},
		"no clusterNamespace, S7":   {"", []string{ns + "==xyz"}, none},
		"S8":                        {"abc", []string{ns + "==xyz"}, excluded},
		"D2":                        {"abc", []string{ns + "==abc"}, none},
		"D3":                        {"abc", []string{ns + "==openhorizon-agent"}, excluded},
		"D4":                        {"abc", []string{ns + " != abc"}, excluded},
		"D5":                        {"abc", []string{"purpose==t && " + ns + "==another"}, excluded},
		"D10":                       {"abc", []string{ns + ` in "abc,xyz"`}, none},
		"D11":                       {"abc", []string{ns + ` in "qq,xyz"`}, excluded},
		"D12":                       {"abc", []string{ns + "==xyz OR purpose==t"}, none},
		"D13":                       {"abc", []string{"purpose==nope OR " + ns + "==xyz"}, none},
		"D14":                       {"abc", []string{ns + "==abc", ns + "==xyz"}, nothing},
		"D14, no clusterNamespace":  {"", []string{ns + "==abc", ns + "==xyz"}, nothing},
		"D15":                       {"abc", []string{api.PropertyKubernetesNamespaceScoped + "==false"}, none},
		"only cluster-scoped nodes": {"abc", []string{api.PropertyKubernetesNamespaceScoped + "==false AND " + ns + "==xyz"}, none},
		"only scoped nodes":         {"abc", []string{api.PropertyKubernetesNamespaceScoped + "==true AND " + ns + "==xyz"}, nothing},
		"scoped nodes, or others":   {"abc", []string{api.PropertyKubernetesNamespaceScoped + "==true OR purpose==t", ns + "==xyz"}, excluded},
		"scoped nodes there":        {"abc", []string{api.PropertyKubernetesNamespaceScoped + "==true", ns + "==abc"}, none},
		"neither":                   {"abc", []string{api.PropertyKubernetesNamespaceScoped + "==true", api.PropertyKubernetesNamespaceScoped + "==false"}, nothing},
		"two lists":                 {"abc", []string{ns + ` in "abc,xyz"`, ns + " != abc"}, excluded},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Analyze(DeploymentSpec{ClusterNamespace: test.clusterNamespace, Policy: Policy{Constraints: test.constraints}})
			if err != nil {
				t.Fatal(err)
			}
			warns(t, a.Warning(), test.want)
		})
	}
	if _, err := Analyze(DeploymentSpec{Policy: Policy{Constraints: []string{"=="}}}); err == nil {
		t.Error("constraints that cannot be read were analyzed")
	}
}

func warns(t *testing.T, got, want string) {
	t.Helper()
	switch {
	case want == "" && got != "":
		t.Errorf("got %q, want no warning", got)
	case !strings.Contains(got, want):
		t.Errorf("got %q, want %q", got, want)
	case want != "" && !strings.Contains(got, "deploycheck"):
		t.Errorf("%q does not lead to deploycheck", got)
	}
}

func TestAnalyze_Services(t *testing.T) {
	asking := func(s Service, constraints ...string) Service {
		s.Policy.Constraints = constraints
		return s
	}
	for name, test := range map[string]struct {
		constraint, clusterNamespace string
		services                     []Service
		want                         string
	}{
		"the archive names another":       {ns + "==abc", "", []Service{service("1.0.0", "xyz")}, "namespace xyz (by the archive of the service)"},
		"the policy has the last word":    {ns + "==abc", "abc", []Service{service("1.0.0", "xyz")}, ""},
		"the archive names the same":      {ns + "==abc", "", []Service{service("1.0.0", "abc")}, ""},
		"a version will do":               {ns + "==abc", "", []Service{service("2.0.0", "xyz"), service("1.0.0")}, ""},
		"a version that is not named":     {ns + "==abc", "", []Service{service("2.0.0", "xyz"), service("9.0.0")}, "by the archive"},
		"several namespaces":              {"", "", []Service{service("1.0.0", "abc", "xyz")}, "names several namespaces"},
		"several, and clusterNamespace":   {"", "abc", []Service{service("1.0.0", "abc", "xyz")}, ""},
		"several, and another version":    {"", "", []Service{service("2.0.0", "abc", "xyz"), service("1.0.0")}, ""},
		"policy and service do not agree": {ns + "==abc", "", []Service{asking(service("1.0.0"), ns+"==xyz")}, "nothing can be deployed"},
		"the service asks for another":    {"", "abc", []Service{asking(service("1.0.0"), ns+"==xyz")}, "namespace abc (by clusterNamespace)"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := DeploymentSpec{ClusterNamespace: test.clusterNamespace, Services: test.services, Choices: []Choice{{"1.0.0", 0}, {"2.0.0", 0}}}
			if test.constraint != "" {
				spec.Policy.Constraints = []string{test.constraint}
			}
			a, err := Analyze(spec)
			if err != nil {
				t.Fatal(err)
			}
			warns(t, a.Warning(), test.want)
		})
	}
}

func TestService_Warnings(t *testing.T) {
	s := service("1.0.0")
	if got := s.Warnings(); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	s = service("1.0.0", "xyz")
	s.Policy.Constraints = []string{ns + "==abc"}
	s.Contents.MakesNamespaces = true
	s.Contents.Ignored = []string{"a", "b", "c", "d"}
	s.Contents.Objects = append(s.Contents.Objects, archive.Object{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "r", Scope: archive.Cluster})
	got := strings.Join(s.Warnings(), "\n")
	for _, want := range []string{"names the namespace xyz", "(ClusterRole.rbac.authorization.k8s.io r)", "kind Namespace", "(a, b, c and 1 more)", "all namespace-scoped nodes are excluded"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	s = service("1.0.0", "abc", "xyz")
	if got := s.Warnings(); len(got) != 2 || !strings.Contains(got[0], "several namespaces (abc, xyz)") {
		t.Errorf("got %v", got)
	}
}

func TestPattern_Check(t *testing.T) {
	// of returns a service whose archive has a Deployment of that name.
	of := func(name, object string, namespaces ...string) PatternService {
		s := service("1.0.0", namespaces...)
		s.Name = name
		s.Contents.Objects[0].Name = object
		return PatternService{Org: s.Org, Name: name, Services: []Service{s}}
	}
	with := func(s PatternService, change func(*Service)) PatternService {
		change(&s.Services[0])
		return s
	}
	clusterRole := func(s *Service) {
		s.Contents.Objects = append(s.Contents.Objects, archive.Object{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "r", Scope: archive.Cluster})
	}
	device := func(s *Service) { s.ForClusters, s.ForDevices, s.Contents = false, true, nil }
	for name, test := range map[string]struct {
		clusterNamespace string
		services         []PatternService
		fault, warning   string
	}{
		"P7: none and another":                     {"abc", []PatternService{of("a", "a"), of("b", "b", "xyz")}, "", "names the namespace xyz in its archive, and goes to abc"},
		"the same":                                 {"abc", []PatternService{of("a", "a", "abc")}, "", ""},
		"P8: each to its own":                      {"", []PatternService{of("a", "x", "xxx"), of("b", "x", "yyy")}, "", ""},
		"both would have one object":               {"abc", []PatternService{of("a", "x", "xxx"), of("b", "x", "yyy")}, "both have Deployment.apps x", "goes to abc"},
		"both, in the namespace of the agent":      {"", []PatternService{of("a", "x"), of("b", "x")}, "both have Deployment.apps x", ""},
		"both, in the one that both name":          {"", []PatternService{of("a", "x", "xxx"), of("b", "x", "xxx")}, "both have Deployment.apps x", ""},
		"both, for other architectures":            {"abc", []PatternService{of("a", "x"), with(of("b", "x"), func(s *Service) { s.Arch = "arm64" })}, "", ""},
		"both, for one and for all":                {"abc", []PatternService{of("a", "x"), with(of("b", "x"), func(s *Service) { s.Arch = AnyArch })}, "both have", ""},
		"both, of the cluster":                     {"abc", []PatternService{with(of("a", "x"), clusterRole), with(of("b", "y"), clusterRole)}, "", ""},
		"several namespaces":                       {"", []PatternService{of("a", "a", "xxx", "yyy")}, "names several namespaces, so it cannot go to one", ""},
		"several namespaces, and clusterNamespace": {"abc", []PatternService{of("a", "a", "xxx", "yyy")}, "", ""},
		"nothing for clusters":                     {"abc", []PatternService{with(of("a", "a"), device)}, "no service has a clusterDeployment", ""},
		"nothing for clusters, and no namespace":   {"", []PatternService{with(of("a", "a"), device)}, "", ""},
		"something for clusters":                   {"abc", []PatternService{with(of("a", "a"), device), of("b", "b")}, "", ""},
		"services that are not there":              {"abc", []PatternService{{Name: "a"}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				p := Pattern{ClusterNamespace: test.clusterNamespace, Services: test.services}
				faults, warnings := p.Check()
				if (test.fault == "") != (len(faults) == 0) || !strings.Contains(strings.Join(faults, "\n"), test.fault) {
					t.Errorf("got the faults %q, want %q", faults, test.fault)
				}
				if (test.warning == "") != (len(warnings) == 0) || !strings.Contains(strings.Join(warnings, "\n"), test.warning) {
					t.Errorf("got the warnings %q, want %q", warnings, test.warning)
				}
				slices.Reverse(test.services)
			}
		})
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/command"
)

// atHub are the commands that use a hub, each with its required arguments.
var atHub = map[string][]string{
	"init": {"init"}, "get token": {"get", "token"}, "get clusters": {"get", "clusters"}, "get clustersets": {"get", "clustersets"},
	"members": {"members", "s"}, "label": {"label", "c1", "a=b"}, "accept": {"accept", "--clusters", "c1"},
	"deny": {"deny", "-c", "c1"}, "create clusterset": {"create", "clusterset", "s"}, "delete clusterset": {"delete", "clusterset", "s"},
	"delete cluster": {"delete", "cluster", "c1"}, "bind": {"bind", "s"}, "unbind": {"clusterset", "unbind", "s"},
	"access":      {"access", "blue", "-n", "teams", "--cluster-role", "view"},
	"deploycheck": {"deploycheck", "--policy", "web", "-n", "shop"},
	"tree set":    {"tree", "set", "s"}, "tree cluster": {"tree", "cluster", "c1"}, "tree placement": {"tree", "placement", "web", "-n", "dev"},
	"top clusters": {"top", "clusters"}, "top sets": {"top", "sets"}, "top agents": {"top", "agents"},
	"why member": {"why", "member", "c1", "--set", "s"}, "why access": {"why", "access", "dana", "get", "set/s"},
	"why placement": {"why", "placement", "web", "-n", "dev", "--cluster", "c1"},
}

// TestHub_UnreachableHub verifies that each command that uses a hub prints in one line why the hub cannot be reached, and what to do, and that
// it changes nothing.
func TestHub_UnreachableHub(t *testing.T) {
	const discovery = "GET /apis/cluster.open-cluster-management.io/v1"
	for name, test := range map[string]struct {
		context string
		server  func(*clitest.Server)
		more    []string
		want    []string
	}{
		"nothing there":  {context: "dead", want: []string{"https://127.0.0.1:1 cannot be reached", "connection refused", "check --context"}},
		"no such host":   {context: "nohost", want: []string{"https://hub.invalid cannot be reached", "check --context"}},
		"another CA":     {context: "noca", want: []string{"is not trusted", "certificate signed by unknown authority", "check --context"}},
		"not TLS":        {context: "plain", want: []string{"does not speak TLS", "check --context"}},
		"no credentials": {server: func(s *clitest.Server) { s.Refuse(discovery, apierrors.NewUnauthorized("Unauthorized")) }, want: []string{"does not accept the credentials (401)", "check --context"}},
		"no hub": {server: func(s *clitest.Server) { s.Refuse(discovery, apierrors.NewNotFound(schema.GroupResource{}, "")) },
			want: []string{"is not a hub: it does not serve managedclusters", "choose another --context, or deploy a hub there first"}},
		"CRDs of another version": {server: func(s *clitest.Server) {
			s.Answer(discovery, metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "placements"}}})
		}, want: []string{"is not a hub"}},
		"hub-apiserver is away": {server: func(s *clitest.Server) { s.Refuse(discovery, apierrors.NewServiceUnavailable("no endpoints")) },
			want: []string{"hub-apiserver of https://127.0.0.1:", "does not answer: kubectl get apiservice v1.cluster.open-cluster-management.io says why"}},
		"no such context": {context: "nowhere", want: []string{`context "nowhere" does not exist`}},
	} {
		for of, args := range atHub {
			t.Run(name+"/"+of, func(t *testing.T) {
				t.Parallel()
				s := clitest.NewServer(t)
				if test.server != nil {
					test.server(s)
				}
				file := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
				clitest.AddBroken(t, file, s)
				args := slices.Concat(args, test.more)
				if test.context != "" {
					args = append(args, "--context", test.context)
				}
				stdout, _, err := clitest.Run(t, file, args...)
				if err == nil || stdout != "" {
					t.Fatalf("it goes on: %v, %q", err, stdout)
				}
				line := command.ErrorLine(err)
				clitest.Says(t, line, test.want...)
				s.WantUnchanged()
			})
		}
	}
}

// TestHub_TimesOut verifies that the commands give up on a server that accepts the request and does not respond.
func TestHub_TimesOut(t *testing.T) {
	for name, args := range atHub {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clitest.NewServer(t)
			over := make(chan struct{})
			t.Cleanup(func() { close(over) })
			s.On["GET /apis/cluster.open-cluster-management.io/v1"] = func(http.ResponseWriter, []byte) bool {
				<-over
				return true
			}
			_, _, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), append(slices.Clone(args), "--request-timeout", "50ms")...)
			if err == nil {
				t.Fatal("it goes on")
			}
			clitest.Says(t, command.ErrorLine(err), s.URL+" cannot be reached", "exceeded", "check --context")
		})
	}
}

// TestHub_PrintsErrorsOfHub verifies that the commands print the error messages of the hub.
func TestHub_PrintsErrorsOfHub(t *testing.T) {
	notFound := func(resource string) *apierrors.StatusError {
		return apierrors.NewNotFound(schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: resource}, "x")
	}
	for name, test := range map[string]struct {
		args   string
		refuse map[string]*apierrors.StatusError
		want   []string
	}{
		"clusters": {"get clusters", map[string]*apierrors.StatusError{"GET " + clitest.ClustersPath: clitest.Forbidden("managedclusters", "list")},
			[]string{`User "ann" cannot list resource "managedclusters"`}},
		"sets": {"get clustersets", map[string]*apierrors.StatusError{"GET " + clitest.SetsPath: clitest.Forbidden("managedclustersets", "list")},
			[]string{`cannot list resource "managedclustersets"`}},
		"bindings that fail": {"get clustersets", map[string]*apierrors.StatusError{
			"GET /apis/cluster.open-cluster-management.io/v1beta2/managedclustersetbindings": apierrors.NewTooManyRequests("later", 0)}, []string{"later"}},
		"members of a set":   {"members s", map[string]*apierrors.StatusError{"GET " + clitest.SetsPath + "/s": clitest.Forbidden("managedclustersets", "get")}, []string{`cannot get resource "managedclustersets"`}},
		"members of none":    {"members s", map[string]*apierrors.StatusError{"GET " + clitest.SetsPath + "/s": notFound("managedclustersets")}, []string{`"x" not found`}},
		"members":            {"members s", map[string]*apierrors.StatusError{"GET " + clitest.MembersPath: clitest.Forbidden("clustersetmembers", "list")}, []string{`cannot list resource "clustersetmembers"`}},
		"clusters of no set": {"get clusters --clusterset s", map[string]*apierrors.StatusError{"GET " + clitest.SetsPath + "/s": notFound("managedclustersets")}, []string{`"x" not found`}},
		"label of none":      {"label c1 a=b", map[string]*apierrors.StatusError{"GET " + clitest.ClustersPath + "/c1": notFound("managedclusters")}, []string{`"x" not found`}},
		"label at once":      {"label c1 a=b", map[string]*apierrors.StatusError{"PATCH " + clitest.ClustersPath + "/c1": apierrors.NewConflict(schema.GroupResource{Resource: "managedclusters"}, "c1", errors.New("try again"))}, []string{"try again"}},
		"label": {"label c1 a=b", map[string]*apierrors.StatusError{"PATCH " + clitest.ClustersPath + "/c1": clitest.Forbidden("managedclusters", "patch"),
			"PATCH " + clitest.ClustersPath + "/c1/label": clitest.Forbidden("managedclusters/label", "patch")}, []string{`cannot patch resource "managedclusters"`}},
		"accept of none":    {"accept --clusters c9", nil, []string{"there is no managed cluster c9 on https://", "run kubectl hub join on it first"}},
		"accept":            {"accept --clusters c1 --skip-approve-check", map[string]*apierrors.StatusError{"PATCH " + clitest.ClustersPath + "/c1": clitest.Forbidden("managedclusters/accept", "update")}, []string{`cannot update resource "managedclusters/accept"`}},
		"init":              {"init", map[string]*apierrors.StatusError{"PATCH /api/v1/namespaces/open-cluster-management": clitest.Forbidden("namespaces", "patch")}, []string{"creating Namespace open-cluster-management", `cannot patch resource "namespaces"`}},
		"a token":           {"get token", map[string]*apierrors.StatusError{clitest.TokenRequest: clitest.Forbidden("serviceaccounts/token", "create")}, []string{`cannot create resource "serviceaccounts/token"`}},
		"a token, not yet":  {"get token", nil, []string{"the hub is not prepared for clusters to join: run kubectl hub init first"}},
		"a bootstrap token": {"get token --use-bootstrap-token", map[string]*apierrors.StatusError{"POST /api/v1/namespaces/kube-system/secrets": clitest.Forbidden("secrets", "create")}, []string{`cannot create resource "secrets"`}},
		"who am I":          {"access blue -n teams --cluster-role view", map[string]*apierrors.StatusError{clitest.WhoAmI: clitest.Forbidden("selfsubjectreviews", "create")}, []string{"getting your user name from the hub"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewServer(t, clitest.NewCluster("c1", nil), clitest.NewSet("s"))
			for request, err := range test.refuse {
				s.Refuse(request, err)
			}
			stdout, _, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), strings.Fields(test.args)...)
			if err == nil || stdout != "" {
				t.Fatalf("it goes on: %v, %q", err, stdout)
			}
			clitest.Says(t, command.ErrorLine(err), test.want...)
		})
	}
}

// TestCommands_InvalidArguments verifies that errors in the arguments are reported before any request is sent.
func TestCommands_InvalidArguments(t *testing.T) {
	for args, want := range map[string][]string{
		"jion":                                 {`unknown command "jion" for "kubectl hub"`},
		"get pods":                             {`there is no "pods" to get: get clusters, get clustersets, get placements, get works, get klusterlets or get token`},
		"join --nonsense":                      {"unknown flag: --nonsense (see kubectl hub join --help)"},
		"get clusters -o xml":                  {`unable to match a printer suitable for the output format "xml"`},
		"members s -o xml":                     {`"xml"`},
		"get clustersets -o xml":               {`"xml"`},
		"accept --clusters c -o yaml":          {"must be text or json", "see kubectl hub accept --help"},
		"version -o yaml":                      {"must be text or json"},
		"accept":                               {"--clusters must name", "kubectl hub get clusters"},
		"accept --clusters c --timeout 0s":     {"--timeout must be above 0, not 0s"},
		"access blue --timeout -1s":            {"--timeout must be above 0, not -1s"},
		"init --timeout 0s":                    {"--timeout must be above 0"},
		"members":                              {"takes the name of a cluster set, not 0 arguments (see kubectl hub members --help)"},
		`why cluster ""`:                       {"takes the name of a cluster, not an empty argument (see kubectl hub why cluster --help)"},
		"members a b":                          {"not 2 arguments"},
		"access":                               {"takes the name of one cluster (see kubectl hub access --help)"},
		"access a/b/c":                         {`"a/b/c" is neither the name of a cluster nor NAMESPACE/NAME`},
		"access -n teams /x":                   {"is neither the name"},
		"access blue --ttl -1h":                {"--ttl must be above 0, not -1h0m0s"},
		"access blue --role view":              {`--role must be NAMESPACE/NAME, not "view"`},
		"access blue --revoke --ttl 1h":        {"--revoke ends the access: it takes no --role, --cluster-role or --ttl"},
		"access-token --request x":             {`--request must be NAMESPACE/NAME, not "x"`},
		"label c1":                             {"takes the name of a cluster, and labels as KEY=VALUE or KEY- (see kubectl hub label --help)"},
		"label c1 a":                           {`"a" is neither KEY=VALUE nor KEY-`},
		"label c1 -- -=b":                      {`"-" cannot be the key of a label`},
		"label c1 a=_b":                        {`"_b" cannot be the value of a label`},
		"label c1 a=b a-":                      {"the label a is set twice"},
		"unjoin":                               {"--cluster-name must be set: the name of this cluster on its hub"},
		"unjoin --cluster-name c --timeout 0s": {"--timeout must be above 0"},
		"init --hub-role-path /a/":             {"--hub-role-path is for --registration-auth=awsirsa"},
		"init --hub-role-permissions-boundary arn:aws:iam::123456789012:policy/a":                                                                           {"--hub-role-permissions-boundary is for --registration-auth=awsirsa"},
		"init --registration-auth awsirsa --hub-cluster-arn " + clitest.HubARN + " --hub-role-path a":                                                       {`--hub-role-path: "a" is not the path of an IAM role`},
		"init --registration-auth awsirsa --hub-cluster-arn " + clitest.HubARN + " --hub-role-permissions-boundary arn:aws:iam::210987654321:policy/limits": {"--hub-role-permissions-boundary: ", `it is of the account "210987654321"`},
		"init --registration-auth grpc":      {`--registration-auth must be csr or awsirsa, not "grpc"`},
		"init --registration-auth awsirsa":   {"--hub-cluster-arn must be set", "aws eks describe-cluster --name HUB --query cluster.arn"},
		"get token --token-ttl 1s":           {"--token-ttl must be from 10m0s to 87600h0m0s, not 1s"},
		"get token --hub-apiserver http://h": {`--hub-apiserver must be an https URL, not "http://h"`},
	} {
		t.Run(args, func(t *testing.T) {
			s := clitest.NewServer(t)
			argv := strings.Fields(args)
			for i := range argv {
				argv[i] = strings.Trim(argv[i], `"`)
			}
			stdout, stderr, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), argv...)
			if err == nil || stdout+stderr != "" {
				t.Fatalf("it goes on: %v, %q, %q", err, stdout, stderr)
			}
			clitest.Says(t, command.ErrorLine(err), want...)
			s.WantAsked()
		})
	}
}

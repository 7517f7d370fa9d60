// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/edge"
	"github.com/clusterhub/clusterhub/pkg/command"
)

func serviceYAML(t *testing.T, name, embedded string) string {
	t.Helper()
	return fmt.Sprintf("apiVersion: edge.clusterhub.dev/v1alpha1\nkind: EdgeService\nmetadata: {namespace: shop}\nspec:\n  url: %s\n  version: 1.0.0\n  arch: amd64\n"+
		"  clusterDeployment: {operatorYamlArchive: %s}\n", name, base64.StdEncoding.EncodeToString(clitest.Packed(t, name, embedded)))
}

// deployCheck runs a check and returns its exit code, 0 or 2. Any other code fails the test.
func deployCheck(t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, err := clitest.Run(t, kubeconfig, append([]string{"deploycheck"}, args...)...)
	var end *command.Exit
	switch {
	case err == nil:
	case errors.As(err, &end):
		code = end.Code
	default:
		t.Fatalf("%v: %s\n(%v)", err, stderr, args)
	}
	return stdout, stderr, code
}

// TestDeployCheck_FilesOnly verifies that a check with nodes in the files uses the files alone, and sends no requests.
func TestDeployCheck_FilesOnly(t *testing.T) {
	s := clitest.NewServer(t)
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	folder := clitest.InFolder(t, map[string][]string{
		"policy.yaml": {"# ours\n", edge.PolicyYAML, serviceYAML(t, "web", "elsewhere")}, "nodes.yml": {edge.NodeYAML("b", "blue", true), edge.NodeYAML("c", "red", true), edge.NodeYAML("a", "agent", false)},
		".hidden.yaml": {"not: read\n"}, "README.md": {"not read"},
	})
	const want = `NODE VERDICT VERSION NAMESPACE REASON
a yes 1.0.0 blue -
b yes 1.0.0 blue -
c no - - OtherClusterNamespace
It would be deployed to 2 of 3 nodes.
Not to the others: OtherClusterNamespace 1.`
	stdout, stderr, code := deployCheck(t, config, "-f", folder)
	if got := clitest.Squeeze(stdout); got != want || code != 0 {
		t.Errorf("it ends with %d and prints\n%s\nwant\n%s", code, got, want)
	}
	clitest.Says(t, stderr, "Warning: service web, version 1.0.0 for amd64: the archive names the namespace elsewhere")
	s.WantAsked()
	stdout, _, _ = deployCheck(t, config, "-f", folder, "-o", "wide")
	clitest.Says(t, stdout, "MESSAGE", "its agent deploys only into its own namespace red, and clusterNamespace is blue")

	stdout, _, code = deployCheck(t, config, "-f", folder, "-o", "json")
	var check api.DeployCheck
	if err := json.Unmarshal([]byte(stdout), &check); err != nil || code != 0 || check.Namespace != "shop" || check.Name != "web" || check.Status.Selected != 2 || len(check.Status.Nodes) != 3 ||
		len(check.Status.Warnings) != 1 || len(check.Spec.Services) != 0 {
		t.Errorf("got %d, %v and %+v", code, err, check)
	}
}

// TestDeployCheck_NodeOfFileHasDefaults verifies that a node of a file gets the server's defaults, and that nothing is deployed to a node without facts
// in its status.
func TestDeployCheck_NodeOfFileHasDefaults(t *testing.T) {
	node := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: edge.clusterhub.dev/v1alpha1, kind: EdgeNode, metadata: {name: m}, spec: {properties: [{name: openhorizon.arch, value: amd64}]}}\n"
	folder := clitest.InFolder(t, map[string][]string{"all.yaml": {edge.PolicyYAML, serviceYAML(t, "web", ""), node}})
	for _, args := range [][]string{{"-f", folder}, {"-f", folder, "-o", "yaml"}} {
		stdout, stderr, code := deployCheck(t, "", args...)
		if code != 2 {
			t.Errorf("it ends with %d", code)
		}
		clitest.Says(t, stdout, "ArchUnknown")
		clitest.Says(t, stderr, "spec.properties[0]: openhorizon.arch is ignored: the hub sets it itself")
	}
}

func TestDeployCheck_Pattern(t *testing.T) {
	folder := clitest.InFolder(t, map[string][]string{"all.yaml": {edge.PatternYAML, edge.PolicyYAML, serviceYAML(t, "web", ""), serviceYAML(t, "db", "data"), edge.NodeYAML("a", "agent", false), edge.NodeYAML("b", "blue", true)}})
	stdout, _, code := deployCheck(t, "", "-f", folder, "--pattern", "all")
	const want = `NODE SERVICE VERDICT VERSION NAMESPACE REASON
a web yes 1.0.0 agent -
a db yes 1.0.0 data -
b web no - - PatternWithoutNamespace
b db no - - PatternWithoutNamespace
It would be deployed to 1 of 2 nodes.
Not to the others: PatternWithoutNamespace 1.`
	if got := clitest.Squeeze(stdout); got != want || code != 0 {
		t.Errorf("it ends with %d and prints\n%s\nwant\n%s", code, got, want)
	}
}

// TestDeployCheck_OpenHorizonFiles: nodes in files of Open Horizon do not have the facts that an agent reports to the hub.
func TestDeployCheck_OpenHorizonFiles(t *testing.T) {
	folder := clitest.InFolder(t, map[string][]string{
		"p.json": {`/* of the team */ {"service":{"name":"web","org":"Acme Corp","serviceVersions":[{"version":"$V"}]},"secretBinding":[{"serviceUrl":"web"}]}`},
		"s.json": {`{"org":"Acme Corp","url":"web","version":"1.0.0","arch":"amd64","clusterDeployment":{"operatorYamlArchive":"web.tar.gz"}}`},
		"n.json": {`{"properties":[{"name":"purpose","value":"retail"}]}`},
	})
	if err := os.WriteFile(filepath.Join(folder, "web.tar.gz"), clitest.Packed(t, "web", ""), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(t.TempDir(), "service-policy.json")
	if err := os.WriteFile(policy, []byte(`{"constraints":["purpose == retail"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", folder, "-n", "shop", "--organization", "Acme Corp=acme", "--variable", "V=1.0.0", "--node-arch", "amd64", "--node-namespace", "blue",
		"--service-policy", policy, "--node-scope"}
	stdout, stderr, code := deployCheck(t, "", append(args, "namespace")...)
	if want := "NODE VERDICT VERSION NAMESPACE REASON\nn yes 1.0.0 blue -\nIt would be deployed to 1 of 1 nodes."; clitest.Squeeze(stdout) != want || code != 0 {
		t.Errorf("it ends with %d and prints %s", code, stdout)
	}
	clitest.Says(t, stderr, "p.json: secretBinding: is ignored")
	if err := os.WriteFile(policy, []byte(`{"constraints":["purpose == other"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _, code = deployCheck(t, "", append(args, "cluster")...)
	if code != 2 || !strings.Contains(stdout, "ServiceConstraint") {
		t.Errorf("it ends with %d and prints %s", code, stdout)
	}
}

const checksPath = "/apis/edge.clusterhub.dev/v1alpha1/namespaces/shop/deploychecks"

// TestDeployCheck_SendsToHub verifies that a check without nodes in the files is sent to the hub with the objects of the files, page by page.
func TestDeployCheck_SendsToHub(t *testing.T) {
	s := clitest.NewServer(t)
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	var questions []api.DeployCheck
	s.On["POST "+checksPath] = func(w http.ResponseWriter, body []byte) bool {
		object, err := clitest.Decode(body)
		data, marshalErr := json.Marshal(object)
		var check api.DeployCheck
		if err := errors.Join(err, marshalErr, json.Unmarshal(data, &check)); err != nil {
			t.Error(err)
		}
		questions = append(questions, check)
		check.Status = api.DeployCheckStatus{Deployable: true, Selected: 1, Excluded: []api.ExcludedNodes{{Reason: "NotReached", Nodes: 1}}, Warnings: []string{"take\x1b[2J care"}}
		if check.Spec.Continue == "" {
			check.Status.Nodes = []api.NodeVerdict{{Node: "a", Deployable: true, Services: []api.ServiceVerdict{{Name: "web", Deployable: true, Version: "1.0.0", TargetNamespace: "blue"}}}}
			check.Status.Continue = "a"
		} else {
			check.Status.Nodes = []api.NodeVerdict{{Node: "b", Reason: "NotReached"}}
		}
		clitest.WriteJSON(w, http.StatusCreated, check)
		return true
	}
	const want = "NODE VERDICT VERSION NAMESPACE REASON\na yes 1.0.0 blue -\nb no - - NotReached\nIt would be deployed to 1 of 2 nodes.\nNot to the others: NotReached 1."
	folder := clitest.InFolder(t, map[string][]string{"all.yaml": {edge.PolicyYAML, serviceYAML(t, "web", ""), serviceYAML(t, "other", "")}})
	nodes := clitest.InFolder(t, map[string][]string{"nodes.yaml": {edge.NodeYAML("z", "blue", true)}})
	stdout, stderr, code := deployCheck(t, config, "-f", folder)
	if clitest.Squeeze(stdout) != want || code != 0 || strings.Contains(stderr, "\x1b") || strings.Count(stderr, "Warning: take") != 1 {
		t.Errorf("it ends with %d and prints\n%s\n%s\nwant\n%s", code, stdout, stderr, want)
	}
	q := questions[0]
	if q.Name != "web" || q.Spec.Policy == nil || q.Spec.PolicyName != "" || len(q.Spec.Services) != 1 || q.Spec.Services[0].Org != "shop" ||
		len(q.Spec.Services[0].Spec.ClusterDeployment.OperatorYamlArchive) == 0 || len(q.Spec.NodeNames)+len(q.Spec.Nodes) != 0 || questions[1].Spec.Continue != "a" {
		t.Errorf("it asks %+v", q)
	}
	questions = nil
	deployCheck(t, config, "-f", folder+","+nodes, "--node", "a,b")
	if q := questions[0]; len(q.Spec.Nodes) != 1 || q.Spec.Nodes[0].Name != "z" || len(q.Spec.NodeNames) != 2 {
		t.Errorf("it asks %+v", q)
	}
	questions = nil
	if _, stderr, _ := deployCheck(t, config, "-f", folder+","+nodes, "--all"); len(questions[0].Spec.Nodes) != 0 {
		t.Errorf("it asks %+v", questions[0])
	} else {
		clitest.Says(t, stderr, "the nodes of the files are not evaluated")
	}
	questions = nil
	deployCheck(t, config, "--policy", "other", "-n", "shop")
	if q := questions[0]; q.Spec.PolicyName != "other" || q.Spec.Policy != nil || q.Name != "other" {
		t.Errorf("it asks %+v", q)
	}
	questions = nil
	deployCheck(t, config, "--pattern", "other", "-n", "shop", "-f", folder)
	if q := questions[0]; q.Spec.PatternName != "other" || q.Spec.Policy != nil || len(q.Spec.Services) != 2 {
		t.Errorf("it asks %+v", q)
	}
}

// TestDeployCheck_HiddenNodesAreCounted verifies that nodes that the user may not see are counted, and that the output names the way to see them.
func TestDeployCheck_HiddenNodesAreCounted(t *testing.T) {
	s := clitest.NewServer(t)
	s.On["POST "+checksPath] = func(w http.ResponseWriter, _ []byte) bool {
		clitest.WriteJSON(w, http.StatusCreated, api.DeployCheck{Status: api.DeployCheckStatus{Deployable: true, Selected: 2, Nodes: []api.NodeVerdict{{Node: "a", Deployable: true}}}})
		return true
	}
	stdout, _, code := deployCheck(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "--policy", "web", "-n", "shop")
	if code != 0 {
		t.Errorf("it ends with %d", code)
	}
	clitest.Says(t, stdout, "It would be deployed to 2 of 2 nodes.", "1 of the nodes are not shown", "managedclustersets/clusters")
}

// TestDeployCheck_FaultyHub verifies that the command ends even if the hub repeats pages, and that errors of the hub say what to do.
func TestDeployCheck_FaultyHub(t *testing.T) {
	s := clitest.NewServer(t)
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	s.Answer("POST "+checksPath, api.DeployCheck{Status: api.DeployCheckStatus{Continue: "a"}})
	fails := func(want string) {
		t.Helper()
		stdout, _, err := clitest.Run(t, config, "deploycheck", "--policy", "web", "-n", "shop")
		if err == nil || !strings.Contains(err.Error(), want) || stdout != "" {
			t.Errorf("it prints %q and says %v, want %s", stdout, err, want)
		}
	}
	fails("the hub repeatedly returns the page")
	for _, resource := range []string{"deploychecks", "deploymentpolicies", "deploymentpatterns"} {
		s.Refuse("POST "+checksPath, apierrors.NewNotFound(schema.GroupResource{Group: api.GroupName, Resource: resource}, "web"))
		fails("there is no policy or pattern web in the namespace shop")
	}
	s.Refuse("POST "+checksPath, apierrors.NewGenericServerResponse(http.StatusNotFound, "post", schema.GroupResource{}, "", "", 0, true))
	fails("does not serve deploychecks")
	s.Refuse("POST "+checksPath, clitest.Forbidden("deploychecks", "create"))
	fails(`User "ann" cannot create resource "deploychecks"`)
}

// TestDeployCheck_RejectsFiles verifies that an error in a file, which may come from another user, is reported with the file's name, and that nothing
// is decided.
func TestDeployCheck_RejectsFiles(t *testing.T) {
	node, service := edge.NodeYAML("a", "blue", true), serviceYAML(t, "web", "")
	bomb := "apiVersion: edge.clusterhub.dev/v1alpha1\nkind: EdgeNode\nmetadata: {name: a}\nx: &a [1,1,1,1,1,1,1,1,1,1]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("y%d: &%c [%s]\n", i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 10), ","))
	}
	for name, test := range map[string]struct {
		documents []string
		more      []string
		want      string
	}{
		"a field that is not known":        {[]string{strings.Replace(edge.PolicyYAML, "clusterNamespace", "clusterNamespce", 1), service, node}, nil, "clusterNamespce"},
		"another kind":                     {[]string{edge.PolicyYAML, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n"}, nil, "it is a Secret of v1: only EdgeNodes"},
		"a placement":                      {[]string{"apiVersion: edge.clusterhub.dev/v1alpha1\nkind: EdgePlacement\nmetadata: {name: s}\nspec: {node: a, origin: {kind: a, name: b}, services: []}\n"}, nil, "EdgePlacement"},
		"no kind":                          {[]string{"metadata: {name: a}\n"}, nil, "no apiVersion or no kind"},
		"no YAML":                          {[]string{"\tno\n"}, nil, "object 1"},
		"neither":                          {[]string{`{"password":"hunter2"}`}, nil, "nor a file of Open Horizon"},
		"nothing":                          {[]string{"# nothing\n"}, nil, "no objects found"},
		"aliases that grow":                {[]string{bomb}, nil, "object 1"},
		"two policies":                     {[]string{edge.PolicyYAML, strings.Replace(edge.PolicyYAML, "name: web,", "name: other,", 1), service, node}, nil, "choose it by --policy web, --policy other"},
		"a policy twice":                   {[]string{edge.PolicyYAML, edge.PolicyYAML, service, node}, nil, "DeploymentPolicy shop/web is in both"},
		"no policy":                        {[]string{service, node}, nil, "the files have no policy and no pattern"},
		"a policy of the hub":              {[]string{service, node}, []string{"--policy", "other"}, "the files have no other"},
		"another namespace":                {[]string{edge.PolicyYAML, service, node}, []string{"-n", "blue"}, "--namespace is blue, but the objects of the files are in the namespace shop"},
		"a constraint":                     {[]string{strings.Replace(edge.PolicyYAML, "purpose == retail", "purpose ==", 1), service, node}, nil, "spec.constraints[0]"},
		"a fact":                           {[]string{edge.PolicyYAML, service, strings.Replace(node, "namespace: blue", "namespace: Blue", 1)}, nil, "status.namespace"},
		"a service by another name":        {[]string{edge.PolicyYAML, strings.Replace(service, "{namespace: shop}", "{name: web, namespace: shop}", 1), node}, nil, "metadata.name"},
		"an archive that is none":          {[]string{edge.PolicyYAML, service[:strings.Index(service, "Archive: ")] + "Archive: aHVudGVyMg==}\n", node}, nil, "the archive is not gzip"},
		"a scope without a namespace":      {[]string{edge.PolicyYAML}, []string{"--node-scope", "cluster"}, "--node-namespace"},
		"another scope":                    {[]string{edge.PolicyYAML}, []string{"--node-scope", "both"}, "cluster or namespace"},
		"an archive outside of its folder": {[]string{`{"url":"web","version":"1.0.0","arch":"amd64","clusterDeployment":{"operatorYamlArchive":"../../etc/passwd"}}`}, nil, "in the folder of the definition"},
		"an absolute archive":              {[]string{`{"url":"web","version":"1.0.0","arch":"amd64","clusterDeployment":{"operatorYamlArchive":"/etc/passwd"}}`}, nil, "in the folder of the definition"},
		"a variable":                       {[]string{`{"url":"web","version":"$HOME","arch":"amd64"}`}, nil, "has the variable HOME, which has no value"},
	} {
		folder := clitest.InFolder(t, map[string][]string{"f.yaml": test.documents})
		stdout, stderr, err := clitest.Run(t, "", append([]string{"deploycheck", "-f", folder}, test.more...)...)
		var end *command.Exit
		if err == nil || errors.As(err, &end) || !strings.Contains(err.Error(), test.want) || stdout != "" {
			t.Errorf("%s: it prints %q and says %v, want %s", name, stdout, err, test.want)
		}
		if strings.Contains(stdout+stderr+fmt.Sprint(err), "hunter2") || err != nil && len(err.Error()) > 4000 {
			t.Errorf("%s: it says %.4000v", name, err)
		}
	}
}

// TestDeployCheck_LimitsReads verifies that an endless file, and a link to outside of the folder of a definition, are not read.
func TestDeployCheck_LimitsReads(t *testing.T) {
	if _, _, err := clitest.Run(t, "", "deploycheck", "-f", "/dev/zero"); err == nil || !strings.Contains(err.Error(), "the limit is 16777216 bytes for a file") {
		t.Errorf("got %v", err)
	}
	secret := filepath.Join(t.TempDir(), "secret.tar.gz")
	if err := os.WriteFile(secret, clitest.Packed(t, "web", ""), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := clitest.InFolder(t, map[string][]string{"s.json": {`{"url":"web","version":"1.0.0","arch":"amd64","clusterDeployment":{"operatorYamlArchive":"web.tar.gz"}}`}})
	if err := os.Symlink(secret, filepath.Join(folder, "web.tar.gz")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := clitest.Run(t, "", "deploycheck", "-f", folder); err == nil || !strings.Contains(err.Error(), "in the folder of the definition") {
		t.Errorf("got %v", err)
	}
	many := map[string][]string{}
	for i := range 501 {
		many[fmt.Sprint(i, ".yaml")] = nil
	}
	if _, _, err := clitest.Run(t, "", "deploycheck", "-f", clitest.InFolder(t, many)); err == nil || !strings.Contains(err.Error(), "there are 501 files, but the limit is 500") {
		t.Errorf("got %v", err)
	}
}

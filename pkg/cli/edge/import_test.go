// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/edge"
)

// exported returns a folder with files in the format of hzn.
func exported(t *testing.T) string {
	t.Helper()
	folder := clitest.InFolder(t, map[string][]string{
		"web.json": {`{"org":"Acme Corp","label":"Web","url":"web","version":"$VERSION","arch":"amd64","deploymentSignature":"c2ln",
			"clusterDeployment":{"operatorYamlArchive":"web.tar.gz"}}`},
		"all-stores.json": {`{"label":"All","service":{"name":"web","org":"Acme Corp","serviceVersions":[{"version":"1.0.0"}],"nodeHealth":{"missing_heartbeat_interval":60}},
			"properties":[{"name":"openhorizon.arch","value":"amd64"}],"constraints":["purpose == retail"]}`},
		"nodes.json": {`{"Acme Corp/store-1":{"nodeType":"cluster","token":"hunter2","properties":[{"name":"purpose","value":"retail"}]}}`},
	})
	if err := os.WriteFile(filepath.Join(folder, "web.tar.gz"), clitest.Packed(t, "web", ""), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func importArgs(folder string, more ...string) []string {
	return append([]string{"edge", "import", "-f", folder, "-n", "shop", "--organization", "Acme Corp=acme", "--variable", "VERSION=1.0.0"}, more...)
}

// TestEdgeImport_ReportsUnconvertedParts verifies that the output lists for each file what was not converted, and never contains secrets.
func TestEdgeImport_ReportsUnconvertedParts(t *testing.T) {
	s := clitest.NewServer(t)
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	stdout, stderr, err := clitest.Run(t, config, importArgs(exported(t), "-o", "yaml")...)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stdout, "kind: List", "kind: EdgeService", "name: web--1.0.0--amd64", "namespace: acme", "kind: DeploymentPolicy", "name: all-stores", "namespace: shop", "kind: EdgeNode",
		"name: store-1", "- purpose == retail")
	for _, not := range []string{"status", "creationTimestamp", "openhorizon.arch", "hunter2"} {
		if strings.Contains(stdout, not) {
			t.Errorf("it prints %s", not)
		}
	}
	if strings.Index(stdout, "EdgeService") > strings.Index(stdout, "DeploymentPolicy") || strings.Index(stdout, "DeploymentPolicy") > strings.Index(stdout, "EdgeNode") {
		t.Error("what refers comes before what it refers to")
	}
	for _, want := range []string{"web.json: deploymentSignature: is ignored: ", "all-stores.json: service.nodeHealth: is ignored: ", "all-stores.json: properties[0]: is ignored: ",
		"nodes.json: Acme Corp/store-1.token: is ignored: "} {
		if !strings.Contains(stderr, want) || !strings.HasPrefix(stderr, "Note: ") {
			t.Errorf("it says %s, without %s", stderr, want)
		}
	}
	if strings.Contains(stderr, "hunter2") {
		t.Errorf("it says %s", stderr)
	}
	stdout, _, err = clitest.Run(t, config, importArgs(exported(t), "--dry-run=client")...)
	if want := "edgeservice/web--1.0.0--amd64 applied (dry run)\ndeploymentpolicy/all-stores applied (dry run)\nedgenode/store-1 applied (dry run)\n"; err != nil || stdout != want {
		t.Errorf("%v: it prints %s", err, stdout)
	}
	s.WantAsked()
}

func TestEdgeImport_Applies(t *testing.T) {
	s := clitest.NewServer(t)
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	const base = "/apis/edge.clusterhub.dev/v1alpha1/"
	stdout, stderr, err := clitest.Run(t, config, importArgs(exported(t))...)
	if err != nil || strings.Count(stdout, " applied\n") != 3 {
		t.Fatalf("%v: it prints %s", err, stdout)
	}
	if !strings.Contains(stderr, "Note: to see which nodes get it: kubectl hub deploycheck --policy all-stores -n shop\n") {
		t.Errorf("it says %s", stderr)
	}
	s.WantAsked("PATCH "+base+"namespaces/acme/edgeservices/web--1.0.0--amd64?fieldManager=kubectl-hub-import",
		"PATCH "+base+"namespaces/shop/deploymentpolicies/all-stores?fieldManager=kubectl-hub-import",
		"PATCH "+base+"edgenodes/store-1?fieldManager=kubectl-hub-import")
	if got := s.Bodies["PATCH "+base+"edgenodes/store-1"]; strings.Contains(got, "status") || strings.Contains(got, "hunter2") {
		t.Errorf("it sends %s", got)
	}
	if _, stderr, err := clitest.Run(t, config, importArgs(exported(t), "--dry-run=server", "--force-conflicts")...); err != nil || strings.Contains(stderr, "deploycheck") {
		t.Fatal(err, stderr)
	}
	if got := s.Asked[len(s.Asked)-1]; !strings.Contains(got, "dryRun=All") || !strings.Contains(got, "force=true") {
		t.Errorf("it asks %s", got)
	}
	// An object that the hub rejects does not prevent the others from being applied.
	s.Refuse("PATCH "+base+"namespaces/acme/edgeservices/web--1.0.0--amd64", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "acme"))
	stdout, _, err = clitest.Run(t, config, importArgs(exported(t))...)
	if err == nil || !strings.Contains(err.Error(), "EdgeService acme/web--1.0.0--amd64: there is no namespace acme") || strings.Count(stdout, " applied\n") != 2 {
		t.Errorf("%v: it prints %s", err, stdout)
	}
}

func TestEdgeImport_Rejects(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		more []string
		want string
	}{
		"a manifest":                      {edge.PolicyYAML, nil, "kubectl apply -f"},
		"a node without a name":           {`{"properties":[]}`, nil, "the file has no name for the object"},
		"what the hub would refuse":       {`{"service":{"name":"web","serviceVersions":[{"version":"1.0.0"}]},"constraints":["a =="]}`, nil, "spec.constraints[0]"},
		"a range":                         {`{"service":{"name":"web","serviceVersions":[{"version":"1.0.0"}]},"userInput":[{"serviceUrl":"web","serviceVersionRange":"[2.0.0,1.0.0]"}]}`, nil, "serviceVersionRange"},
		"an organization":                 {`{"org":"Other Corp","url":"web","version":"1.0.0","arch":"amd64"}`, nil, "say which namespace stands for it"},
		"an environment variable":         {`{"label":"$HOME","properties":[]}`, []string{"--name", "store-1"}, "has the variable HOME"},
		"a service policy for no service": {`{"properties":[]}`, []string{"--name", "store-1", "--service-policy", "f.json"}, "the files have no service"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(clitest.InFolder(t, map[string][]string{"f.json": {test.file}}))
			stdout, _, err := clitest.Run(t, "", append([]string{"edge", "import", "-f", "f.json", "-o", "yaml"}, test.more...)...)
			if err == nil || !strings.Contains(err.Error(), test.want) || stdout != "" {
				t.Errorf("it prints %q and says %v, want %s", stdout, err, test.want)
			}
		})
	}
}

func TestEdgeImport_NamesAndServicePolicies(t *testing.T) {
	t.Chdir(clitest.InFolder(t, map[string][]string{
		"node-policy.json": {`{"properties":[{"name":"a","value":"1","type":"int"}]}`},
		"web.json":         {`{"url":"web","version":"1.0.0","arch":"arm64","deployment":{"services":{}}}`},
		"db.json":          {`{"url":"db","version":"1.0.0","arch":"arm64","deployment":{"services":{}}}`},
		"policy.json":      {`{"properties":[{"name":"b","value":true}],"constraints":["a > 0"]}`},
	}))
	stdout, stderr, err := clitest.Run(t, "", "edge", "import", "-f", "node-policy.json", "--name", "store-1", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stdout, `"name": "store-1"`, `"value": 1`)
	clitest.Says(t, stderr, "properties[0].value: is a number now")
	stdout, _, err = clitest.Run(t, "", "edge", "import", "-f", "web.json", "--service-policy", "policy.json", "-n", "shop", "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stdout, "name: web--1.0.0--arm64", "- a > 0", "namespace: shop")
	_, _, err = clitest.Run(t, "", "edge", "import", "-f", "web.json,db.json", "--service-policy", "policy.json", "-o", "yaml")
	if err == nil || !strings.Contains(err.Error(), "is for one service") {
		t.Errorf("got %v", err)
	}
	_, _, err = clitest.Run(t, "", "edge", "import", "-f", "web.json,db.json", "--name", "a", "-o", "yaml")
	if err == nil || !strings.Contains(err.Error(), "--name is for one file") {
		t.Errorf("got %v", err)
	}
}

// TestEdgeImport_ReadsArchivesOfAllowedFolders verifies that an archive outside of the folder of its definition is read if the user allows that
// folder, and never because of the definition alone.
func TestEdgeImport_ReadsArchivesOfAllowedFolders(t *testing.T) {
	folder := t.TempDir()
	for _, sub := range []string{"project/horizon", "other"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	archive := clitest.Packed(t, "web", "")
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"project/operator.tar.gz", "project/horizon/own.tar.gz", "other/secret.tar.gz"} {
		write(name, archive)
	}
	if err := os.Symlink(filepath.Join(folder, "other", "secret.tar.gz"), filepath.Join(folder, "project", "link.tar.gz")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(folder, "project"))
	for name, test := range map[string]struct {
		archive, allowed, want string
	}{
		"in its folder":                        {"own.tar.gz", "", ""},
		"beside the folder":                    {"../operator.tar.gz", "", "--archives=."},
		"beside the folder, allowed":           {"../operator.tar.gz", ".", ""},
		"beside it, allowed as a whole path":   {"../operator.tar.gz", folder, ""},
		"a whole path, allowed":                {filepath.Join(folder, "project", "operator.tar.gz"), ".", ""},
		"elsewhere":                            {"../../other/secret.tar.gz", ".", "nor below"},
		"elsewhere, by a whole path":           {filepath.Join(folder, "other", "secret.tar.gz"), "", "--archives=FOLDER"},
		"elsewhere, by a link":                 {"../link.tar.gz", ".", "escapes"},
		"elsewhere, another folder allowed":    {"../operator.tar.gz", "../other", "nor below"},
		"a folder name that a shell would run": {"../$(reboot)/operator.tar.gz", "", "--archives=FOLDER"},
	} {
		t.Run(name, func(t *testing.T) {
			write("project/horizon/service.json", []byte(`{"url":"web","version":"1.0.0","arch":"amd64","clusterDeployment":{"operatorYamlArchive":"`+test.archive+`"}}`))
			args := []string{"edge", "import", "-f", "horizon/service.json", "-n", "shop", "--dry-run=client"}
			if test.allowed != "" {
				args = append(args, "--archives", test.allowed)
			}
			stdout, _, err := clitest.Run(t, "", args...)
			switch {
			case test.want == "" && (err != nil || !strings.Contains(stdout, "edgeservice/web--1.0.0--amd64 applied")):
				t.Errorf("it prints %s and says %v", stdout, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || stdout != ""):
				t.Errorf("it prints %s and says %v, want %s", stdout, err, test.want)
			}
		})
	}
}

// TestEdgeImport_AcceptsUserFiles: files of users contain things that the templates of hzn do not.
func TestEdgeImport_AcceptsUserFiles(t *testing.T) {
	t.Chdir(clitest.InFolder(t, map[string][]string{
		"policy.json": {`{"label": "Web", "service": {"name": "web", "org": "acme", "arch": "*", "serviceVersions": [
			{"version": "1.0.0", "priority": {"priority_value": $PLACE, "retries": 1, "retry_durations": 3600}},
			{"version": "1.0.0", "priority": {"priority_value": 3, "retries": 1, "retry_durations": 1800}}]}, "constraints": ["purpose == shop"]}`},
		"userinput.json": {`[{"serviceOrgid": "acme", "serviceUrl": "web", "inputs": [{"name": "TILLS", "value": 3}]}]`},
	}))
	stdout, stderr, err := clitest.Run(t, "", "edge", "import", "-f", "policy.json", "-n", "shop", "--variable", "PLACE=2", "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stdout, "priority_value: 2", "retry_durations: 3600")
	clitest.Says(t, stderr, "service.serviceVersions[1]: is ignored: the version is in the list more than once")
	_, _, err = clitest.Run(t, "", "edge", "import", "-f", "userinput.json", "-n", "shop", "-o", "yaml")
	if err == nil || !strings.Contains(err.Error(), "userinput.json") ||
		!strings.Contains(err.Error(), "file of user input") {
		t.Errorf("got %v", err)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// kubernetes are Kubernetes' own types in ours, with their own descriptions.
var kubernetes = []string{".apiVersion", ".kind", ".metadata", ".spec.nodePlacement.tolerations[]", ".spec.resourceRequirement.resourceRequirements"}

// TestExplain_EveryFieldHasDescription: each field of ours, and each of Open Cluster Management's, has a sentence that begins with the name of the
// field, as in the other kinds of the hub, and says more than that name. It is what the server publishes that counts.
func TestExplain_EveryFieldHasDescription(t *testing.T) {
	server(t)
	for resource, kind := range kinds {
		schema := published(t, kind)
		if len(strings.Fields(schema.Description)) < 20 {
			t.Errorf("of %s it is said only %q", kind, schema.Description)
		}
		fields := 0
		var look func(path string, s *spec.Schema)
		look = func(path string, s *spec.Schema) {
			if slices.Contains(kubernetes, path) {
				return
			}
			for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
				property, at := s.Properties[name], path+"."+name
				fields++
				if says := teaches(name, property.Description); says != "" && (path != "" || !slices.Contains(kubernetes, at)) {
					t.Errorf("%s%s %s: %q", resource, at, says, property.Description)
				}
				look(at, &property)
			}
			if s.Items != nil && s.Items.Schema != nil {
				look(path+"[]", s.Items.Schema)
			}
			if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
				look(path+"{}", s.AdditionalProperties.Schema)
			}
		}
		look("", schema)
		if fields < 70 {
			t.Errorf("%s has %d fields", kind, fields)
		}
	}
}

// teaches returns what is wrong with the description of a field, or "".
func teaches(name, description string) string {
	said := strings.Fields(description)
	own := slices.DeleteFunc(slices.Clone(said), func(word string) bool { return strings.Trim(word, ".,:") == name })
	switch {
	case len(said) == 0 || said[0] != name:
		return "has no description that begins with its name"
	case !strings.HasSuffix(description, "."):
		return "has no whole sentence"
	case len(own) < 4:
		return "is not told more of than its name"
	}
	return ""
}

// A test that takes all would show nothing.
func TestDescription_Rejected(t *testing.T) {
	for description, good := range map[string]bool{
		"": false, "role": false, "role is for role.": false, "role is its name.": false, "Role is a ClusterRole of the cluster.": false,
		"role is a ClusterRole of the cluster": false, "role is a ClusterRole of the cluster.": true,
	} {
		if got := teaches("role", description); (got == "") != good {
			t.Errorf("%q: %q", description, got)
		}
	}
}

// published is the schema of a kind in the OpenAPI of the server, which kubectl explain reads.
func published(t *testing.T, kind string) *spec.Schema {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(worktest.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	var found *spec.Schema
	worktest.Eventually(t, kind+" is published", func() bool {
		paths, err := client.OpenAPIV3().Paths()
		if err != nil || paths["apis/"+operatorv1.SchemeGroupVersion.String()] == nil {
			return false
		}
		data, err := paths["apis/"+operatorv1.SchemeGroupVersion.String()].Schema("application/json")
		if err != nil {
			return false
		}
		document := struct {
			Components struct {
				Schemas map[string]*spec.Schema `json:"schemas"`
			} `json:"components"`
		}{}
		if err := json.Unmarshal(data, &document); err != nil {
			t.Fatal(err)
		}
		for name, schema := range document.Components.Schemas {
			if strings.HasSuffix(name, "."+kind) {
				found = schema
			}
		}
		return found != nil
	})
	return found
}

// TestExplain_KubectlExplain: what a user reads, by the names that a user types.
func TestExplain_KubectlExplain(t *testing.T) {
	server(t)
	published(t, kinds[klusterlets])
	published(t, kinds[clusterManagers])
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfigOf(worktest.Config(t)), kubeconfig); err != nil {
		t.Fatal(err)
	}
	for path, wants := range map[string][]string{
		"klusterlet":                               {"the agent of one managed cluster", "bootstrap-hub-kubeconfig", "spec\t", "status\t"},
		"klusterlets.spec.deployOption.mode":       {"ENUM:", "Detached", "SingletonHosted", "immutable"},
		"klusterlet.spec.clusterhub.works":         {"role\t", "namespaces\t", "ClusterRole of the managed cluster"},
		"clustermanager":                           {"defines a hub that hub-operator deploys", "external-hub-kubeconfig"},
		"clustermanager.spec.clusterhub":           {"apiServer\t", "etcd\t", "components\t", "leftovers"},
		"clustermanager.spec.clusterhub.apiServer": {"address\t", "replicas\t", "1 to 16"},
	} {
		command := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("TEST_BIN_DIR"), "kubectl"), "--kubeconfig", kubeconfig, "explain", path)
		command.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
			continue
		}
		text := strings.Join(strings.Fields(string(out)), " ")
		for _, want := range wants {
			if field, isField := strings.CutSuffix(want, "\t"); isField && !strings.Contains(string(out), "  "+field+"\t") || !isField && !strings.Contains(text, want) {
				t.Errorf("kubectl explain %s does not say %q:\n%s", path, want, out)
			}
		}
	}
}

func kubeconfigOf(config *rest.Config) *clientcmdapi.Config {
	return &clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
			ClientCertificate: config.CertFile, ClientKey: config.KeyFile}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}}, CurrentContext: "c",
	}
}

// TestTable verifies the columns of kubectl get, with and without -o wide.
func TestTable(t *testing.T) {
	client := server(t)
	connection, err := rest.HTTPClientFor(worktest.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		resource, spec, status, always, wide string
		conditions                           map[string]metav1.ConditionStatus
	}{
		{klusterlets, `{deployOption: {mode: Detached}, clusterName: c1}`, `"clusterhub":{"clusterName":"c1"},`,
			"Name=shown, Mode=Detached, Cluster=c1, Applied=True, Available=False, Message=waits for a secret",
			"Registered As=c1, Ready To Apply=False, Hub Degraded=True",
			map[string]metav1.ConditionStatus{"Applied": "True", "ReadyToApply": "False", "HubConnectionDegraded": "True"}},
		{clusterManagers, `{deployOption: {mode: Detached}}`, ``,
			"Name=shown, Mode=Detached, Applied=True, Available=False, Message=waits for a secret",
			"Ready To Apply=False, Progressing=True",
			map[string]metav1.ConditionStatus{"Applied": "True", "ReadyToApply": "False", "Progressing": "True"}},
		{clusterManagers, `{}`, ``, "Name=shown, Mode=Default, Applied=<nil>, Available=False, Message=waits for a secret", "Ready To Apply=<nil>, Progressing=<nil>", nil},
	} {
		t.Run(c.resource+" "+c.spec, func(t *testing.T) {
			applied(t, client, c.resource, "shown", c.spec)
			conditions := []metav1.Condition{{Type: "Available", Status: "False", Reason: "R", Message: "waits for a secret", LastTransitionTime: metav1.Now()}}
			for name, status := range c.conditions {
				conditions = append(conditions, metav1.Condition{Type: name, Status: status, Reason: "R", Message: "m", LastTransitionTime: metav1.Now()})
			}
			written, err := json.Marshal(conditions)
			if err != nil {
				t.Fatal(err)
			}
			k := change{client: client, resource: c.resource, name: "shown"}
			status := json.RawMessage(`{` + c.status + `"conditions":` + string(written) + `}`)
			if err := k.patch(t, types.MergePatchType, map[string]any{"status": status}, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			table := tableOf(t, connection, worktest.Config(t).Host+"/apis/operator.open-cluster-management.io/v1/"+c.resource+"/shown")
			always, wide := columnsOf(t, table)
			if always != c.always {
				t.Errorf("it shows\n%s, want\n%s", always, c.always)
			}
			if wide != c.wide {
				t.Errorf("with -o wide it shows, too,\n%s, want\n%s", wide, c.wide)
			}
		})
	}
}

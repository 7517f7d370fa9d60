// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterinstall "github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	clustervalidation "github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	openmcpinstall "github.com/clusterhub/clusterhub/pkg/apis/openmcp/install"
	openmcpvalidation "github.com/clusterhub/clusterhub/pkg/apis/openmcp/validation"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/command"
)

// specifications is the table of testdata/specifications.yaml.
type specifications struct {
	None     []string           `json:"none"`
	Commands []specifiedCommand `json:"commands"`
	Objects  []specifiedObject  `json:"objects"`
}

// specifiedCommand is a command of a specification.
type specifiedCommand struct {
	Of    string `json:"of"`
	Typed string `json:"typed"`
	// Added is appended to the command: arguments that the specification leaves out.
	Added string `json:"added"`
	// Says are texts that the command must print. Ends is its exit code.
	Says []string `json:"says"`
	Ends int      `json:"ends"`
	// Why is the reason why this command does not exist here.
	Why string `json:"why"`
}

// specifiedObject is an object of a specification, or a list of rules of a role.
type specifiedObject struct {
	Of   string `json:"of"`
	YAML string `json:"yaml"`
	// File is the path in the repository of a file with the object. It replaces YAML.
	File string `json:"file"`
	// Without is a field that is left out.
	Without []string `json:"without"`
	// Fails is the error, and Why its reason.
	Fails string `json:"fails"`
	Why   string `json:"why"`
	// Pasted is a different error on a hub: see TestSpecifications_Pasted of test/e2e/sets.
	Pasted string `json:"pasted"`
}

func readSpecifications(t *testing.T) (s specifications) {
	t.Helper()
	data, err := os.ReadFile("testdata/specifications.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const repository = "../../"

// translated returns the equivalent of a command in the table of docs/compatibility.md, or "" if the table does not have the command.
func translated(t *testing.T, typed string) string {
	t.Helper()
	page, err := os.ReadFile(repository + "docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Commands of the specifications\n")
	if !found {
		t.Fatal("docs/compatibility.md has no commands of the specifications")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	from, to := "", ""
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		if (typed == row[1] || strings.HasPrefix(typed, row[1]+" ")) && len(row[1]) > len(from) {
			from, to = row[1], row[2]
		}
	}
	if from == "" {
		return ""
	}
	return to + strings.TrimPrefix(typed, from)
}

// placeholder matches placeholders of the specifications: ${NAME}, <name>, and a name in TeX.
var placeholder = regexp.MustCompile(`\$\{\w+\}|<[\w/-]+>|\{\\tt \w+\}`)

const specifiedHub, specifiedCluster = "arn:aws:eks:eu-west-1:123456789012:cluster/hub", "arn:aws:eks:eu-west-1:210987654321:cluster/managed-0"

// newSpecified returns a hub, a cluster and a folder like those of the specifications, and the values of the placeholders.
func newSpecified(t *testing.T, verb string) (config string, values map[string]string) {
	t.Helper()
	hub, _ := clitest.NewPrepared(t)
	hub.Allow(true)
	if verb == "accept" {
		hub.Put(clitest.NewCluster("managed-0", nil))
	}
	managed := clitest.NewServer(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "myprojectnamespace"}})
	managed.Allow(true)
	kube := clientcmdapi.NewConfig()
	for name, s := range map[string]*clitest.Server{"hub": hub, "managed": managed} {
		arn := map[string]string{"hub": specifiedHub, "managed": specifiedCluster}[name]
		kube.Clusters[arn] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: s.CA()}
		kube.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: clitest.UserToken}
		kube.Contexts[name] = &clientcmdapi.Context{Cluster: arn, AuthInfo: name}
	}
	config = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kube, config); err != nil {
		t.Fatal(err)
	}
	const policy = `{"label": "Shop", "service": {"name": "web", "org": "acme", "arch": "*", "clusterNamespace": "abc", "serviceVersions": [{"version": "1.0.0"}]},
		"constraints": ["openhorizon.kubernetesNamespace == xyz"]}`
	const service = `{"org": "acme", "label": "Web", "url": "web", "version": "1.0.0", "arch": "amd64", "clusterDeployment": {"operatorYamlArchive": "%s"}}`
	const pattern = `{"org": "acme", "label": "Shop", "clusterNamespace": "abc", "services": [{"serviceUrl": "web", "serviceOrgid": "acme", "serviceArch": "amd64",
		"serviceVersions": [{"version": "1.0.0"}]}]}`
	archive := base64.StdEncoding.EncodeToString(clitest.Packed(t, "web", "abc"))
	folder := clitest.InFolder(t, map[string][]string{"policy.json": {policy}, "service.json": {fmt.Sprintf(service, archive)}, "node.json": {`{"properties": []}`}})
	return config, map[string]string{
		"${CTX_HUB_CLUSTER}": "hub", "<region>": "eu-west-1", "<hub-cluster-account-id>": "123456789012", "<hub-cluster-name>": "hub",
		`{\tt MyProjectNamespace}`: "myprojectnamespace", "<authority>": base64.StdEncoding.EncodeToString(hub.CA()), "<hub>": hub.URL,
		"<folder>": folder, "<policy_definition>": folder + "/policy.json", "<service_definition>": folder + "/service.json",
		"<pattern_definition>": clitest.InFolder(t, map[string][]string{"pattern.json": {pattern}}) + "/pattern.json",
	}
}

// TestSpecifications_Commands runs the equivalent of each command of the specifications with a fake hub and a fake cluster.
func TestSpecifications_Commands(t *testing.T) {
	for _, c := range readSpecifications(t).Commands {
		t.Run(c.Typed, func(t *testing.T) {
			here := translated(t, c.Typed)
			if here == "" && c.Why == "" {
				t.Fatal("docs/compatibility.md does not say what is typed here")
			}
			if c.Why != "" {
				if here != "" {
					t.Errorf("%s is typed here, and there is no such command", here)
				}
				t.Log(c.Why)
				return
			}
			verb, _, _ := strings.Cut(strings.TrimPrefix(here, "kubectl hub "), " ")
			config, values := newSpecified(t, verb)
			typed := strings.NewReplacer(" ...", "", "https://hub-0.k8s.example.com", "<hub>", " XXX", " "+clitest.BootstrapToken).Replace(here + " " + c.Added)
			typed = placeholder.ReplaceAllStringFunc(typed, func(p string) string {
				if values[p] == "" {
					t.Errorf("%s has no value", p)
				}
				return values[p]
			})
			args := strings.Fields(strings.TrimPrefix(typed, "kubectl hub "))
			if !slices.Contains(args, "--context") {
				args = append(args, "--context", map[bool]string{true: "managed", false: "hub"}[verb == "join" || verb == "agent"])
			}
			stdout, stderr, err := clitest.Run(t, config, args...)
			var end *command.Exit
			if errors.As(err, &end) && end.Code == c.Ends {
				err = nil
			}
			t.Logf("%s %s\n%s%s", here, c.Added, stdout, stderr)
			if err != nil {
				t.Error(command.ErrorLine(err))
			}
			clitest.Says(t, stdout+stderr, c.Says...)
		})
	}
}

// TestSpecifications_Objects decodes each object of the specifications like the hub: strictly, with defaults, and with validation.
func TestSpecifications_Objects(t *testing.T) {
	scheme := runtime.NewScheme()
	clusterinstall.Install(scheme)
	openmcpinstall.Install(scheme)
	for _, add := range []func(*runtime.Scheme) error{rbacv1.AddToScheme, clientcmdv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(cluster.SchemeGroupVersion, openmcp.SchemeGroupVersion, rbacv1.SchemeGroupVersion,
		clientcmdv1.SchemeGroupVersion)
	for _, o := range readSpecifications(t).Objects {
		name := strings.Join(append([]string{o.Of, filepath.Base(o.File)}, o.Without...), "/")
		t.Run(name, func(t *testing.T) {
			text := []byte(o.YAML)
			if o.File != "" {
				var err error
				text, err = os.ReadFile(repository + o.File)
				if err != nil {
					t.Fatal(err)
				}
			}
			result, err := pasted(t.Context(), scheme, decoder, text, o.Without)
			switch {
			case o.Fails == "" && err != nil:
				t.Error(err)
			case o.Fails != "" && (err == nil || !strings.Contains(err.Error(), o.Fails) || o.Why == ""):
				t.Errorf("got %v, want %q and the reason", err, o.Fails)
			}
			t.Logf("%s\n%s (%v)", text, result, err)
		})
	}
}

// pasted returns the object that the hub stores for a text.
func pasted(ctx context.Context, scheme *runtime.Scheme, decoder runtime.Decoder, text []byte, without []string) (string, error) {
	var content any
	if err := yaml.Unmarshal(text, &content); err != nil {
		return "", err
	}
	object, is := content.(map[string]any)
	if !is { // rules of a role
		object = map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole", "rules": content}
	}
	if object["users"] != nil {
		object["apiVersion"], object["kind"] = "v1", "Config"
	}
	if len(without) > 0 {
		unstructured.RemoveNestedField(object, without...)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	decoded, gvk, err := decoder.Decode(data, nil, nil)
	if err != nil {
		return "", err
	}
	if errs := bounds.Declared(ctx, scheme, gvk.GroupVersion(), decoded, nil); len(errs) > 0 {
		return "", errs.ToAggregate()
	}
	var errs field.ErrorList
	switch o := decoded.(type) {
	case *cluster.ManagedClusterSet:
		errs = clustervalidation.ValidateManagedClusterSet(o)
	case *openmcp.ClusterProfile:
		errs = openmcpvalidation.ValidateClusterProfile(o)
	case *openmcp.Cluster:
		errs = openmcpvalidation.ValidateCluster(o)
	case *openmcp.AccessRequest:
		errs = openmcpvalidation.ValidateAccessRequest(o)
	case *rbacv1.ClusterRole:
		errs = unknownPermissions(o)
	case *clientcmdv1.Config:
	default:
		return "", fmt.Errorf("nothing here validates a %T", o)
	}
	return fmt.Sprintf("%T", decoded), errs.ToAggregate()
}

// specificationsVariable is the environment variable with the folder of the specifications, which are not in this repository.
const specificationsVariable = "SPECIFICATIONS"

var (
	fence   = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```")
	typedAt = regexp.MustCompile(`^(?:% )?(clusteradm .*|aws eks .*|\./agent_install.*|hzn .*)$`)
	comment = regexp.MustCompile(`(?m)(?:^| )#.*$`)
)

// TestSpecifications_TableIsComplete verifies that the table has all commands and all YAML of the specifications.
func TestSpecifications_TableIsComplete(t *testing.T) {
	folder := os.Getenv(specificationsVariable)
	if folder == "" {
		t.Skipf("%s is not set to the folder of the specifications", specificationsVariable)
	}
	squeezed := func(text string) string { return strings.Join(strings.Fields(comment.ReplaceAllString(text, "")), " ") }
	all, have := readSpecifications(t), map[string]bool{}
	for _, c := range all.Commands {
		have[c.Of], have[c.Of+c.Typed] = true, true
	}
	for _, o := range all.Objects {
		text := []byte(o.YAML)
		if o.File != "" {
			var err error
			text, err = os.ReadFile(repository + o.File)
			if err != nil {
				t.Fatal(err)
			}
		}
		have[o.Of], have[o.Of+squeezed(string(text))] = true, true
	}
	for _, of := range all.None {
		have[of] = true
	}
	files, err := filepath.Glob(folder + "/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no specifications: %v", folder, err)
	}
	for _, file := range files {
		of := strings.TrimSuffix(filepath.Base(file), ".md")
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{""}
		for _, line := range strings.Split(strings.ReplaceAll(string(page), "\\\n", " "), "\n") {
			if found := typedAt.FindStringSubmatch(squeezed(line)); found != nil {
				want = append(want, found[1])
			}
		}
		for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
			if block[1] == "yaml" {
				want = append(want, squeezed(block[2]))
			}
		}
		for _, text := range want {
			if !have[of+text] {
				t.Errorf("%s: the table does not have %q", of, text)
			}
		}
		t.Logf("%s: %d commands and objects", of, len(want)-1)
	}
}

// unknownPermissions returns errors for rules of a role about resources that are not served, or about subresources that nothing checks.
func unknownPermissions(role *rbacv1.ClusterRole) (errs field.ErrorList) {
	reference, err := os.ReadFile(repository + "docs/reference/permissions.md")
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	for i, rule := range role.Rules {
		for _, resource := range rule.Resources {
			asked := fmt.Sprintf("| `%s` | `%s` |", rule.Verbs[0], resource)
			_, isServed := clitest.Served["cluster.open-cluster-management.io/v1"][resource]
			_, isSet := clitest.Served["cluster.open-cluster-management.io/v1beta1"][resource]
			if !isServed && !isSet && !strings.Contains(string(reference), asked) {
				errs = append(errs, field.NotFound(field.NewPath("rules").Index(i).Child("resources"), resource))
			}
		}
	}
	return errs
}

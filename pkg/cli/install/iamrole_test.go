// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/clusterhub/clusterhub/pkg/cli"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

func iamRoleOutput(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := cli.NewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "v0")
	cmd.SetArgs(append([]string{"iam-role"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestIAMRole_PrintsShellCommands verifies that a shell can run the printed commands: the aws CLI gets complete documents, and the tags.
func TestIAMRole_PrintsShellCommands(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	fake := "#!/bin/sh\nfor a in \"$@\"; do printf '%s\\0' \"$a\" >>" + log + "; done\nprintf '\\n' >>" + log + "\n"
	if err := os.WriteFile(filepath.Join(dir, "aws"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := iamRoleOutput(t, "--hub-cluster-arn", clitest.HubARN, "--managed-cluster-arn", clitest.ManagedARN, "--oidc-provider", clitest.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-euc", out)
	shell.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	if said, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	logged, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var create, put []string
	for _, call := range strings.Split(strings.TrimSuffix(string(logged), "\x00\n"), "\x00\n") {
		switch args := strings.Split(call, "\x00"); args[1] {
		case "create-role":
			create = args
		case "put-role-policy":
			put = args
		}
	}
	role := "ocm-managed-cluster-" + irsa.Suffix("123456789012", "hub", "210987654321", "c1")
	if len(create) != 11 || create[3] != role || create[7] != "Key=hub_cluster_account_id,Value=123456789012" || create[10] != "Key=managed_cluster_name,Value=c1" {
		t.Errorf("create-role got %q", create)
	}
	if len(put) != 8 || put[3] != role {
		t.Errorf("put-role-policy got %q", put)
	}
	for what, document := range map[string]string{"trust": create[5], "access": put[7]} {
		if !json.Valid([]byte(document)) {
			t.Errorf("the %s policy is %s", what, document)
		}
	}
	if want := "system:serviceaccount:open-cluster-management-agent:klusterlet-registration-sa"; !strings.Contains(create[5], want) {
		t.Errorf("the trust policy does not name %s: %s", want, create[5])
	}
}

func TestIAMRole_OfHub(t *testing.T) {
	for access, entries := range map[string]bool{"access-entry": true, "aws-auth": false} {
		out, err := iamRoleOutput(t, "--eks-hub-cluster-arn", clitest.HubARN, "--oidc-provider", strings.TrimPrefix(clitest.Issuer, "https://"),
			"--eks-access", access, "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out, "eks:CreateAccessEntry"); got != entries {
			t.Errorf("%s: it may make access entries: %t", access, got)
		}
		for _, want := range []string{`"roleName": "hub_managed-cluster-identity-creator"`, "system:serviceaccount:clusterhub-system:hub-controller-manager"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s is not in %s", want, out)
			}
		}
	}
}

// TestIAMRole_OfSeveralAccounts: the agent of a Klusterlet has a ServiceAccount for each of its parts.
func TestIAMRole_OfSeveralAccounts(t *testing.T) {
	out, err := iamRoleOutput(t, "--hub-cluster-arn", clitest.HubARN, "--managed-cluster-arn", clitest.ManagedARN, "--oidc-provider", clitest.Issuer, "--service-account", "n/k-registration-sa,n/k-work-sa", "-o", "json")
	for _, want := range []string{`"system:serviceaccount:n:k-registration-sa"`, `"system:serviceaccount:n:k-work-sa"`} {
		if err != nil || strings.Count(out, want) != 1 || strings.Contains(out, "klusterlet-registration-sa") {
			t.Errorf("%v: %s is not once in %s", err, want, out)
		}
	}
}

// TestIAMRole_MaySetConfiguredTags verifies that the hub's role may set the tags that hub-controller-manager is configured with.
func TestIAMRole_MaySetConfiguredTags(t *testing.T) {
	out, err := iamRoleOutput(t, "--hub-cluster-arn", clitest.HubARN, "--oidc-provider", clitest.Issuer, "--aws-resource-tags", "team=a=b,cost center=1", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if _, keys, _ := strings.Cut(out, `"aws:TagKeys"`); !strings.Contains(keys, `"team"`) || !strings.Contains(keys, `"cost center"`) ||
		!strings.Contains(keys, irsa.TagOwner) {
		t.Errorf("the keys are %s", keys)
	}
}

// TestIAMRole_PathAndBoundary verifies that the hub's role, given a path and a boundary, may create no other roles, and that the
// agent's role has that path.
func TestIAMRole_PathAndBoundary(t *testing.T) {
	const boundary = "arn:aws:iam::123456789012:policy/limits"
	out, err := iamRoleOutput(t, "--hub-cluster-arn", clitest.HubARN, "--oidc-provider", clitest.Issuer, "--hub-role-path", "/a/", "--hub-role-permissions-boundary", boundary, "-o", "json")
	if err != nil || strings.Count(out, `"iam:PermissionsBoundary": "`+boundary+`"`) != 1 || !strings.Contains(out, `"arn:aws:iam::123456789012:role/a/ocm-hub-*"`) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = iamRoleOutput(t, "--hub-cluster-arn", clitest.HubARN, "--managed-cluster-arn", clitest.ManagedARN, "--oidc-provider", clitest.Issuer, "--hub-role-path", "/a/", "-o", "json")
	if err != nil || !strings.Contains(out, `"Resource": "arn:aws:iam::123456789012:role/a/ocm-hub-`) || !strings.Contains(out, `"roleARN": "arn:aws:iam::210987654321:role/ocm-managed-cluster-`) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestIAMRole_InvalidArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no hub":            {[]string{"--oidc-provider", clitest.Issuer}, "--hub-cluster-arn must be set"},
		"no ARN":            {[]string{"--hub-cluster-arn", "hub", "--oidc-provider", clitest.Issuer}, "--hub-cluster-arn"},
		"no issuer":         {[]string{"--hub-cluster-arn", clitest.HubARN}, "--oidc-provider must be set"},
		"http":              {[]string{"--hub-cluster-arn", clitest.HubARN, "--oidc-provider", "http://x"}, "https issuer"},
		"a quote":           {[]string{"--hub-cluster-arn", clitest.HubARN, "--oidc-provider", "x'; rm"}, "https issuer"},
		"no account":        {[]string{"--hub-cluster-arn", clitest.HubARN, "--oidc-provider", clitest.Issuer, "--service-account", "x"}, "NAMESPACE/NAME"},
		"no tag":            {[]string{"--hub-cluster-arn", clitest.HubARN, "--oidc-provider", clitest.Issuer, "--aws-resource-tags", "team"}, "key=value"},
		"a tag's quote":     {[]string{"--hub-cluster-arn", clitest.HubARN, "--oidc-provider", clitest.Issuer, "--aws-resource-tags", "a'; rm=x"}, "key=value"},
		"no path":           {[]string{"--hub-cluster-arn", clitest.HubARN, "--oidc-provider", clitest.Issuer, "--hub-role-path", "/a'; rm/"}, "--hub-role-path: "},
		"no boundary":       {[]string{"--hub-cluster-arn", clitest.HubARN, "--oidc-provider", clitest.Issuer, "--hub-role-permissions-boundary", "limits"}, "--hub-role-permissions-boundary: "},
		"no access":         {[]string{"--hub-cluster-arn", clitest.HubARN, "--oidc-provider", clitest.Issuer, "--eks-access", "x"}, "--eks-access must be"},
		"another partition": {[]string{"--hub-cluster-arn", clitest.HubARN, "--managed-cluster-arn", "arn:aws-cn:eks:cn-north-1:123456789012:cluster/x", "--oidc-provider", clitest.Issuer}, "--managed-cluster-arn"},
	} {
		if _, err := iamRoleOutput(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIAMRole_MatchesDocs verifies that docs/registration.md shows the output of the commands.
func TestIAMRole_MatchesDocs(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "registration.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, block := range strings.Split(string(doc), "```console\n$ kubectl hub iam-role ")[1:] {
		block, _, _ = strings.Cut(block, "```")
		block = strings.ReplaceAll(block, "\\\n", "")
		args, want, _ := strings.Cut(block, "\n")
		if got, err := iamRoleOutput(t, strings.Fields(args)...); err != nil || got != want {
			t.Errorf("%s prints\n%s%v\nand the documentation shows\n%s", args, got, err, want)
		}
		shown++
	}
	if shown != 3 {
		t.Errorf("the documentation shows %d of the commands", shown)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"strings"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestAWS_KubeconfigUsesPlugin(t *testing.T) {
	for command, want := range map[string]string{
		tokenCommandOwn: "client.authentication.k8s.io/v1 hub-agent eks-token --cluster-name hub-cluster1 --region us-west-2 --role-arn " + hubRole,
		tokenCommandAWS: "client.authentication.k8s.io/v1beta1 aws --region us-west-2 eks get-token --cluster-name hub-cluster1 --output json --role-arn " + hubRole,
	} {
		own, err := (&RegisterDriver{HubARN: hubARN, ManagedARN: managedARN, TokenCommand: command}).New(identity.Agent{})
		if err != nil {
			t.Fatal(err)
		}
		made, err := hub.Kubeconfig(agenttest.BootstrapKubeconfig(), "c1", own.User())
		if err != nil {
			t.Fatal(err)
		}
		config := agenttest.LoadKubeconfig(t, made)
		exec := config.AuthInfos["default-auth"].Exec
		if got := strings.Join(append([]string{exec.APIVersion, exec.Command}, exec.Args...), " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if config.Clusters["default-cluster"].ProxyURL == "" || exec.InteractiveMode != "Never" {
			t.Errorf("the kubeconfig is %s", made)
		}
	}
}

func TestAWS_RoleWithPath(t *testing.T) {
	with := strings.Replace(hubRole, ":role/", ":role/platform/clusterhub/", 1)
	for path, want := range map[string]string{"": hubRole, "/": hubRole, "/platform/clusterhub/": with} {
		own, err := (&RegisterDriver{HubARN: hubARN, ManagedARN: managedARN, HubRolePath: path, TokenCommand: tokenCommandOwn}).New(identity.Agent{})
		if err != nil {
			t.Fatal(err)
		}
		if args := own.User().Exec.Args; args[len(args)-1] != want || own.(*role).tokens.RoleARN != want {
			t.Errorf("%q: the role is %s in the kubeconfig and %s for the agent, want %s", path, args[len(args)-1], own.(*role).tokens.RoleARN, want)
		}
	}
}

func TestAWS_KubeconfigTokensNeedNoCommand(t *testing.T) {
	kubeconfigOf := func(args ...string) []byte {
		made, err := hub.Kubeconfig(agenttest.BootstrapKubeconfig(), "c1", &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "none", Args: args, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for _, args := range []string{
		"eks-token --cluster-name hub --region us-west-2 --role-arn " + hubRole,
		"--region us-west-2 eks get-token --cluster-name hub --output json --role " + hubRole,
	} {
		got, err := TokensOf(kubeconfigOf(strings.Fields(args)...))
		if err != nil || got.Cluster != "hub" || got.Region != "us-west-2" || got.RoleARN != hubRole {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := TokensOf(kubeconfigOf("login", "--region")); err == nil || !strings.Contains(err.Error(), registration.HubKubeconfigSecret) {
		t.Errorf("another command: %v", err)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	sources "github.com/clusterhub/clusterhub/pkg/remote/mint"
)

const (
	clusterManagerPath = "/apis/operator.open-cluster-management.io/v1/clustermanagers/blue"
	hubSpace           = "blue-open-cluster-management-hub"
	hubSource          = "/api/v1/namespaces/" + hubSpace + "/secrets/" + operatorv1.ExternalHubKubeconfig
)

// newOutsideHub returns a management cluster, a cluster that becomes a hub, and the required arguments of init. hub-operator takes a few polls.
func newOutsideHub(t *testing.T) (management, hub *clitest.Server, config string, args []string) {
	t.Helper()
	hub, _ = clitest.NewPrepared(t)
	hub.Named("hub")
	management = clitest.NewServer(t).Named("management")
	management.Operates(clusterManagerPath, hubSpace)
	looks := 0
	management.On["GET "+clusterManagerPath] = func(w http.ResponseWriter, _ []byte) bool {
		c := management.Get(clusterManagerPath)
		looks++
		if c == nil || looks < 5 {
			return false
		}
		status := &operatorv1.ClusterManagerStatus{ObservedGeneration: 2, Conditions: []metav1.Condition{clitest.Available}}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
		if err != nil {
			t.Error(err)
		}
		c.Object["status"], c.Object["metadata"].(map[string]any)["generation"] = object, int64(2)
		clitest.WriteJSON(w, http.StatusOK, c.Object)
		return true
	}
	return management, hub, clitest.Kubeconfig(t, map[string]*clitest.Server{"mgmt": management, "c1": clitest.NewServer(t)}), []string{"init", "--mode", "detached", "--name", "blue",
		"--management-context", "mgmt", "--hub-kubeconfig", clitest.SourceFile(t, hub, nil), "--skip-operator"}
}

func newClusterManager(change func(*operatorv1.ClusterManager)) *operatorv1.ClusterManager {
	c := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "blue", Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}}}
	c.Spec.DeployOption.Mode = operatorv1.InstallModeDetached
	if change != nil {
		change(c)
	}
	return c
}

func TestInitDetached_CreatesHubAndPrintsJoinCommand(t *testing.T) {
	management, hub, config, args := newOutsideHub(t)
	stdout, stderr, err := clitest.Run(t, config, append(args, "--server-address", "hub.example.com:8443", "--upstream-agents")...)
	if err != nil || strings.Contains(stderr, clitest.AdminToken) {
		t.Fatalf("%v: %s", err, stderr)
	}
	clitest.Says(t, stdout, "The hub blue is prepared for clusters to join. Its servers run on the management cluster, in the namespace "+hubSpace+".",
		"kubectl hub join --hub-token "+clitest.BootstrapToken+" --hub-apiserver "+hub.URL+" --ca-data ")
	clitest.Says(t, stderr, "clustermanager/blue created\n", "secret/external-hub-kubeconfig created\n")
	c := &operatorv1.ClusterManager{}
	management.As(clusterManagerPath, c)
	if own := c.Spec.Clusterhub; c.Mode() != operatorv1.InstallModeDetached || own.APIServer.Address.Host != "hub.example.com" || own.APIServer.Address.Port != 8443 ||
		!slices.Equal(own.Components, []string{"upstream-agents"}) {
		t.Errorf("the ClusterManager is %+v", c.Spec)
	}
	source, err := sources.Parse(management.Secret(hubSource))
	if err != nil || source.Server() != hub.URL || source.BearerToken() != clitest.AdminToken {
		t.Errorf("the source is %v, %v", source, err)
	}
	for s, token := range map[*clitest.Server]string{management: clitest.UserToken, hub: clitest.AdminToken} {
		if len(s.Credentials) != 1 || !s.Credentials["Bearer "+token] {
			t.Error("a server has seen the token of another one")
		}
	}
	if _, stderr, err := clitest.Run(t, config, args...); err != nil || strings.Contains(stderr, " created\n") {
		t.Errorf("again: %v: %s", err, stderr)
	}
}

func TestInitDetached_InvalidArguments(t *testing.T) {
	there := func(change func(*operatorv1.ClusterManager)) func(t *testing.T, management, hub *clitest.Server) {
		return func(_ *testing.T, management, _ *clitest.Server) { management.Put(newClusterManager(change)) }
	}
	for name, test := range map[string]struct {
		change []string
		given  func(t *testing.T, management, hub *clitest.Server)
		want   []string
	}{
		"no mode":             {change: []string{"--mode", "-", "--management-context", "-"}, want: []string{"--hub-kubeconfig, --hub-context, --name and --server-address are for --mode=detached"}},
		"no name":             {change: []string{"--name", "-"}, want: []string{"--name must be set: the name of the ClusterManager"}},
		"a long name":         {change: []string{"--name", strings.Repeat("n", 36)}, want: []string{"--name must be set to a name of at most 35 characters"}},
		"no source":           {change: []string{"--hub-kubeconfig", "-"}, want: []string{"--hub-kubeconfig must be set: the file with the kubeconfig of an admin of the hub"}},
		"an exec plugin":      {change: []string{"--hub-context", "plugin"}, want: []string{`by the program "aws", which hub-operator does not run`}},
		"no such context":     {change: []string{"--hub-context", "x"}, want: []string{`has no context "x": choose one by --hub-context`}},
		"AWS":                 {change: []string{"--registration-auth", "awsirsa", "--hub-cluster-arn", clitest.HubARN}, want: []string{"--registration-auth must be csr with --mode=detached: for others, set spec.registrationConfiguration.registrationDrivers"}},
		"an address of a URL": {change: []string{"--server-address", "https://h"}, want: []string{"--server-address must be HOST or HOST:PORT"}},
		"this machine":        {change: []string{"--server-address", "127.0.0.1:443"}, want: []string{"--server-address must be HOST or HOST:PORT"}},
		"no port":             {change: []string{"--server-address", "h:70000"}, want: []string{`--server-address: the port must be a number from 1 to 65535, not "70000"`}},
		"the same cluster":    {given: func(_ *testing.T, _, hub *clitest.Server) { hub.Named("management") }, want: []string{"are the same cluster: install the hub there as docs/operating.md says"}},
		"no admin":            {given: func(_ *testing.T, _, hub *clitest.Server) { hub.Allow(false) }, want: []string{"the user of --hub-kubeconfig may not create namespaces on the hub"}},
		"the hub's 401": {given: func(_ *testing.T, _, hub *clitest.Server) {
			hub.Refuse("GET "+clitest.SystemPath, apierrors.NewUnauthorized(clitest.AdminToken))
		}, want: []string{"(401): check --hub-kubeconfig"}},
		"no right to make it": {given: func(_ *testing.T, management, _ *clitest.Server) { management.Allow(false) }, want: []string{"this user may not get clustermanagers.operator.open-cluster-management.io"}},
		"a hub here":          {given: there(func(c *operatorv1.ClusterManager) { c.Spec.DeployOption.Mode = operatorv1.InstallModeDefault }), want: []string{"the ClusterManager blue has the mode Default, which cannot be changed: choose another name by --name, or run kubectl hub clean --name=blue first"}},
		"one that goes":       {given: there(func(c *operatorv1.ClusterManager) { c.DeletionTimestamp = &metav1.Time{Time: clitest.Expiry} }), want: []string{"the ClusterManager blue is being deleted: wait until it is gone"}},
		"another's":           {given: there(func(c *operatorv1.ClusterManager) { c.Labels = nil }), want: []string{"ClusterManager blue already exists and was not created by kubectl hub"}},
		"one of another hub": {given: func(t *testing.T, mgmt, _ *clitest.Server) {
			mgmt.Put(newClusterManager(nil))
			mgmt.Put(management.NewKubeconfigSecret(hubSpace, operatorv1.ExternalHubKubeconfig, clitest.NewIdentity(t, "c1", "https://hub9").Data["kubeconfig"]))
		}, want: []string{"the ClusterManager blue has a Secret external-hub-kubeconfig for https://hub9, not for https://"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			management, hub, config, args := newOutsideHub(t)
			if test.given != nil {
				test.given(t, management, hub)
			}
			before := management.Paths()
			stdout, stderr, err := clitest.Run(t, config, clitest.With(args, test.change...)...)
			if err == nil || stdout != "" || strings.Contains(stderr+err.Error(), clitest.AdminToken) {
				t.Fatalf("it goes on, or prints a secret: %v, %q, %q", err, stdout, stderr)
			}
			clitest.Says(t, command.ErrorLine(err), test.want...)
			hub.WantUnchanged()
			management.WantUnchanged()
			if after := management.Paths(); !slices.Equal(after, before) {
				t.Errorf("it has made something: %q", after)
			}
		})
	}
}

// TestInitDetached_RejectsUnverifiedSource: the rules for the file are the same as for a klusterlet.
func TestInitDetached_RejectsUnverifiedSource(t *testing.T) {
	_, hub, config, args := newOutsideHub(t)
	file := clitest.SourceFile(t, hub, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
	})
	_, _, err := clitest.Run(t, config, clitest.With(args, "--hub-kubeconfig", file)...)
	if err == nil || !strings.Contains(err.Error(), "insecure-skip-tls-verify") {
		t.Errorf("got %v", err)
	}
}

func TestClean(t *testing.T) {
	management := clitest.NewServer(t, newClusterManager(nil)).Named("management")
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": management})
	// hub-operator takes some time.
	looks, there := 0, management.Get(clusterManagerPath)
	management.On["GET "+clusterManagerPath] = func(w http.ResponseWriter, _ []byte) bool {
		looks++
		if looks > 1 && looks < 4 {
			clitest.WriteJSON(w, http.StatusOK, there.Object)
			return true
		}
		return false
	}
	if got := clitest.MustRun(t, config, "clean", "--name", "blue"); got != "The hub blue is removed.\n" || looks < 4 {
		t.Errorf("it prints %q after %d looks", got, looks)
	}
	if management.Get(clusterManagerPath) != nil {
		t.Error("the ClusterManager is there")
	}
	if got := clitest.MustRun(t, config, "clean", "--name", "blue"); got != "No ClusterManager blue found on the management cluster.\n" {
		t.Errorf("again: %q", got)
	}
	clitest.Says(t, clitest.MustRun(t, config, "clean", "--name", "blue", "-o", "json"), `"removed": false`)
}

func TestClean_InvalidArguments(t *testing.T) {
	for name, test := range map[string]struct {
		args  string
		given func(*clitest.Server)
		want  string
	}{
		"no name": {"clean", nil, "--name must be set"},
		"a hub here": {"clean --name blue", func(s *clitest.Server) {
			s.Put(newClusterManager(func(c *operatorv1.ClusterManager) { c.Spec.DeployOption.Mode = "" }))
		}, "kubectl delete clustermanager blue removes it"},
		"no right": {"clean --name blue", func(s *clitest.Server) {
			s.Put(newClusterManager(nil))
			s.Refuse("DELETE "+clusterManagerPath, clitest.Forbidden("clustermanagers", "delete"))
		}, "deleting the ClusterManager blue"},
		"no such thing": {"clean --name blue --timeout 0s", nil, "--timeout must be above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewServer(t).Named("management")
			if test.given != nil {
				test.given(s)
			}
			_, _, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), strings.Fields(test.args)...)
			if err == nil || !strings.Contains(command.ErrorLine(err), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestClean_Waits verifies that a deletion that takes long prints what it waits for.
func TestClean_Waits(t *testing.T) {
	goes := newClusterManager(func(c *operatorv1.ClusterManager) {
		c.Generation, c.Finalizers = 2, []string{operatorv1.ClusterManagerFinalizer}
		c.Annotations = map[string]string{operatorv1.AnnotationEvictionTimestamp: "2030-01-02T03:04:05Z"}
		c.Status.Conditions = []metav1.Condition{clitest.Unapplied}
	})
	s := clitest.NewServer(t, goes).Named("management")
	s.Answer("DELETE "+clusterManagerPath, metav1.Status{Status: "Success"})
	_, _, err := clitest.RunIn(s.InterruptedAt("GET "+clusterManagerPath, 4), t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "clean", "--name", "blue")
	if err == nil {
		t.Fatal("it goes on")
	}
	clitest.Says(t, err.Error(), "waiting for the ClusterManager blue to be gone: interrupted: its cluster has been unreachable since 2030-01-02T03:04:05Z; the managed cluster: no route; "+
		"its finalizers are "+operatorv1.ClusterManagerFinalizer)
}

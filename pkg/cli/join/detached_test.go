// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	sources "github.com/clusterhub/clusterhub/pkg/remote/mint"
)

// detaching is a join of a cluster that runs no pods.
type detaching struct {
	hub, management, managed *clitest.Server
	// config is for the management cluster, and source for the managed one.
	config, source string
	args           []string
}

func newDetaching(t *testing.T) *detaching {
	t.Helper()
	d := &detaching{hub: clitest.NewServer(t), management: clitest.NewServer(t).Named("management"), managed: clitest.NewServer(t).Named("managed")}
	d.hub.Allow(true)
	d.config = clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": d.hub, "mgmt": d.management})
	d.source = clitest.SourceFile(t, d.managed, nil)
	d.management.Operates(clitest.KlusterletPath, clitest.DetachedSpace)
	d.args = []string{"join", "--mode", "detached", "--management-context", "mgmt", "--managed-kubeconfig", d.source, "--works", "admin",
		"--hub-token", clitest.BootstrapToken, "--hub-apiserver", d.hub.URL, "--ca-data", base64.StdEncoding.EncodeToString(d.hub.CA()),
		"--cluster-name", "c1", "--skip-operator"}
	return d
}

func (d *detaching) run(t *testing.T, more ...string) (stdout, stderr string, err error) {
	t.Helper()
	stdout, stderr, err = clitest.Run(t, d.config, append(slices.Clone(d.args), more...)...)
	d.hides(t, stderr, err)
	return stdout, stderr, err
}

// hides verifies that the output contains no secrets.
func (d *detaching) hides(t *testing.T, stderr string, err error) {
	t.Helper()
	if err != nil {
		stderr += err.Error()
	}
	for _, secret := range []string{clitest.AdminToken, clitest.BootstrapToken, "another-token"} {
		if strings.Contains(stderr, secret) {
			t.Errorf("it prints the secret %s: %s", secret, stderr)
		}
	}
}

func TestJoinDetached_CreatesKlusterletAndSecrets(t *testing.T) {
	d := newDetaching(t)
	stdout, stderr, err := d.run(t, "--cluster-labels", "region=eu", "--works-namespaces", "b,a")
	if err != nil || stdout != "hub-operator runs the agent of cluster c1 on the management cluster, in the namespace "+clitest.DetachedSpace+".\n"+
		"It applies works with the rights of admin in these namespaces: a, b.\nOn the hub, accept it:\n\n    kubectl hub accept --clusters c1\n\n"+
		"kubectl hub get klusterlets shows what it waits for.\n" {
		t.Fatalf("%v: %q", err, stdout)
	}
	clitest.Says(t, stderr, "klusterlet/c1 created\n", "secret/external-managed-kubeconfig created\n", "secret/bootstrap-hub-kubeconfig created\n",
		"Warning: --managed-kubeconfig has the server "+d.managed.URL+", which is this machine")
	k := &operatorv1.Klusterlet{}
	d.management.As(clitest.KlusterletPath, k)
	if k.Mode() != operatorv1.InstallModeDetached || k.Spec.ClusterName != "c1" || k.Spec.RegistrationConfiguration.ClusterLabels["region"] != "eu" ||
		k.Spec.Clusterhub.Works.Role != "admin" || !slices.Equal(k.Spec.Clusterhub.Works.Namespaces, []string{"a", "b"}) || k.Spec.WorkImagePullSpec != "" ||
		k.Labels[deploy.LabelManagedBy] != deploy.ManagedBy {
		t.Errorf("the Klusterlet is %+v", k)
	}
	source, err := sources.Parse(d.management.Secret(clitest.DetachedSource))
	if err != nil || source.Server() != d.managed.URL || source.BearerToken() != clitest.AdminToken || strings.Contains(string(d.management.Secret(clitest.DetachedSource)), "another") {
		t.Errorf("the source is %v, %v", source, err)
	}
	bootstrap, err := clientcmd.Load(d.management.Secret(clitest.DetachedHub))
	if err != nil || bootstrap.AuthInfos["hub"].Token != clitest.BootstrapToken || bootstrap.Clusters["hub"].Server != d.hub.URL {
		t.Errorf("the bootstrap kubeconfig is not what was given: %v", err)
	}
	// Each server gets its own credentials, and no others.
	for s, token := range map[*clitest.Server]string{d.hub: clitest.BootstrapToken, d.management: clitest.UserToken, d.managed: clitest.AdminToken} {
		if len(s.Credentials) != 1 || !s.Credentials["Bearer "+token] {
			t.Error("a server has seen the token of another one")
		}
	}
	d.hub.WantUnchanged()
	d.managed.WantUnchanged()

	before := d.management.Paths()
	_, stderr, err = d.run(t)
	if err != nil || strings.Contains(stderr, " created\n") || !slices.Equal(before, d.management.Paths()) {
		t.Errorf("again: %v: %s", err, stderr)
	}
	clitest.Says(t, stderr, "Warning: --managed-kubeconfig")
	stdout, _, err = d.run(t, "-o", "json", "--image", "example.com/agent:1")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stdout, `"mode": "detached"`, `"klusterlet": "c1"`, `"namespace": "`+clitest.DetachedSpace+`"`, `"joined": false`, `"next": "kubectl hub accept --clusters c1"`)
	d.management.As(clitest.KlusterletPath, k)
	if k.Spec.RegistrationImagePullSpec != "example.com/agent:1" || k.Spec.WorkImagePullSpec != "example.com/agent:1" {
		t.Errorf("the images are %+v", k.Spec)
	}
}

// TestJoinDetached_HostedMode: the flags have the names that Open Cluster Management's clusteradm uses.
func TestJoinDetached_HostedMode(t *testing.T) {
	d := newDetaching(t)
	d.management.Operates("/apis/operator.open-cluster-management.io/v1/klusterlets/k1", "k1")
	args := clitest.With(d.args, "--mode", "Hosted", "--management-context", "-", "--managed-kubeconfig", "-", "--managed-cluster-kubeconfig", d.source, "--klusterlet", "k1", "--context", "mgmt")
	_, stderr, err := clitest.Run(t, d.config, args...)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stderr, "klusterlet/k1 created\n", "secret/external-managed-kubeconfig created\n")
	k := &operatorv1.Klusterlet{}
	d.management.As("/apis/operator.open-cluster-management.io/v1/klusterlets/k1", k)
	if k.Mode() != operatorv1.InstallModeHosted {
		t.Errorf("the mode is %s", k.Mode())
	}
}

// TestJoinDetached_InlinesFiles verifies that the content of files becomes part of the secret: the files do not exist where the agent
// runs.
func TestJoinDetached_InlinesFiles(t *testing.T) {
	d := newDetaching(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), d.managed.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	file := clitest.SourceFile(t, d.managed, func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		cluster.CertificateAuthorityData, cluster.CertificateAuthority = nil, filepath.Join(dir, "ca.crt")
	})
	d.args = clitest.With(d.args, "--managed-kubeconfig", file)
	if _, _, err := d.run(t, "--managed-context", "c"); err != nil {
		t.Fatal(err)
	}
	source, err := sources.Parse(d.management.Secret(clitest.DetachedSource))
	if err != nil || string(source.CA()) != string(d.managed.CA()) {
		t.Errorf("the authority is not in the secret: %v", err)
	}
}

func TestJoinDetached_PrintsManifests(t *testing.T) {
	d := newDetaching(t)
	stdout, _, err := d.run(t, "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stdout, "kind: Klusterlet\n", "mode: Detached\n", "name: external-managed-kubeconfig\n", "name: bootstrap-hub-kubeconfig\n", "namespace: "+clitest.DetachedSpace+"\n")
	d.management.WantAsked()
	d.managed.WantAsked()
}

// TestJoinDetached_InvalidArguments verifies that errors are reported before anything is created.
func TestJoinDetached_InvalidArguments(t *testing.T) {
	there := func(change func(*operatorv1.Klusterlet)) func(*testing.T, *detaching) {
		return func(_ *testing.T, d *detaching) {
			k := clitest.NewKlusterlet("c1")
			change(k)
			d.management.Put(k)
		}
	}
	user := func(change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) func(*testing.T, *detaching) {
		return func(t *testing.T, d *detaching) {
			d.args = clitest.With(d.args, "--managed-kubeconfig", clitest.SourceFile(t, d.managed, change))
		}
	}
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("token: {"+clitest.AdminToken), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change []string
		given  func(*testing.T, *detaching)
		want   []string
	}{
		"another mode":           {change: []string{"--mode", "outside"}, want: []string{`--mode must be default, detached or hosted, not "outside"`}},
		"no mode":                {change: []string{"--mode", "-"}, want: []string{"--management-context and --management-kubeconfig are for --mode=detached"}},
		"a source for nothing":   {change: []string{"--mode", "-", "--management-context", "-"}, want: []string{"--managed-kubeconfig, --managed-context and --klusterlet are for --mode=detached"}},
		"no source":              {change: []string{"--managed-kubeconfig", "-"}, want: []string{"--managed-kubeconfig must be set: the file with the kubeconfig of an admin of the managed cluster"}},
		"no such file":           {change: []string{"--managed-kubeconfig", "/nonexistent"}, want: []string{"--managed-kubeconfig: stat /nonexistent"}},
		"a folder":               {change: []string{"--managed-kubeconfig", dir}, want: []string{"must be a file of at most 16 MiB: kubectl config view --minify --flatten"}},
		"no kubeconfig":          {change: []string{"--managed-kubeconfig", garbage}, want: []string{"is not a kubeconfig"}},
		"no such context":        {change: []string{"--managed-context", "x"}, want: []string{`has no context "x": choose one by --managed-context`}},
		"an exec plugin":         {change: []string{"--managed-context", "plugin"}, want: []string{`gets its credentials by the program "aws", which hub-operator does not run: create a ServiceAccount`, "docs/detached.md"}},
		"a context without a CA": {change: []string{"--managed-context", "another"}, want: []string{"--managed-kubeconfig: ", "certificate-authority-data"}},
		"no DNS label":           {change: []string{"--klusterlet", "K_1"}, want: []string{`--klusterlet: "K_1" is not a DNS label`}},
		"a long name":            {change: []string{"--cluster-name", strings.Repeat("c", 34)}, want: []string{"--klusterlet must be set to a name of at most 33 characters"}},
		"a long name, hosted":    {change: []string{"--mode", "hosted", "--klusterlet", strings.Repeat("c", 41)}, want: []string{"--klusterlet must be set to a name of at most 40 characters"}},
		"nothing said of works":  {change: []string{"--works", "-"}, want: []string{"--works must be set to admin or cluster-admin for --mode=detached"}},
		"no works":               {change: []string{"--works", "none"}, want: []string{"--works must be set to admin or cluster-admin for --mode=detached"}},
		"AWS":                    {change: []string{"--registration-auth", "awsirsa"}, want: []string{"--registration-auth=awsirsa is for --mode=default"}},
		"two contexts":           {change: []string{"--context", "hub"}, want: []string{"--context and --management-context both select the management cluster: set only one"}},
		"no such management":     {change: []string{"--management-context", "x"}, want: []string{`context "x" does not exist`}},
		"a token in a file":      {given: user(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token, u.TokenFile = "", "/token" }), want: []string{"reads its token from the file /token", "create a ServiceAccount"}},
		"an auth provider": {given: user(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		}), want: []string{`by the auth provider "oidc"`, "create a ServiceAccount"}},
		"a missing file": {given: user(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/nonexistent.crt" }), want: []string{"open /nonexistent.crt"}},
		"an unverified server": {given: user(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
		}), want: []string{"insecure-skip-tls-verify"}},
		"no credentials":        {given: user(func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "" }), want: []string{"has no credentials"}},
		"nothing at the source": {given: user(func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://127.0.0.1:1" }), want: []string{"getting the identity of the managed cluster", "cannot be reached", "check --managed-kubeconfig"}},
		"the managed one's 401": {given: func(_ *testing.T, d *detaching) {
			d.managed.Refuse("GET "+clitest.SystemPath, apierrors.NewUnauthorized("not "+clitest.AdminToken))
		}, want: []string{"does not accept the credentials (401): check --managed-kubeconfig"}},
		"it repeats the token": {given: func(_ *testing.T, d *detaching) {
			d.managed.Refuse("GET "+clitest.SystemPath, apierrors.NewBadRequest("not "+clitest.AdminToken))
		}, want: []string{"not [redacted]"}},
		"no admin":         {given: func(_ *testing.T, d *detaching) { d.managed.Allow(false) }, want: []string{"the user of --managed-kubeconfig may not create namespaces on the managed cluster", "the kubeconfig of an admin"}},
		"the same cluster": {given: func(_ *testing.T, d *detaching) { d.managed.Named("management") }, want: []string{"are the same cluster: omit --mode"}},
		"management's 401": {given: func(_ *testing.T, d *detaching) {
			d.management.Refuse("GET "+clitest.SystemPath, apierrors.NewUnauthorized("no"))
		}, want: []string{"the management cluster https://", "(401): check --management-context"}},
		"no right to make it": {given: func(_ *testing.T, d *detaching) { d.management.Allow(false) }, want: []string{"this user may not get klusterlets.operator.open-cluster-management.io on the management cluster", "have an admin of it run this command"}},
		"the wrong bootstrap": {given: func(_ *testing.T, d *detaching) {
			d.hub.Refuse("GET /apis/cluster.open-cluster-management.io/v1", apierrors.NewUnauthorized("no"))
		}, want: []string{"get a new --hub-token"}},
		"a Klusterlet here":  {given: there(func(k *operatorv1.Klusterlet) { k.Spec.DeployOption.Mode = "" }), want: []string{"Klusterlet c1 has the mode Default, which cannot be changed: choose another name by --klusterlet, or run kubectl hub unjoin"}},
		"of another cluster": {given: there(func(k *operatorv1.Klusterlet) { k.Spec.ClusterName = "c9" }), want: []string{`Klusterlet c1 is for the cluster "c9" of its hub, not for c1: choose another name by --klusterlet, or run kubectl hub unjoin --mode=detached --klusterlet=c1 --cluster-name c9 first`}},
		"one that goes":      {given: there(func(k *operatorv1.Klusterlet) { k.DeletionTimestamp = &metav1.Time{Time: clitest.Expiry} }), want: []string{"Klusterlet c1 is being deleted: wait until it is gone"}},
		"another's":          {given: there(func(k *operatorv1.Klusterlet) { k.Labels = nil }), want: []string{"Klusterlet c1 already exists and was not created by kubectl hub", deploy.LabelManagedBy + "=" + deploy.ManagedBy}},
		"one of another hub": {given: func(t *testing.T, d *detaching) {
			d.management.Put(clitest.NewKlusterlet("c1"))
			d.management.Put(management.NewKubeconfigSecret(clitest.DetachedSpace, operatorv1.BootstrapHubKubeconfig, clitest.NewIdentity(t, "c1", "https://hub9").Data["kubeconfig"]))
		}, want: []string{"Klusterlet c1 has a Secret bootstrap-hub-kubeconfig for https://hub9, not for https://", "If it is the same cluster at another address, change the Secret " + clitest.DetachedSpace + "/bootstrap-hub-kubeconfig"}},
		"one for another source": {given: func(t *testing.T, d *detaching) {
			d.management.Put(clitest.NewKlusterlet("c1"))
			d.management.Put(management.NewKubeconfigSecret(clitest.DetachedSpace, operatorv1.ExternalManagedKubeconfig, clitest.NewIdentity(t, "c1", "https://c9").Data["kubeconfig"]))
		}, want: []string{"Klusterlet c1 has a Secret external-managed-kubeconfig for https://c9, not for https://"}},
		"a secret of others": {given: func(_ *testing.T, d *detaching) {
			d.management.Put(management.NewKubeconfigSecret(clitest.DetachedSpace, operatorv1.BootstrapHubKubeconfig, []byte("x")))
		}, want: []string{"Secret " + clitest.DetachedSpace + "/bootstrap-hub-kubeconfig already exists and was not created by kubectl hub"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDetaching(t)
			if test.given != nil {
				test.given(t, d)
			}
			before := d.management.Paths()
			d.args = clitest.With(d.args, test.change...)
			stdout, _, err := d.run(t)
			if err == nil || stdout != "" {
				t.Fatalf("it goes on: %v, %q", err, stdout)
			}
			clitest.Says(t, command.ErrorLine(err), test.want...)
			d.hub.WantUnchanged()
			d.managed.WantUnchanged()
			d.management.WantUnchanged()
			if after := d.management.Paths(); !slices.Equal(after, before) {
				t.Errorf("it has made something: %q", after)
			}
		})
	}
}

// TestJoinDetached_Resumes verifies that a join that was interrupted can be run again, and creates what is missing.
func TestJoinDetached_Resumes(t *testing.T) {
	for name, at := range map[string]string{
		"before hub-operator looks":  "GET /api/v1/namespaces/" + clitest.DetachedSpace,
		"before the first secret":    "GET " + clitest.DetachedSource,
		"before the second secret":   "GET " + clitest.DetachedHub,
		"while the agent is started": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDetaching(t)
			var ctx context.Context
			if at == "" {
				ctx = d.management.InterruptedAt("GET "+clitest.KlusterletPath, 4)
			} else {
				// Secrets are checked before anything is created, and again when they are created.
				ctx = d.management.InterruptedAt(at, 1+strings.Count(at, "/secrets/"))
			}
			_, stderr, err := clitest.RunIn(ctx, t, d.config, append(d.args, "--wait")...)
			if err == nil {
				t.Fatal("it goes on")
			}
			d.hides(t, stderr, err)
			if d.management.Get(clitest.KlusterletPath) == nil {
				t.Fatal("there is no Klusterlet yet")
			}
			if _, _, err := d.run(t); err != nil {
				t.Fatal(err)
			}
			if len(d.management.Secret(clitest.DetachedSource)) == 0 || len(d.management.Secret(clitest.DetachedHub)) == 0 {
				t.Error("a secret is missing")
			}
		})
	}
}

func TestSource_ReportsExpiryOfCredentials(t *testing.T) {
	d := newDetaching(t)
	certificate, key, err := cert.GenerateSelfSignedCertKey("admin", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		t.Fatal(err)
	}
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1893553445}`)) + ".c2ln"
	for name, test := range map[string]struct {
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		want   string
	}{
		"a token":            {nil, ""},
		"a token that says":  {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = token }, "expire at 2030-01-02T03:04:05Z: run this command again with new ones before, or create a ServiceAccount"},
		"a token of no JSON": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "a.b.c" }, ""},
		"a certificate": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.ClientCertificateData, u.ClientKeyData = "", certificate, key
		}, "expire at " + parsed[0].NotAfter.UTC().Format(time.RFC3339)},
	} {
		t.Run(name, func(t *testing.T) {
			d.args = clitest.With(d.args, "--managed-kubeconfig", clitest.SourceFile(t, d.managed, test.change))
			_, stderr, err := d.run(t)
			if err != nil || strings.Contains(stderr, "expire") != (test.want != "") || !strings.Contains(stderr, test.want) || strings.Contains(stderr, token) {
				t.Errorf("%v: it says %q, want %q", err, stderr, test.want)
			}
		})
	}
}

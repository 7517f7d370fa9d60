// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/hack/charts"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/typing"
)

// TestDocs_HelmPage types the commands of docs/helm.md, on one cluster that becomes a hub and a cluster of itself: each works where those before
// it have been typed.
func TestDocs_HelmPage(t *testing.T) {
	hub, run := withNode(t)
	// The page waits for servers that end. That they end with a delay is for test/e2e/apiserver.
	run(map[string][]string{"hub-apiserver": {"--shutdown-delay-duration=0s"}})
	r := newReader(t, hub, helmCommand(t))
	// As soon as there is the namespace: whoever types has no such thing to do.
	r.Before = func() {
		_, err := harness.Kube(t, hub.AdminConfig()).CoreV1().Namespaces().Get(t.Context(), charts.HubNamespace, metav1.GetOptions{})
		switch {
		case err == nil:
			r.Before = nil
			endpoint(t, hub)
		case !apierrors.IsNotFound(err):
			t.Fatal(err)
		}
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("hub-apiserver."+charts.HubNamespace+".svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, ca := pem.Decode(certificate) // which follows
	for file, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": ca} {
		r.Write(file, data)
	}
	r.Types(typing.RunBy(t, harness.Root, "hack/charts/e2e", t.Name()))
	c := harness.Must(harness.Ours(t, hub.AdminConfig()).ClusterV1().ManagedClusters().Get(t.Context(), "c1-team-a", metav1.GetOptions{}))(t)
	if !meta.IsStatusConditionTrue(c.Status.Conditions, "ManagedClusterConditionAvailable") {
		t.Errorf("after all commands the cluster says %v", c.Status.Conditions)
	}
	pods := harness.Must(harness.Kube(t, hub.AdminConfig()).CoreV1().Pods(charts.HubNamespace).List(t.Context(), metav1.ListOptions{}))(t)
	namespace := harness.Must(harness.Kube(t, hub.AdminConfig()).CoreV1().Namespaces().Get(t.Context(), charts.HubNamespace, metav1.GetOptions{}))(t)
	if len(pods.Items) == 0 || namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("%d pods are in a namespace with the labels %v", len(pods.Items), namespace.Labels)
	}
}

// TestDocs_OperatingPage types how the hub is deployed by kustomize: first with one replica, then with three. What runs then is for test/e2e/install.
func TestDocs_OperatingPage(t *testing.T) {
	hub := harness.Hub(t)
	t.Cleanup(func() { // the next tests install it, too
		// No namespace goes while there are the hub's APIServices, so these are deleted before anything is waited for.
		for _, of := range [][]string{{"base", "--wait=false"}, {"cluster-provider"}, {"base"}} {
			args := append([]string{"delete", "--ignore-not-found", "--timeout=60s", "-k", harness.Overlay(of[0])}, of[1:]...)
			if out, err := hub.Kubectl(context.WithoutCancel(t.Context()), args...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	newReader(t, hub).Types(typing.RunBy(t, harness.Root, "hack/charts/e2e", t.Name()))
	if n := deployments(t, hub)["hub-apiserver"].Replicas; n == nil || *n != 3 {
		t.Errorf("hub-apiserver has %v replicas, want 3", n)
	}
	harness.MustKubectlOf(t, hub, "", "-n", "openmcp-system", "get", "deployment", "cluster-provider-kubeconfig")
}

// newReader is one who types what pages say: as an admin of a cluster, in a clone of the repository, with kubectl and its plugin, and with the programs
// of folders besides.
func newReader(t *testing.T, cluster *localhub.Instance, folders ...string) *typing.Session {
	t.Helper()
	dir := t.TempDir()
	artifacts := harness.Must(filepath.Abs(filepath.Join(harness.Root, "artifacts")))(t)
	if err := os.Symlink(artifacts, filepath.Join(dir, "artifacts")); err != nil {
		t.Fatal(err)
	}
	folders = append(folders, harness.Must(filepath.Abs(harness.BinDir(t)))(t), os.Getenv("PATH"))
	r := typing.New(t, dir, "HOME="+dir, "TMPDIR="+dir, "LC_ALL=C.UTF-8", "PATH="+strings.Join(folders, ":"),
		"KUBECONFIG="+harness.Must(filepath.Abs(cluster.AdminKubeconfig()))(t))
	r.StopsAtFailure = true
	return r
}

// helmCommand is a folder with helm, as readers have it, in the version that go.mod says.
func helmCommand(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "helm"), "helm.sh/helm/v4/cmd/helm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("helm: %v: %s", err, out)
	}
	return dir
}

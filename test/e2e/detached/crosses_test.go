// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/leak"
)

// TestDetached_NoCredentialCrosses reads all stored data of the managed cluster and the hub. The credentials for both remain on the cluster that runs
// the agent.
func TestDetached_NoCredentialCrosses(t *testing.T) {
	w := newWorld(t)
	j := w.joined()
	ofHub, ofManaged := leak.Secrets{}, leak.Secrets{}
	secrets := harness.Must(harness.Kube(t, w.management.AdminConfig()).CoreV1().Secrets(j.namespace).List(t.Context(), metav1.ListOptions{}))(t)
	for _, secret := range secrets.Items {
		into := ofManaged
		if secret.Name == "bootstrap-hub-kubeconfig" || secret.Name == "hub-kubeconfig-secret" {
			into = ofHub
		}
		for key, value := range secret.Data {
			into.AddFrom(secret.Name+" "+key, value)
		}
	}
	for name, want := range map[string]leak.Secrets{"bootstrap-hub-kubeconfig kubeconfig": ofHub, "hub-kubeconfig-secret tls.key": ofHub,
		"external-managed-kubeconfig kubeconfig": ofManaged, "external-managed-kubeconfig-registration token": ofManaged,
		"external-managed-kubeconfig-work token": ofManaged} {
		if want[name+" (1)"] == nil {
			t.Errorf("there is no secret in %s", name)
		}
	}
	managed := etcd(t, w.managed.Dir(), "etcd", w.managed.EtcdPort)
	hub := append(etcd(t, w.hub.Dir(), "etcd", portOf(t, w.hub, "etcd")), etcd(t, w.hub.Dir(), "hub-etcd", portOf(t, w.hub, "hub-etcd"))...)
	for _, crossed := range ofHub.Find(managed) {
		t.Errorf("the managed cluster has a credential of the hub: %s", crossed)
	}
	for _, crossed := range ofManaged.Find(hub) {
		t.Errorf("the hub has a credential of the managed cluster: %s", crossed)
	}
	// Existing credentials would be found.
	all := leak.Secrets{}
	maps.Copy(all, ofHub)
	maps.Copy(all, ofManaged)
	if found := all.Find(etcd(t, w.management.Dir(), "etcd", portOf(t, w.management.Instance, "etcd"))); len(found) != len(ofHub)+len(ofManaged) {
		t.Errorf("of %d and %d secrets, %v are found where they are", len(ofHub), len(ofManaged), found)
	}
	for where, dump := range map[string][]byte{"the managed cluster": managed, "the hub": hub} {
		if !strings.Contains(string(dump), j.name) {
			t.Errorf("%s knows nothing of %s: its etcd was not read", where, j.name)
		}
	}
}

func portOf(t *testing.T, h *localhub.Instance, name string) int {
	t.Helper()
	var ports map[string]int
	if err := json.Unmarshal(harness.Must(os.ReadFile(filepath.Join(h.Dir(), "ports.json")))(t), &ports); err != nil {
		t.Fatal(err)
	}
	return ports[name]
}

// etcd returns all data of an etcd of a local hub.
func etcd(t *testing.T, dir, name string, port int) (all []byte) {
	t.Helper()
	client := harness.Must(localserver.Etcd{
		Members:      []localserver.EtcdMember{{Port: port}},
		Certificates: localserver.Certificates{Dir: filepath.Join(dir, "pki")}, ServerCA: "ca", Client: name + "-client",
	}.Connect())(t)
	defer client.Close()
	for from := "\x00"; ; {
		page := harness.Must(client.Get(t.Context(), from, clientv3.WithFromKey(), clientv3.WithLimit(200)))(t)
		for _, kv := range page.Kvs {
			all = append(append(append(append(all, kv.Key...), '\n'), kv.Value...), '\n')
			from = string(kv.Key) + "\x00"
		}
		if !page.More {
			return all
		}
	}
}

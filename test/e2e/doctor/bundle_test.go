// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/leak"
)

// bundles plants secrets in all fields that may contain them, and searches the archives for them, in any encoding.
func bundles(t *testing.T, w *world) {
	secrets := leak.Secrets{}
	canary := func(where string) string {
		value := fmt.Sprintf("Canary-%s-%x", strings.ReplaceAll(where, " ", "-"), []byte(where))
		secrets[where] = []byte(value)
		return value
	}
	planted := func(where, namespace string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: canary, namespace: %[1]s}, stringData: {password: %[2]s}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: canary, namespace: %[1]s, labels: {app.kubernetes.io/name: hub-agent}, annotations: {note: %[3]s}}, spec: {replicas: 1,
selector: {matchLabels: {app.kubernetes.io/name: hub-agent, canary: "true"}}, template: {metadata: {labels: {app.kubernetes.io/name: hub-agent, canary: "true"}, annotations: {note: %[4]s}},
spec: {containers: [{name: canary, image: example.com/canary, command: [run, %[5]s], args: ["--password=%[6]s", %[7]s], env: [{name: PASSWORD, value: %[8]s}]}]}}}}
`, namespace, canary(where+" secret"), canary(where+" annotation"), canary(where+" pod annotation"), canary(where+" command"), canary(where+" flag"), canary(where+" argument"),
			canary(where+" environment"))
	}
	hub := planted("hub", "clusterhub-system") + fmt.Sprintf(`---
{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: canary, labels: {tier: gold}, annotations: {note: %s}}, spec: {hubAcceptsClient: true,
managedClusterClientConfigs: [{url: "https://c.example.com", caBundle: %s}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: canary, annotations: {note: %s}}, webhooks: [{name: w.example.com, rules: [],
sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, clientConfig: {url: "https://w.example.com/%s"}}]}
`, canary("hub cluster"), "UmVkYWN0ZWQgYXMgYSB3aG9sZSBhbmQgcHVibGlj", canary("hub webhook"), canary("hub webhook URL"))
	w.kubectl(t, onHub, hub, "apply", "-f", "-") // kubectl also copies all of it to an annotation
	spoke := planted("cluster", registration.AgentNamespace) + fmt.Sprintf(`---
{apiVersion: v1, kind: Event, metadata: {name: canary, namespace: %s}, type: Warning, reason: Canary, message: "the server has sent Authorization: Bearer %s",
involvedObject: {kind: Pod, namespace: %[1]s, name: canary}}
`, registration.AgentNamespace, canary("cluster event"))
	w.kubectl(t, onSpoke, spoke, "apply", "-f", "-")
	// This verifies that the search finds leaks.
	if found := secrets.Find([]byte(hub + spoke)); len(found) != len(secrets) || len(found) == 0 {
		t.Fatalf("of %d secrets, these are planted: %v", len(secrets), found)
	}
	before := len(secrets)
	for _, name := range []string{registration.BootstrapSecret, registration.HubKubeconfigSecret} {
		for key, value := range w.secret(t, name).Data {
			secrets.AddFrom(name+" "+key, value)
		}
	}
	if len(secrets) < before+2 {
		t.Fatal("the Secrets of the agent have no token, or no key")
	}

	for where, kinds := range map[string][]string{
		onHub:   {"APIService", "Deployment", "ManagedCluster", "Lease", "ClusterRole", "ValidatingWebhookConfiguration"},
		onSpoke: {"Deployment", "Pod", "Secret", "Event", "ClusterRole"},
	} {
		file := filepath.Join(t.TempDir(), "doctor.tar.gz")
		args := []string{"doctor", "--context", where, "--bundle", file}
		if _, stderr, err := w.plugin.Run(t, args...); !strings.Contains(stderr, "Wrote "+file) {
			t.Fatalf("%v: %s", err, stderr)
		}
		files := untar(t, file)
		for _, kind := range kinds {
			if data, ok := files["doctor/objects/"+kind+".json"]; !ok || !bytes.Contains(data, []byte(`"name"`)) {
				t.Errorf("%s: there is no %s in it: %s", where, kind, data)
			}
		}
		harness.Contains(t, string(files["doctor/report.json"]), `"checked"`)
		harness.Contains(t, string(files["doctor/versions.json"]), `"kubernetes": "v1.`)
		for name, data := range files {
			if found := secrets.Find(data); len(found) > 0 {
				t.Errorf("%s: %s has %v:\n%s", where, name, found, data)
			}
			if bytes.Contains(data, []byte("BEGIN ")) {
				t.Errorf("%s: %s has something in PEM:\n%s", where, name, data)
			}
		}
		if info := harness.Must(os.Stat(file))(t); info.Mode().Perm() != 0o600 {
			t.Errorf("others may read it: %s", info.Mode())
		}
		if _, stderr, err := w.plugin.Run(t, args...); err == nil || !strings.Contains(stderr, "already exists") {
			t.Errorf("a file that exists: %v: %s", err, stderr)
		}
	}
	w.kubectl(t, onHub, "", "delete", "--wait=false", "managedcluster/canary", "validatingwebhookconfiguration/canary")
	w.kubectl(t, onHub, "", "-n", "clusterhub-system", "delete", "secret/canary", "deployment/canary")
	w.kubectl(t, onSpoke, "", inAgents, "delete", "secret/canary", "deployment/canary", "event/canary")
	pods := harness.Kube(t, w.spoke.AdminConfig()).CoreV1().Pods(registration.AgentNamespace)
	if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{LabelSelector: "canary"}); err != nil {
		t.Error(err)
	}
}

func untar(t *testing.T, name string) map[string][]byte {
	t.Helper()
	file := harness.Must(os.Open(name))(t)
	defer func() { _ = file.Close() }()
	archive := tar.NewReader(harness.Must(gzip.NewReader(file))(t))
	files := map[string][]byte{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = harness.Must(io.ReadAll(archive))(t)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worktest provides a real cluster for tests of the work agent: only a real server decides the result of an update, an apply or an owner
// reference. The cluster serves the kinds of works, so it can be the hub, too.
package worktest

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/clusters"
)

var (
	shared clusters.Shared
	once   sync.Once
	failed error // what serveWorks returned
)

const name = "worktest"

// Main runs the tests of a package, and then stops the cluster that they share.
func Main(m *testing.M) int { return shared.Main(m) }

// Config returns an admin's configuration for the cluster.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	config := shared.Config(t, name)
	once.Do(func() { failed = serveWorks(config) })
	if failed != nil {
		t.Fatal(failed)
	}
	return config
}

func serveWorks(config *rest.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, client, Group, "AppliedManifestWork", "Cluster"), serve(ctx, client, Group, "ManifestWork", "Namespaced"))
}

// Serve makes the cluster serve the version v1 of a kind, with any fields. The kind is served for all tests of the package.
func Serve(t testing.TB, group, kind, scope string) {
	t.Helper()
	if err := serve(t.Context(), Client(t), group, kind, scope); err != nil {
		t.Fatal(err)
	}
}

// Group is the API group of works.
const Group = "work.open-cluster-management.io"

func serve(ctx context.Context, client dynamic.Interface, group, kind, scope string) error {
	plural := strings.ToLower(kind) + "s"
	crd := Parse(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s, annotations: {api-approved.kubernetes.io: "unapproved, for tests"}}
spec:
  group: %s
  scope: %s
  names: {kind: %s, plural: %s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, group, group, scope, kind, plural))
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	served := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := served.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

// ClientCertificate returns a certificate, and its key, by which the cluster authenticates a user.
func ClientCertificate(t testing.TB, user pkix.Name) (certificate, key []byte) {
	t.Helper()
	return shared.ClientCertificate(t, name, user)
}

// Client returns a client of the cluster with the rights of an admin.
func Client(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Namespace creates a namespace for the test and returns its name.
func Namespace(t testing.TB) string {
	t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetGenerateName("t-")
	made, err := Client(t).Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.GetName()
}

// Parse parses an object from YAML.
func Parse(text string) *unstructured.Unstructured {
	parsed := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(data, &parsed.Object) // integers stay int64
	}
	if err != nil {
		panic(err)
	}
	return parsed
}

// Eventually waits until a condition holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	err := await.Until(t.Context(), await.Limit, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("timed out waiting: %s", what)
	}
}

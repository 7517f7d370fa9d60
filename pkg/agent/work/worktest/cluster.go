// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worktest has a real cluster for the tests of what the work agent does to one: what becomes of an update, an apply or an owner
// reference only a real server decides. The cluster serves the kinds of works, so it can be the hub, too.
package worktest

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/local"
	"github.com/clusterhub/clusterhub/pkg/localserver"
	"github.com/clusterhub/clusterhub/test/await"
)

// shared is the cluster of all tests of a package: to start one takes longer than most of them.
var shared struct {
	once     sync.Once
	provider *local.Provider
	config   *rest.Config
	err      error
}

// Main runs the tests of a package, and ends the cluster that they have shared.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "worktest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	directory = dir
	defer func() {
		if shared.provider != nil {
			_, _ = shared.provider.Remove(context.Background(), object, clusterprovider.Profile{})
			_ = shared.provider.Close()
		}
	}()
	return m.Run()
}

var (
	directory string
	object    = &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "worktest", UID: uuid.NewUUID()}}
)

// Config is the way to the cluster as its admin.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	if os.Getenv("TEST_BIN_DIR") == "" {
		t.Skip("TEST_BIN_DIR does not say where etcd, kube-apiserver and kube-controller-manager are")
	}
	shared.once.Do(func() { shared.config, shared.err = start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	config := rest.CopyConfig(shared.config)
	config.QPS = -1
	return config
}

func start() (config *rest.Config, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	shared.provider, err = local.New(local.Options{Dir: directory, BinDir: os.Getenv("TEST_BIN_DIR"), EndWithProvider: true, UnsafeNoFsync: true})
	if err != nil {
		return nil, err
	}
	var state clusterprovider.State
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (_ bool, err error) {
		state, err = shared.provider.Ensure(ctx, object, clusterprovider.Profile{})
		return state.Ready, err
	})
	if err != nil {
		return nil, fmt.Errorf("the cluster is not ready: %w (%s)", err, state.Info)
	}
	if config, err = shared.provider.Connect(ctx, object); err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return config, errors.Join(serve(ctx, client, "AppliedManifestWork", "Cluster"), serve(ctx, client, "ManifestWork", "Namespaced"))
}

// Group is that of works.
const Group = "work.open-cluster-management.io"

// serve has the cluster serve a kind of the group of works, whatever its fields are.
func serve(ctx context.Context, client dynamic.Interface, kind, scope string) error {
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
`, plural, Group, Group, scope, kind, plural))
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	served := client.Resource(schema.GroupVersionResource{Group: Group, Version: "v1", Resource: plural})
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := served.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

// ClientCertificate is one by which the cluster knows a user, and its key.
func ClientCertificate(t testing.TB, user pkix.Name) (certificate, key []byte) {
	t.Helper()
	Config(t)
	var pki string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == clientCA+".key" && strings.Contains(path, string(object.UID)) {
			pki = filepath.Dir(path)
		}
		return err
	})
	if err != nil || pki == "" {
		t.Fatalf("there is no CA of clients in %s: %v", directory, err)
	}
	certs := localserver.Certificates{Dir: pki}
	authority, err := certs.Authority(clientCA, "")
	if err != nil {
		t.Fatal(err)
	}
	name := "test-" + string(uuid.NewUUID())
	if err := authority.Client(name, user); err != nil {
		t.Fatal(err)
	}
	if certificate, err = os.ReadFile(certs.Cert(name)); err != nil {
		t.Fatal(err)
	}
	if key, err = os.ReadFile(certs.Key(name)); err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// clientCA is what the local provider calls its CA of clients.
const clientCA = "client-ca"

// Client is the way to the cluster as its admin.
func Client(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Namespace makes one of the test's own.
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

// Parse reads an object.
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

// Eventually waits until something holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	err := await.Until(t.Context(), await.Limit, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("it never holds that %s", what)
	}
}

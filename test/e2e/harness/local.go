// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/await"
)

// LocalClusters is a hub with its controllers and the example provider.
type LocalClusters struct {
	Hub    *localhub.Instance
	Client client.Client
	// Dir is the folder of the provider.
	Dir string
	// Args are additional flags of the provider.
	Args []string
}

// StartLocalClusters starts the example provider for a hub.
func StartLocalClusters(t *testing.T, h *localhub.Instance, args ...string) *LocalClusters {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &LocalClusters{Args: args, Hub: h}
	l.Dir = filepath.Join(l.Hub.Dir(), "cluster-provider")
	l.Client = Must(client.New(l.Hub.AdminConfig(), client.Options{Scheme: scheme}))(t)
	MustKubectlOf(t, l.Hub, "", "apply", "-f", l.example("provider.yaml"))
	l.Start(t)
	MustKubectlOf(t, l.Hub, "", "apply", "-f", l.example("cluster.yaml"))
	return l
}

func (l *LocalClusters) example(name string) string {
	return filepath.Join(Root, "artifacts", "examples", "access", name)
}

// Start starts or restarts the provider.
func (l *LocalClusters) Start(t *testing.T) {
	t.Helper()
	if err := l.Hub.StartLocalProvider(t.Context(), "dev", "local", l.Args...); err != nil {
		t.Fatal(err)
	}
}

// Await waits until ok accepts an object.
func (l *LocalClusters) Await(t *testing.T, what string, object client.Object, ok func() error) {
	t.Helper()
	var last error
	err := await.Until(t.Context(), Timeout, func(ctx context.Context) (bool, error) {
		last = l.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if last == nil {
			last = ok()
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not after %s: %v", what, Timeout, last)
	}
}

// AwaitCluster waits until a Cluster is in a phase, and returns the message of its condition.
func (l *LocalClusters) AwaitCluster(t *testing.T, name, phase string) (message string) {
	t.Helper()
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name}}
	l.Await(t, name+" is "+phase, cluster, func() error {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, "Ready")
		if cluster.Status.Phase != phase || ready == nil {
			return fmt.Errorf("%+v", cluster.Status)
		}
		message = ready.Message
		return nil
	})
	return message
}

// Folder returns the folder of a cluster.
func (l *LocalClusters) Folder(t *testing.T, name string) string {
	t.Helper()
	cluster := &v1alpha1.Cluster{}
	if err := l.Client.Get(t.Context(), types.NamespacedName{Namespace: "teams", Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(l.Dir, "clusters", string(cluster.UID))
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/cluster/v1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestFull_EmbeddedEtcd fills hub-apiserver's own etcd as an agent could. The server continues to serve reads, tells writers what to do, and recovers
// without a restart: by compaction if old revisions fill it, and by kubectl delete if objects do.
func TestFull_EmbeddedEtcd(t *testing.T) {
	p := readyProcess(t, t.TempDir(), "--embedded-etcd-quota-backend-bytes=8388608", "--embedded-etcd-unsafe-no-fsync")
	clusters := harness.Ours(t, p.config()).ClusterV1().ManagedClusters()
	noise := func(i int) map[string]string {
		return map[string]string{"noise": fmt.Sprint(i) + strings.Repeat("x", 100<<10)}
	}

	one := harness.Must(clusters.Create(t.Context(), harness.ManagedCluster("one", nil), metav1.CreateOptions{}))(t)
	for i := 0; ; i++ {
		one.Annotations = noise(i)
		after, err := clusters.Update(t.Context(), one, metav1.UpdateOptions{})
		if err != nil {
			insufficient(t, "an update", err)
			break
		}
		one = after
		if i > 1000 {
			t.Fatal("old revisions never fill it")
		}
	}
	back(t, "old revisions are compacted", func(ctx context.Context) error {
		_, err := clusters.Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"annotations":{"noise":null}}}`), metav1.PatchOptions{})
		return err
	})

	var names []string
	fill := func() (err error) {
		for len(names) < 1000 {
			c := harness.ManagedCluster(fmt.Sprintf("noise-%d", len(names)), nil)
			c.Annotations, c.Finalizers = noise(0), []string{"example.com/hold"}
			_, err = clusters.Create(t.Context(), c, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			names = append(names, c.Name)
		}
		return nil
	}
	// Writes may be rejected at first because of revisions that compaction frees.
	attempts := func() string {
		metrics := harness.Must(harness.Get(t, p.config(), "/metrics"))(t)
		return regexp.MustCompile(`hub_apiserver_embedded_etcd_reclaims_total\{accepted="false"\} \d+`).FindString(metrics)
	}
	insufficient(t, "a create", fill())
	before := attempts()
	back(t, "there is nothing more to reclaim", func(context.Context) error {
		if err := fill(); attempts() == before {
			return err
		}
		return nil
	})
	refusals(t, clusters, names[0])
	readable(t, p, clusters, len(names)+1)

	t.Log("Deleting is the way out, also of what has finalizers")
	for _, name := range names {
		// Such a small reserve is consumed by some concurrent deletions.
		back(t, name+" is deleted", func(ctx context.Context) error { return clusters.Delete(ctx, name, metav1.DeleteOptions{}) })
		back(t, "the finalizer is removed", func(ctx context.Context) error {
			_, err := clusters.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			return err
		})
	}
	back(t, "what was deleted makes room", func(ctx context.Context) error {
		_, err := clusters.Create(ctx, harness.ManagedCluster("after", nil), metav1.CreateOptions{})
		return err
	})
	select {
	case <-p.ended:
		t.Error("hub-apiserver has ended")
	default:
	}
}

// refusals tries all ways to write an object that does not fit. A dry run makes no difference.
func refusals(t *testing.T, clusters clusterclient.ManagedClusterInterface, name string) {
	t.Helper()
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		label := []byte(`{"metadata":{"annotations":{"a":"b"}}}`)
		status := []byte(`{"status":{"version":{"kubernetes":"v1.37.1"}}}`)
		applied := []byte(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"applied"}}`)
		for what, write := range map[string]func() (*clusterv1.ManagedCluster, error){
			"create": func() (*clusterv1.ManagedCluster, error) {
				return clusters.Create(t.Context(), harness.ManagedCluster("refused", nil), metav1.CreateOptions{DryRun: dryRun})
			},
			"patch": func() (*clusterv1.ManagedCluster, error) {
				return clusters.Patch(t.Context(), name, types.MergePatchType, label, metav1.PatchOptions{DryRun: dryRun})
			},
			"status": func() (*clusterv1.ManagedCluster, error) {
				return clusters.Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{DryRun: dryRun}, "status")
			},
			"apply": func() (*clusterv1.ManagedCluster, error) {
				return clusters.Patch(t.Context(), "applied", types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: "test", DryRun: dryRun})
			},
		} {
			_, err := write()
			insufficient(t, fmt.Sprintf("%s, dry run %q", what, dryRun), err)
		}
	}
}

// insufficient checks that a write is rejected with a helpful message.
func insufficient(t *testing.T, what string, err error) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("%s: %v, want a Status", what, err)
	}
	s := status.Status()
	if s.Code != http.StatusInsufficientStorage || s.Reason != "InsufficientStorage" || !strings.Contains(s.Message, "delete what is not needed") {
		t.Errorf("%s is answered %d %s: %s", what, s.Code, s.Reason, s.Message)
	}
}

// readable checks that hub-apiserver is ready, and serves lists from its cache and from etcd, and new watches.
func readable(t *testing.T, p *process, clusters clusterclient.ManagedClusterInterface, want int) {
	t.Helper()
	for _, path := range []string{"/readyz", "/livez"} {
		if _, err := harness.Get(t, p.config(), path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	metrics := harness.Must(harness.Get(t, p.config(), "/metrics"))(t)
	if !strings.Contains(metrics, "hub_apiserver_embedded_etcd_full 1") {
		t.Error("the metrics do not say that it is full")
	}
	for _, options := range []metav1.ListOptions{{}, {ResourceVersion: "0"}, {Limit: 500}} {
		list := harness.Must(clusters.List(t.Context(), options))(t)
		if len(list.Items) != want {
			t.Errorf("%+v: %d clusters, want %d", options, len(list.Items), want)
		}
	}
	watch := harness.Must(clusters.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"}))(t)
	defer watch.Stop()
	select {
	case event := <-watch.ResultChan():
		if _, ok := event.Object.(*clusterv1.ManagedCluster); !ok {
			t.Errorf("the watch begins with %v", event)
		}
	case <-time.After(harness.Timeout):
		t.Error("a watch has no events")
	}
}

func back(t *testing.T, what string, write func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, harness.Timeout, true, func(ctx context.Context) (bool, error) {
		last = write(ctx)
		if last != nil {
			insufficient(t, what, last)
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: writes are not accepted after %s: %v", what, harness.Timeout, last)
	}
}

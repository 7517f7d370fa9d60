// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// maxBytes is the maximum size of an object in etcd. reserve is the additional size for users who may finalize the object.
const maxBytes, reserve = 256 << 10, 64 << 10

// wantTooLarge fails the test unless a write was rejected for its size, and the response states the limit.
func wantTooLarge(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "262144") {
		t.Errorf("%s: got %v", what, err)
	}
}

// TestBounds_AgentCannotFillStorage tries to exceed the size limit of a cluster, as an agent can: in one step, in several steps, and by the entries of
// field managers.
func TestBounds_AgentCannotFillStorage(t *testing.T) {
	name := harness.Unique("greedy")
	agent := harness.User(t, harness.Rule("get,update", "managedclusters", name), harness.Rule("patch,update", "managedclusters/status", name))
	acceptor := harness.User(t, harness.Rule("get,update,patch", "managedclusters", name), harness.Rule("update", "managedclusters/accept", name))
	clusters, own := harness.Admin(t).ClusterV1().ManagedClusters(), harness.Ours(t, harness.Hub(t).UserConfig(agent)).ClusterV1().ManagedClusters()
	made := harness.ManagedCluster(name, nil)
	made.Spec.HubAcceptsClient = true
	there := harness.Must(clusters.Create(t.Context(), made, metav1.CreateOptions{}))(t)

	claims := make([]clusterv1.ManagedClusterClaim, 500)
	for i := range claims {
		claims[i] = clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("c%d", i), Value: strings.Repeat("x", 1024)}
	}
	huge := there.DeepCopy()
	huge.Status.ClusterClaims = claims
	_, err := own.UpdateStatus(t.Context(), huge, metav1.UpdateOptions{})
	wantTooLarge(t, "update of the status", err)
	body := harness.Must(json.Marshal(map[string]any{"status": map[string]any{"clusterClaims": claims}}))(t)
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		_, err = own.Patch(t.Context(), name, kind, body, metav1.PatchOptions{}, "status")
		wantTooLarge(t, string(kind), err)
	}
	body = harness.Must(json.Marshal([]map[string]any{{"op": "add", "path": "/status/clusterClaims", "value": claims}}))(t)
	_, err = own.Patch(t.Context(), name, types.JSONPatchType, body, metav1.PatchOptions{DryRun: harness.DryRun(true)}, "status")
	wantTooLarge(t, "json patch, dry run", err)
	many := there.DeepCopy()
	many.Status.ClusterClaims = make([]clusterv1.ManagedClusterClaim, 513)
	for i := range many.Status.ClusterClaims {
		many.Status.ClusterClaims[i] = clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("c%d", i), Value: "x"}
	}
	if _, err := own.UpdateStatus(t.Context(), many, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("513 claims: got %v", err)
	}

	// Fill the metadata first, and then add one condition and one field manager after the other.
	there.Annotations = map[string]string{"example.com/a": strings.Repeat("x", 128<<10)}
	harness.Must(own.Update(t.Context(), there, metav1.UpdateOptions{}))(t)
	for i := 0; ; i++ {
		body := harness.Must(json.Marshal(map[string]any{
			"apiVersion": clusterv1.SchemeGroupVersion.String(), "kind": "ManagedCluster", "metadata": map[string]any{"name": name},
			"status": map[string]any{"conditions": []metav1.Condition{{
				Type: fmt.Sprintf("Greedy%d", i), Status: "True", Reason: "Greedy", Message: strings.Repeat("x", 10<<10),
				LastTransitionTime: metav1.Unix(1, 0),
			}}},
		}))(t)
		_, err := own.Patch(t.Context(), name, types.ApplyYAMLPatchType, body, metav1.PatchOptions{FieldManager: fmt.Sprintf("m%d", i)}, "status")
		if err != nil {
			wantTooLarge(t, "one condition more", err)
			break
		}
		if i > 20 {
			t.Fatal("it grows for ever")
		}
	}
	// Fill the object up to the last byte.
	there = harness.Must(clusters.Get(t.Context(), name, metav1.GetOptions{}))(t)
	for step := 4096; step > 0; {
		there.Annotations["example.com/a"] += strings.Repeat("x", step)
		updated, err := own.Update(t.Context(), there, metav1.UpdateOptions{})
		if err != nil {
			wantTooLarge(t, "some bytes more", err)
			there.Annotations["example.com/a"] = there.Annotations["example.com/a"][step:]
			step /= 2
			continue
		}
		there = updated
	}
	if size := len(harness.Must(json.Marshal(there))(t)); size > maxBytes+1024 || size < maxBytes-1024 {
		t.Errorf("it has %d bytes", size)
	}
	// The hub can still write: denial takes one more byte.
	_, err = harness.Ours(t, harness.Hub(t).UserConfig(acceptor)).ClusterV1().ManagedClusters().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec":{"hubAcceptsClient":false}}`), metav1.PatchOptions{})
	if err != nil {
		t.Errorf("it cannot be denied: %v", err)
	}
	if err := clusters.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
}

// TestBounds_ManyErrorsAreTruncated sends requests with as many errors as possible, as all users who may write: Kubernetes would join
// all their messages into one.
func TestBounds_ManyErrorsAreTruncated(t *testing.T) {
	name := harness.Unique("faulty")
	harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster(name, nil), metav1.CreateOptions{}))(t)
	token := harness.RESTClient(t, harness.Hub(t).UserConfig(harness.User(t, harness.Rule("create", "managedclusters"))))
	agent := harness.RESTClient(t, harness.Hub(t).UserConfig(harness.User(t, harness.Rule("get,update,patch", "managedclusters", name), harness.Rule("patch,update", "managedclusters/status", name))))
	const clusters, room = "/apis/cluster.open-cluster-management.io/v1/managedclusters", 3<<20 - 4096
	full := func(entry string) string {
		return "[" + strings.Repeat(entry+",", room/(len(entry)+1)-1) + entry + "]"
	}
	const start = `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",`
	for what, request := range map[string]*rest.Request{
		"taints of a new one": token.Post().AbsPath(clusters).SetHeader("Content-Type", "application/json").Body([]byte(start + `"metadata":{"name":"a"},"spec":{"taints":` + full("{}") + `}}`)),
		"owners of a new one": token.Post().AbsPath(clusters).SetHeader("Content-Type", "application/json").Body([]byte(start + `"metadata":{"name":"a","ownerReferences":` + full("{}") + `}}`)),
		"owners": agent.Patch(types.MergePatchType).AbsPath(clusters, name).
			Body([]byte(`{"metadata":{"ownerReferences":` + full("{}") + `}}`)),
		"finalizers, dry run": agent.Patch(types.MergePatchType).AbsPath(clusters, name).Param("dryRun", "All").
			Body([]byte(`{"metadata":{"finalizers":` + full(`""`) + `}}`)),
		"owners by a strategic merge patch": agent.Patch(types.StrategicMergePatchType).AbsPath(clusters, name).
			Body([]byte(`{"metadata":{"ownerReferences":[` + strings.Repeat(`{"uid":"a"},`, 50000) + `{"uid":"a"}]}}`)),
		"taints by a JSON patch": agent.Patch(types.JSONPatchType).AbsPath(clusters, name).
			Body([]byte(`[{"op":"add","path":"/spec/taints","value":` + full("{}") + `}]`)),
		"taints that are copied": agent.Patch(types.JSONPatchType).AbsPath(clusters, name).Body([]byte(
			`[{"op":"add","path":"/spec/taints","value":[{"key":"a","effect":"NoSelect"}]},{"op":"add","path":"/spec/managedClusterClientConfigs","value":[[` +
				strings.Repeat("{},", 30000) + `{}]]}` + strings.Repeat(`,{"op":"copy","from":"/spec/managedClusterClientConfigs/0","path":"/spec/managedClusterClientConfigs/-"}`, 30) + `]`)),
		"claims": agent.Patch(types.MergePatchType).AbsPath(clusters, name, "status").
			Body([]byte(`{"status":{"clusterClaims":` + full("{}") + `}}`)),
	} {
		began := time.Now()
		answer, err := request.Do(t.Context()).Raw()
		if !apierrors.IsRequestEntityTooLargeError(err) && !apierrors.IsInvalid(err) || len(answer) > 64<<10 {
			t.Errorf("%s: got %d bytes, %v", what, len(answer), err)
		}
		t.Logf("%s: %s", what, time.Since(began).Round(time.Millisecond))
	}
}

// TestBounds_OversizedObjectsCanShrinkAndBeDeleted verifies that a full object can shrink and be deleted.
func TestBounds_OversizedObjectsCanShrinkAndBeDeleted(t *testing.T) {
	name := harness.Unique("large")
	clusters := harness.Admin(t).ClusterV1().ManagedClusters()
	large := harness.ManagedCluster(name, nil)
	large.Finalizers = []string{"example.com/a"}
	large.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://a", CABundle: []byte(strings.Repeat("x", 48<<10))}}
	large.Annotations = map[string]string{"example.com/a": strings.Repeat("x", maxBytes-(32<<10))}
	there := harness.Must(clusters.Create(t.Context(), large, metav1.CreateOptions{}))(t)
	tenant := harness.Ours(t, harness.Hub(t).UserConfig(harness.User(t, harness.Rule("get,update", "managedclusters", name)))).ClusterV1().ManagedClusters()

	larger := there.DeepCopy()
	larger.Annotations["example.com/b"] = "x"
	_, err := tenant.Update(t.Context(), larger, metav1.UpdateOptions{})
	wantTooLarge(t, "a larger one", err)
	larger.Annotations["example.com/b"] = strings.Repeat("x", reserve)
	larger.Annotations["example.com/a"] = larger.Annotations["example.com/a"][:maxBytes-reserve-(32<<10)]
	for range 2 {
		larger.Spec.ManagedClusterClientConfigs = append(larger.Spec.ManagedClusterClientConfigs, there.Spec.ManagedClusterClientConfigs[0])
	}
	_, err = clusters.Update(t.Context(), larger, metav1.UpdateOptions{})
	wantTooLarge(t, "one above what the hub itself has", err)

	// The reserve is for the hub only: other users cannot replace its content.
	same := there.DeepCopy()
	same.Annotations["example.com/a"] = strings.ReplaceAll(same.Annotations["example.com/a"], "x", "y")
	_, err = tenant.Update(t.Context(), same, metav1.UpdateOptions{})
	wantTooLarge(t, "another of the same size", err)
	smaller := there.DeepCopy()
	smaller.Annotations["example.com/a"] = "x"
	if _, err := tenant.Update(t.Context(), smaller, metav1.UpdateOptions{DryRun: harness.DryRun(true)}); err != nil {
		t.Errorf("a small one: %v", err)
	}
	if err := clusters.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	there = harness.Must(clusters.Get(t.Context(), name, metav1.GetOptions{}))(t)
	there.Finalizers = nil
	if _, err := tenant.Update(t.Context(), there, metav1.UpdateOptions{}); err != nil {
		t.Errorf("it cannot go: %v", err)
	}
	if _, err := clusters.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it has not gone: %v", err)
	}
}

// TestBounds_BootstrapTokenClustersAreLimited floods a hub with clusters from many connections.
func TestBounds_BootstrapTokenClustersAreLimited(t *testing.T) {
	const most = 5
	h := harness.Relaunch(t, harness.LendHub(t), func(c *localhub.Options) {
		c.HubAPIServerArgs = []string{fmt.Sprintf("--max-pending-clusters=%d", most)}
	})
	harness.Grant(t, h, "bootstrap", "bootstrap", harness.Rule("create", "managedclusters"), harness.LabelRight(harness.SetLabel+":default"))
	harness.Grant(t, h, "acceptor", "acceptor", harness.Rule("create", "managedclusters"), harness.LabelRight(harness.SetLabel+":default"), harness.Rule("update", "managedclusters/accept"))
	token := harness.Ours(t, h.UserConfig("bootstrap")).ClusterV1().ManagedClusters()
	clusters := harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters()
	var made atomic.Int32
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			c := harness.ManagedCluster(fmt.Sprintf("flood-%d", i), nil)
			if i%2 == 0 {
				c.Name, c.GenerateName = "", "flood-"
			}
			_, err := token.Create(t.Context(), c, metav1.CreateOptions{})
			switch {
			case err == nil:
				made.Add(1)
			case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "5 clusters wait to be accepted"):
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	list := harness.Must(clusters.List(t.Context(), metav1.ListOptions{}))(t)
	if int(made.Load()) != most || len(list.Items) != most {
		t.Fatalf("%d were made, and %d are there", made.Load(), len(list.Items))
	}
	for what, err := range map[string]error{
		"apply": harness.PatchWith(types.ApplyYAMLPatchType, harness.Applied)(t.Context(), harness.RESTClient(t, h.UserConfig("bootstrap")), "", false,
			harness.ManagedCluster("applied", nil), harness.ManagedCluster("applied", nil)),
		"dry run": func() error {
			_, err := token.Create(t.Context(), harness.ManagedCluster("dry", nil), metav1.CreateOptions{DryRun: harness.DryRun(true)})
			return err
		}(),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	harness.Must(harness.Ours(t, h.UserConfig("acceptor")).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster("welcome", nil), metav1.CreateOptions{}))(t)
	// Creation succeeds as soon as a cluster is deleted.
	for _, c := range append(list.Items[:1:1], *harness.ManagedCluster("welcome", nil)) {
		harness.Must(clusters.Patch(t.Context(), c.Name, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	}
	harness.Eventually(t, "one more can be made", func(ctx context.Context) (bool, error) {
		_, err := token.Create(ctx, harness.ManagedCluster("one-more", nil), metav1.CreateOptions{})
		return err == nil, err
	})
	if _, err := token.Create(t.Context(), harness.ManagedCluster("two-more", nil), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("two more: got %v", err)
	}
}

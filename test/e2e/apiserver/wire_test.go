// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// What upstream's clients send and expect on the wire.

func send(t *testing.T, verb, path, contentType, body string) map[string]any {
	t.Helper()
	code, answer := rawClient{harness.RESTClient(t, harness.Hub(t).AdminConfig())}.do(t, badRequest{verb: verb, path: path, contentType: contentType, body: body})
	if code >= 300 {
		t.Fatalf("%s %s: %d %s", verb, path, code, answer)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(answer), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestWire_NullsAreAccepted(t *testing.T) {
	name := harness.Unique("wire")
	send(t, http.MethodPost, clustersPath, "", clusterBody(`"metadata":{"name":"`+name+`","creationTimestamp":null},
		"spec":{"hubAcceptsClient":false,"taints":[{"key":"a","effect":"NoSelect","timeAdded":null}]},"status":{"conditions":null,"version":{}}`))
	c := harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
	if c.Spec.LeaseDurationSeconds != 60 {
		t.Errorf("the lease lasts %d s, want the default of 60", c.Spec.LeaseDurationSeconds)
	}
	if since := time.Since(c.Spec.Taints[0].TimeAdded.Time); since < -time.Minute || since > time.Minute {
		t.Errorf("the taint was added at %s", c.Spec.Taints[0].TimeAdded)
	}
	added := c.Spec.Taints[0].TimeAdded
	// An update with 0 leaves the field unset, so it is set to the default again.
	c.Spec.LeaseDurationSeconds = 0
	c.Spec.Taints = []clusterv1.Taint{{Key: "a", Effect: clusterv1.TaintEffectNoSelect}, {Key: "b", Effect: clusterv1.TaintEffectNoSelect}}
	c = harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Update(t.Context(), c, metav1.UpdateOptions{}))(t)
	if c.Spec.LeaseDurationSeconds != 60 {
		t.Errorf("after an update with 0, the lease lasts %d s", c.Spec.LeaseDurationSeconds)
	}
	if !c.Spec.Taints[0].TimeAdded.Equal(&added) || c.Spec.Taints[1].TimeAdded.IsZero() {
		t.Errorf("the taints have the times %s and %s, the first had %s", c.Spec.Taints[0].TimeAdded, c.Spec.Taints[1].TimeAdded, added)
	}
	if err := harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestWire_ClusteradmRequests verifies that clusteradm can accept by a merge patch on the main resource, and add a cluster to a set by GET and
// PUT.
func TestWire_ClusteradmRequests(t *testing.T) {
	name, set := harness.Unique("wire"), harness.Unique("set")
	harness.NewManagedCluster(t, name, nil)
	harness.NewSet(t, set)
	c := harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	c.Labels[harness.SetLabel] = set
	harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Update(t.Context(), c, metav1.UpdateOptions{}))(t)
	list := harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().List(t.Context(), metav1.ListOptions{LabelSelector: harness.SetLabel + "=" + set}))(t)
	if len(list.Items) != 1 || !list.Items[0].Spec.HubAcceptsClient {
		t.Errorf("got %+v", list.Items)
	}
	harness.WantMembers(t, "", set, name)
	// Its status writers send a merge patch with the UID and the resource version.
	body := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q},"status":{"version":{"kubernetes":"v1.36.0"}}}`, list.Items[0].UID, list.Items[0].ResourceVersion)
	harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"))(t)
	if _, err := harness.Admin(t).ClusterV1().ManagedClusters().Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"); err == nil {
		t.Error("a stale version was accepted")
	}
}

func TestWire_SetVersionsAreEquivalent(t *testing.T) {
	name := harness.Unique("set")
	send(t, http.MethodPost, setsV2Path, "", strings.Replace(setBody("v1beta2", `{}`), `"bad"`, `"`+name+`"`, 1))
	t.Cleanup(func() { harness.DeleteSet(t, name) })
	v2 := harness.Must(harness.Admin(t).ClusterV1beta2().ManagedClusterSets().Get(t.Context(), name, metav1.GetOptions{}))(t)
	v1 := harness.Must(harness.Admin(t).ClusterV1beta1().ManagedClusterSets().Get(t.Context(), name, metav1.GetOptions{}))(t)
	if v2.Spec.ClusterSelector.SelectorType != "ExclusiveClusterSetLabel" || v1.Spec.ClusterSelector.SelectorType != "LegacyClusterSetLabel" {
		t.Errorf("the defaults are %q and %q", v2.Spec.ClusterSelector.SelectorType, v1.Spec.ClusterSelector.SelectorType)
	}
	// Fields that v1beta2 lacks survive a client of v1beta2.
	region := harness.Unique("region")
	harness.Must(harness.Admin(t).ClusterV1beta1().ManagedClusterSets().Create(t.Context(), harness.ExclusiveSet(region, harness.InfoPrefix+"region", region), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { harness.DeleteSet(t, region) })
	v2 = harness.Must(harness.Admin(t).ClusterV1beta2().ManagedClusterSets().Get(t.Context(), region, metav1.GetOptions{}))(t)
	if v2.Spec.ClusterSelector.LabelSelector == nil || v2.Spec.ClusterSelector.LabelSelector.MatchLabels[harness.InfoPrefix+"region"] != region {
		t.Errorf("v1beta2 shows %+v", v2.Spec.ClusterSelector)
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the hub updates its status
		v2, err := harness.Admin(t).ClusterV1beta2().ManagedClusterSets().Get(t.Context(), region, metav1.GetOptions{})
		if err != nil {
			return err
		}
		v2.Labels = map[string]string{"touched": "yes"}
		return harness.ErrorOf(harness.Admin(t).ClusterV1beta2().ManagedClusterSets().Update(t.Context(), v2, metav1.UpdateOptions{}))
	}); err != nil {
		t.Fatal(err)
	}
	v1 = harness.Must(harness.Admin(t).ClusterV1beta1().ManagedClusterSets().Get(t.Context(), region, metav1.GetOptions{}))(t)
	if got := v1.Spec.ClusterSelector; got.SelectorType != "ExclusiveLabel" || got.ExclusiveLabel == nil || got.ExclusiveLabel.Value != region {
		t.Errorf("after a write of v1beta2, v1beta1 shows %+v", got)
	}
}

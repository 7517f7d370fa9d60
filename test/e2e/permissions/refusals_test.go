// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const (
	// attackers is the number of concurrent requests of one user.
	attackers = 16
	// writes is the number of measured writes of a different user.
	writes = 40
	// rounds is the number of attempts to measure a slow write: other load of the machine slows writes as well, but not always.
	rounds = 5
)

// manyLabels returns a patch with as many labels as one request may have. No decision about them is cached yet.
func manyLabels() []byte {
	labels := map[string]string{}
	for i := range 64 {
		labels[fmt.Sprintf("%s%s-%d", harness.InfoPrefix, harness.Unique("label"), i)] = "x"
	}
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	return body
}

// patchLabels also returns an error if the front responds instead of the hub.
func patchLabels(ctx context.Context, client versioned.Interface, name string, body []byte) error {
	_, err := client.ClusterV1().ManagedClusters().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if cause, found := apierrors.StatusCause(err, metav1.CauseTypeUnexpectedServerResponse); found {
		return fmt.Errorf("%w: %s", err, cause.Message)
	}
	return err
}

// median returns the median duration of writes that each need decisions that are not cached yet.
func median(t *testing.T, client versioned.Interface, name string) time.Duration {
	t.Helper()
	var took []time.Duration
	for range writes {
		begun := time.Now()
		body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, harness.InfoPrefix+"region", harness.Unique("value"))
		if err := patchLabels(t.Context(), client, name, body); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// TestPermissions_OneUserDoesNotSlowOthers verifies that the access reviews that one user causes do not slow other users, whether or not the
// requests are forbidden.
func TestPermissions_OneUserDoesNotSlowOthers(t *testing.T) {
	name := harness.Unique("cluster")
	harness.NewManagedCluster(t, name, nil)
	client := harness.Ours(t, harness.Hub(t).UserConfig(harness.User(t, harness.Rule("patch", "managedclusters", name), harness.LabelRight(harness.InfoPrefix+"region:*"))))
	base := harness.Rule("patch", "managedclusters", name)
	for what, attack := range map[string]struct {
		who     string
		refused bool
	}{
		"refused": {harness.User(t, base), true},
		// Each label is reviewed as key:value and before that as key:*.
		"allowed": {harness.User(t, base, harness.LabelRight("*")), false},
	} {
		t.Run(what, func(t *testing.T) {
			attacker := harness.Ours(t, harness.Hub(t).UserConfig(attack.who))
			for round := range rounds {
				quiet := median(t, client, name)
				attacked, rate := medianUnderAttack(t, client, attacker, name, attack.refused)
				t.Logf("a write takes %s, and %s while another user's %.0f requests a second are %s", quiet, attacked, rate, what)
				// Both users share the machine.
				limit := 8*quiet + 40*time.Millisecond
				if attacked <= limit {
					return
				}
				if round == rounds-1 {
					t.Errorf("a write takes %s, want %s at most: it is %s without the other user", attacked, limit, quiet)
				}
			}
		})
	}
}

// medianUnderAttack returns the median while an attacker writes many labels, and the requests of the attacker per second.
func medianUnderAttack(t *testing.T, client, attacker versioned.Interface, name string, refused bool) (time.Duration, float64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var answered atomic.Int64
	var running sync.WaitGroup
	defer func() {
		stop()
		running.Wait()
	}()
	for range attackers {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := patchLabels(ctx, attacker, name, manyLabels()); apierrors.IsForbidden(err) != refused && ctx.Err() == nil {
					t.Errorf("got %v, want refused: %t", err, refused)
					return
				}
				answered.Add(1)
			}
		})
	}
	harness.Eventually(t, "the first answer", func(context.Context) (bool, error) { return answered.Load() > 0, nil })
	begun, before := time.Now(), answered.Load()
	attacked := median(t, client, name)
	return attacked, float64(answered.Load()-before) / time.Since(begun).Seconds()
}

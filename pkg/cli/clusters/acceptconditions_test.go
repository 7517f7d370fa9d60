// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/clusters"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TestAccept_WarnsOfConditions verifies that accept reports the conditions of an accepted cluster even if nothing is known of the
// controllers. Here it is as with a detached hub.
func TestAccept_WarnsOfConditions(t *testing.T) {
	const noDriver = "none of the enabled registration drivers [awsirsa] can register the cluster"
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		args       []string
		want       string
		// looks is the number of times that the cluster is read after it was accepted.
		looks int
	}{
		"no driver": {conditions: []metav1.Condition{{Type: registration.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: registration.ReasonError, Message: noDriver}},
			want: "Warning: managed cluster c1 is accepted, but the hub cannot register it: " + noDriver, looks: clusters.Checks},
		"it is registered":        {conditions: []metav1.Condition{{Type: registration.ConditionHubAccepted, Status: metav1.ConditionTrue, Reason: registration.ReasonAccepted}}, looks: 1},
		"nothing looks at it":     {looks: clusters.Checks},
		"it was denied before":    {conditions: []metav1.Condition{{Type: registration.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: registration.ReasonDenied, Message: "x"}}, looks: clusters.Checks},
		"another condition fails": {conditions: []metav1.Condition{{Type: registration.ConditionAvailable, Status: metav1.ConditionFalse, Reason: registration.ReasonError, Message: "x"}}, looks: clusters.Checks},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewServer(t, clitest.NewCluster("c1", nil))
			reads, accepted := 0, false
			s.On["PATCH "+clitest.ClustersPath+"/c1"] = func(http.ResponseWriter, []byte) bool {
				accepted = true
				return false
			}
			s.On["GET "+clitest.ClustersPath+"/c1"] = func(http.ResponseWriter, []byte) bool {
				if accepted {
					reads++
					o := s.Get(clitest.ClustersPath + "/c1")
					conditions := []any{}
					for i := range test.conditions {
						c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&test.conditions[i])
						if err != nil {
							return false
						}
						conditions = append(conditions, c)
					}
					o.Object["status"] = map[string]any{"conditions": conditions}
					s.PutRaw(o)
				}
				return false
			}
			_, stderr, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "accept", "--clusters", "c1")
			if err != nil || strings.TrimSpace(stderr) != test.want || reads != test.looks {
				t.Errorf("%v: it says %q after %d looks, want %q after %d", err, stderr, reads, test.want, test.looks)
			}
		})
	}
}

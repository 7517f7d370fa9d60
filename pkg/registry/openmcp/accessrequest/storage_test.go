// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func TestStorage(t *testing.T) {
	registrytest.Suite[*openmcp.AccessRequest]{
		Kind: Kind,
		Valid: func() *openmcp.AccessRequest {
			return &openmcp.AccessRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "a"},
				Spec: openmcp.AccessRequestSpec{
					Token: &openmcp.TokenConfig{}, ClusterRef: &openmcp.ObjectReference{Namespace: "b", Name: "c"},
				},
			}
		},
		Invalid:        []func(*openmcp.AccessRequest){func(r *openmcp.AccessRequest) { r.Spec.Token = nil }},
		Change:         func(r *openmcp.AccessRequest) { r.Spec.TTL = &duration.Duration{Duration: 1} },
		InvalidChanges: []func(*openmcp.AccessRequest){func(r *openmcp.AccessRequest) { r.Spec.ClusterRef.Name = "other" }},
		Matching:       []fields.Set{{"status.phase": ""}, {"spec.clusterRef.name": "c", "spec.clusterRef.namespace": "b"}},
		Others:         []fields.Set{{"status.phase": "Granted"}, {"spec.clusterRef.name": "b"}},
		Status: func(r *openmcp.AccessRequest) {
			r.Status.Status = openmcp.Status{ObservedGeneration: 1, Phase: "Denied", Conditions: []metav1.Condition{{
				Type: "Ready", Status: "False", Reason: "Because", Message: "words", LastTransitionTime: metav1.Unix(1, 0),
			}}}
		},
		BadStatus:  func(r *openmcp.AccessRequest) { r.Status.Conditions[0].Reason = "" },
		Columns:    "Name/0 Phase/0 Cluster/0 Cluster-NS/0 Reason/0 Message/1",
		Cells:      "a|Denied|c|b|Because|words",
		ShortNames: "ar areq",
	}.Run(t)
}

func TestTable_ShowsMissing(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: "Of" + conditionType, Message: "words"}
	}
	granted := []metav1.Condition{condition("Prepared", "True"), condition("AccessReady", "True")}
	for want, o := range map[string]*openmcp.AccessRequest{
		"a,,,,,":               {},
		"a,Granted,blue,ns,,":  {Spec: openmcp.AccessRequestSpec{ClusterRef: &openmcp.ObjectReference{Namespace: "ns", Name: "blue"}}, Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Granted", Conditions: granted}}},
		"a,Terminating,,,,":    {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}, Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Granted", Conditions: granted}}},
		"a,Denied,,,OfX,words": {Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Denied", Conditions: []metav1.Condition{condition("Prepared", "True"), condition("X", "False")}}}},
		"a,Pending,,,OfPrepared,words": {Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Pending", Conditions: []metav1.Condition{
			condition("AccessReady", "False"), condition("Prepared", "False"), condition("X", "False")}}}},
	} {
		o.Name = "a"
		var cells []string
		for _, cell := range tableConvertor.Cells(o) {
			cells = append(cells, fmt.Sprint(cell))
		}
		if got := strings.Join(cells, ","); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

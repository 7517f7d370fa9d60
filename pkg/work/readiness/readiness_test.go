// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	aDeployment  = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 2}\n"
	aStatefulSet = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {generation: 2}\n"
	aDaemonSet   = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 2}\n"
	aJob         = "apiVersion: batch/v1\nkind: Job\n"
	aPod         = "apiVersion: v1\nkind: Pod\n"
	aClaim       = "apiVersion: v1\nkind: PersistentVolumeClaim\n"
	aService     = "apiVersion: v1\nkind: Service\n"
	aCRD         = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
	anAPIService = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n"
	aThing       = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {generation: 2}\n"
)

func TestOf(t *testing.T) {
	for _, test := range []struct {
		object string
		state  State
		why    string
	}{
		{"{}", Ready, "it is there"},
		{aDeployment, Waiting, "its controller has not seen it yet"},
		{aDeployment + "status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}", Waiting, "its controller has seen generation 1, and not yet 2"},
		{aDeployment + "status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}", Ready, "1 of 1 replicas are available"},
		{aDeployment + "spec: {replicas: 0}\nstatus: {observedGeneration: 2}", Ready, "0 of 0 replicas are available"},
		{aDeployment + "spec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 3}", Waiting, "2 of 3 replicas are updated"},
		{aDeployment + "spec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 4, updatedReplicas: 3, availableReplicas: 4}", Waiting, "1 old replicas are still there"},
		{aDeployment + "spec: {replicas: 3}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 2}", Waiting, "2 of 3 replicas are available"},
		{aDeployment + "spec: {paused: true}\nstatus: {observedGeneration: 2}", Waiting, "it is paused"},
		{aDeployment + "status: {observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: too slow}]}", Failed, "ProgressDeadlineExceeded: too slow"},
		{aDeployment + "status: {observedGeneration: 2, conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate}]}", Waiting, "FailedCreate"},
		{aDeployment + "status: {observedGeneration: x, conditions: [1, null, {type: 3}]}", Waiting, "its controller has not seen it yet"},
		{aDeployment + "status: 3", Waiting, "its controller has not seen it yet"},
		{"apiVersion: apps/v1\nkind: Deployment\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\nstatus: {observedGeneration: 0}", Waiting, "it is being deleted"},

		{aStatefulSet, Waiting, "its controller has not seen it yet"},
		{aStatefulSet + "spec: {replicas: 2}\nstatus: {observedGeneration: 2, readyReplicas: 1}", Waiting, "1 of 2 replicas are ready"},
		{aStatefulSet + "spec: {replicas: 2}\nstatus: {observedGeneration: 2, readyReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}", Waiting, "1 of 2 replicas are updated"},
		{aStatefulSet + "spec: {replicas: 2}\nstatus: {observedGeneration: 2, readyReplicas: 2, currentRevision: b, updateRevision: b}", Ready, "2 of 2 replicas are ready"},
		{aStatefulSet + "spec: {replicas: 2, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, readyReplicas: 2, currentRevision: a, updateRevision: b}", Ready, "2 of 2 replicas are ready; they are updated when they are deleted"},
		{aStatefulSet + "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}\nstatus: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1, currentRevision: a, updateRevision: b}", Waiting, "1 of the 2 replicas above the partition are updated"},
		{aStatefulSet + "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}\nstatus: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 2, currentRevision: a, updateRevision: b}", Ready, "3 of 3 replicas are ready"},

		{aDaemonSet, Waiting, "its controller has not seen it yet"},
		{aDaemonSet + "status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}", Waiting, "1 of 3 nodes have the updated pod"},
		{aDaemonSet + "spec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}", Ready, "the pods of 3 of 3 nodes are available"},
		{aDaemonSet + "status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}", Waiting, "the pods of 2 of 3 nodes are available"},

		{aJob, Waiting, "0 pods are active, 0 have succeeded, 0 have failed"},
		{aJob + "status: {active: 1, failed: 2}", Waiting, "1 pods are active, 0 have succeeded, 2 have failed"},
		{aJob + "status: {succeeded: 2, conditions: [{type: Complete, status: 'True'}]}", Ready, "it has finished with 2 succeeded pods"},
		{aJob + "status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: no more}]}", Failed, "BackoffLimitExceeded: no more"},
		{aJob + "status: {conditions: [{type: Failed, status: 'True'}]}", Failed, "no reason is given"},
		{aJob + "status: {conditions: [{type: Suspended, status: 'True'}]}", Waiting, "it is suspended"},

		{aPod, Waiting, "it has no phase yet"},
		{aPod + "status: {phase: Pending}", Waiting, "it is in phase Pending"},
		{aPod + "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes}]}", Waiting, "it has no node: Unschedulable: 0/3 nodes"},
		{aPod + "status: {phase: Running}", Waiting, "it runs and is not ready: no reason is given"},
		{aPod + "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", Ready, "it runs and is ready"},
		{aPod + "status: {phase: Succeeded}", Ready, "it has finished"},
		{aPod + "status: {phase: Failed, message: out of memory}", Failed, "it has failed: out of memory"},

		{aClaim, Waiting, "it has no phase yet"},
		{aClaim + "status: {phase: Pending}", Waiting, "it is in phase Pending"},
		{aClaim + "status: {phase: Bound}", Ready, "it is bound"},
		{aClaim + "status: {phase: Lost}", Failed, "its volume is lost"},

		{aService, Ready, "it is there"},
		{aService + "spec: {type: LoadBalancer}", Waiting, "its load balancer has no address yet"},
		{aService + "spec: {type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}", Ready, "its load balancer has an address"},

		{aCRD, Waiting, "it is not established: no reason is given"},
		{aCRD + "status: {conditions: [{type: NamesAccepted, status: 'False', reason: PluralConflict}]}", Failed, "its names are not accepted: PluralConflict"},
		{aCRD + "status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}", Ready, "it is established"},
		{anAPIService, Waiting, "it is not available: no reason is given"},
		{anAPIService + "status: {conditions: [{type: Available, status: 'True'}]}", Ready, "it is available"},

		{aThing, Ready, "it is there"},
		{aThing + "status: {observedGeneration: 1}", Waiting, "its controller has seen generation 1, and not yet 2"},
		{aThing + "status: {conditions: [{type: Ready, status: 'True'}]}", Ready, "condition Ready is True"},
		{aThing + "status: {conditions: [{type: Ready, status: Unknown, reason: Starting}]}", Waiting, "condition Ready is Unknown: Starting"},
		{aThing + "status: {conditions: [{type: Available, status: 'False'}]}", Waiting, "condition Available is False: no reason is given"},
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(test.object), &object.Object); err != nil {
			t.Fatal(err)
		}
		if state, why := Of(object); state != test.state || why != test.why {
			t.Errorf("%s\ngot  %s: %s\nwant %s: %s", test.object, state, why, test.state, test.why)
		}
	}
	if state, why := Of(nil); state != Waiting || why != "the object does not exist" {
		t.Errorf("nothing: %s, %s", state, why)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

func deployment(o fieldReader) result {
	if status, reason, message := o.condition("Progressing"); status == "False" && reason == "ProgressDeadlineExceeded" {
		return failed("%s", because(reason, message))
	}
	if status, reason, message := o.condition("ReplicaFailure"); status == "True" {
		return waiting("%s", because(reason, message))
	}
	if paused, _ := o.value("spec", "paused"); paused == true {
		return waiting("it is paused")
	}
	if _, ok := o.number("status", "observedGeneration"); !ok {
		return waiting("its controller has not seen it yet")
	}
	want := o.count(1, "spec", "replicas")
	all, updated, available := o.count(0, "status", "replicas"), o.count(0, "status", "updatedReplicas"), o.count(0, "status", "availableReplicas")
	switch {
	case updated < want:
		return waiting("%d of %d replicas are updated", updated, want)
	case all > updated:
		return waiting("%d old replicas are still there", all-updated)
	case available < want:
		return waiting("%d of %d replicas are available", available, want)
	}
	return ready("%d of %d replicas are available", available, want)
}

func statefulSet(o fieldReader) result {
	if _, ok := o.number("status", "observedGeneration"); !ok {
		return waiting("its controller has not seen it yet")
	}
	want := o.count(1, "spec", "replicas")
	if have := o.count(0, "status", "readyReplicas"); have < want {
		return waiting("%d of %d replicas are ready", have, want)
	}
	if o.text("spec", "updateStrategy", "type") == "OnDelete" {
		return ready("%d of %d replicas are ready; they are updated when they are deleted", want, want)
	}
	// Replicas below the partition are not updated.
	updated := o.count(0, "status", "updatedReplicas")
	if partition := o.count(0, "spec", "updateStrategy", "rollingUpdate", "partition"); partition > 0 {
		if due := max(want-partition, 0); updated < due {
			return waiting("%d of the %d replicas above the partition are updated", updated, due)
		}
		return ready("%d of %d replicas are ready", want, want)
	}
	if current, update := o.text("status", "currentRevision"), o.text("status", "updateRevision"); current != update {
		return waiting("%d of %d replicas are updated", updated, want)
	}
	return ready("%d of %d replicas are ready", want, want)
}

func daemonSet(o fieldReader) result {
	if _, ok := o.number("status", "observedGeneration"); !ok {
		return waiting("its controller has not seen it yet")
	}
	want := o.count(0, "status", "desiredNumberScheduled")
	updated, available := o.count(0, "status", "updatedNumberScheduled"), o.count(0, "status", "numberAvailable")
	switch {
	case updated < want && o.text("spec", "updateStrategy", "type") != "OnDelete":
		return waiting("%d of %d nodes have the updated pod", updated, want)
	case available < want:
		return waiting("the pods of %d of %d nodes are available", available, want)
	}
	return ready("the pods of %d of %d nodes are available", available, want)
}

func job(o fieldReader) result {
	if status, reason, message := o.condition("Failed"); status == "True" {
		return failed("%s", because(reason, message))
	}
	succeeded := o.count(0, "status", "succeeded")
	if status, _, _ := o.condition("Complete"); status == "True" {
		return ready("it has finished with %d succeeded pods", succeeded)
	}
	if status, _, _ := o.condition("Suspended"); status == "True" {
		return waiting("it is suspended")
	}
	return waiting("%d pods are active, %d have succeeded, %d have failed",
		o.count(0, "status", "active"), succeeded, o.count(0, "status", "failed"))
}

func pod(o fieldReader) result {
	switch phase := o.text("status", "phase"); phase {
	case "Succeeded":
		return ready("it has finished")
	case "Failed":
		return failed("it has failed: %s", because(o.text("status", "reason"), o.text("status", "message")))
	case "Running":
		status, reason, message := o.condition("Ready")
		if status == "True" {
			return ready("it runs and is ready")
		}
		return waiting("it runs and is not ready: %s", because(reason, message))
	case "":
		return waiting("it has no phase yet")
	default:
		if status, reason, message := o.condition("PodScheduled"); status == "False" {
			return waiting("it has no node: %s", because(reason, message))
		}
		return waiting("it is in phase %s", phase)
	}
}

func claim(o fieldReader) result {
	switch phase := o.text("status", "phase"); phase {
	case "Bound":
		return ready("it is bound")
	case "Lost":
		return failed("its volume is lost")
	case "":
		return waiting("it has no phase yet")
	default:
		return waiting("it is in phase %s", phase)
	}
}

func service(o fieldReader) result {
	if o.text("spec", "type") != "LoadBalancer" {
		return ready("it is there")
	}
	if len(o.list("status", "loadBalancer", "ingress")) == 0 {
		return waiting("its load balancer has no address yet")
	}
	return ready("its load balancer has an address")
}

func definition(o fieldReader) result {
	if status, reason, message := o.condition("NamesAccepted"); status == "False" {
		return failed("its names are not accepted: %s", because(reason, message))
	}
	if status, reason, message := o.condition("Established"); status != "True" {
		return waiting("it is not established: %s", because(reason, message))
	}
	return ready("it is established")
}

func apiService(o fieldReader) result {
	if status, reason, message := o.condition("Available"); status != "True" {
		return waiting("it is not available: %s", because(reason, message))
	}
	return ready("it is available")
}

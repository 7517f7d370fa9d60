// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestCheck(t *testing.T) {
	for spec, want := range map[string]string{
		whole:                 "",
		probed:                "",
		`{hostNetwork: true}`: "spec.hostNetwork",
		`{volumes: [{name: v, hostPath: {path: /x}}]}`:                                                         "spec.volumes[0].hostPath.path",
		`{volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {path: x}}]}}]}`:                      "spec.volumes[0].projected.sources[0].clusterTrustBundle.path",
		`{volumes: [{name: v, persistentVolumeClaim: {claimName: x, readOnly: true}}]}`:                        "spec.volumes[0].persistentVolumeClaim.readOnly",
		`{containers: [{name: c, volumeMounts: [{name: v, mountPath: /x, subPath: y}]}]}`:                      "spec.containers[0].volumeMounts[0].subPath",
		`{containers: [{name: c, envFrom: [{secretRef: {name: x}}]}]}`:                                         "spec.containers[0].envFrom[0].secretRef.name",
		`{containers: [{name: c, lifecycle: {preStop: {sleep: {seconds: 3}}}}]}`:                               "spec.containers[0].lifecycle.preStop.sleep.seconds",
		`{containers: [{name: c, ports: [{containerPort: 1, hostPort: 1}]}]}`:                                  "spec.containers[0].ports[0].hostPort",
		`{containers: [{name: c, ports: [{containerPort: 1, protocol: UDP}]}]}`:                                "spec.containers[0].ports[0].protocol",
		`{containers: [{name: c, livenessProbe: {exec: {command: [x]}}}]}`:                                     "spec.containers[0].livenessProbe.exec.command[0]",
		`{containers: [{name: c, livenessProbe: {httpGet: {host: x, port: 1}}}]}`:                              "spec.containers[0].livenessProbe.httpGet.host",
		`{containers: [{name: c, securityContext: {privileged: true}}]}`:                                       "spec.containers[0].securityContext.privileged",
		`{containers: [{name: c, securityContext: {capabilities: {add: [NET_ADMIN]}}}]}`:                       "spec.containers[0].securityContext.capabilities.add[0]",
		`{initContainers: [{name: c, restartPolicy: Always}]}`:                                                 "spec.initContainers[0].restartPolicy",
		`{securityContext: {seccompProfile: {type: Localhost, localhostProfile: x}}}`:                          "spec.securityContext.seccompProfile",
		`{topologySpreadConstraints: [{maxSkew: 1, topologyKey: x, whenUnsatisfiable: DoNotSchedule}]}`:        "spec.topologySpreadConstraints[0].maxSkew",
		`{topologySpreadConstraints: [{maxSkew: 1, topologyKey: x, whenUnsatisfiable: ScheduleAnyway}]}`:       "",
		`{nodeSelector: {kubernetes.io/os: linux}, tolerations: [{operator: Exists}], priorityClassName: "x"}`: "",
		`{nodeSelector: {disk: fast}}`:                                                                         "spec.nodeSelector.disk",
		`{containers: [{name: c, env: [{name: x, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]}]}`:   "spec.containers[0].env[0].valueFrom.resourceFieldRef",
	} {
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
			t.Fatalf("%v: %s", err, spec)
		}
		switch err := check(pod); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", spec, err)
		case want != "" && (err == nil || !isRefusal(err) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)"}
	for text, want := range map[string]string{
		"":               "",
		"$(A)":           "1",
		"x$(A)y$(A)":     "x1y1",
		"$(B)":           "$(A)",
		"$(C)":           "$(C)",
		"$$(A)":          "$(A)",
		"$$$(A)":         "$1",
		"$A $ ( $(A":     "$A $ ( $(A",
		"$":              "$",
		"$(":             "$(",
		"a=$(A),b=$(C)$": "a=1,b=$(C)$",
	} {
		if got := expand(text, values); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestContainerLog_IsBounded(t *testing.T) {
	log := &containerLog{}
	line := []byte(strings.Repeat("x", 1<<20-1) + "\n")
	for range 100 {
		_, _ = log.Write(line)
	}
	_, _ = log.Write([]byte("the end"))
	if said := log.String(); len(said) > logLimit+100 || len(said) < logLimit/2 || !strings.Contains(said[:50], "bytes were dropped") || !strings.HasSuffix(said, "the end") {
		t.Errorf("%d bytes are kept: %.50s", len(said), said)
	}
}

// TestSet_LastTransitionTime verifies that the condition Ready of a pod has the time of its last transition, which Deployments use.
func TestSet_LastTransitionTime(t *testing.T) {
	var status corev1.PodStatus
	for _, step := range []struct {
		ready       bool
		since, want int64
	}{{false, 1, 1}, {false, 2, 1}, {true, 3, 3}, {true, 4, 3}, {false, 5, 5}} {
		set(&status, corev1.PodReady, step.ready, "Reason", time.Unix(step.since, 0))
		if c := status.Conditions; len(c) != 1 || c[0].LastTransitionTime.Unix() != step.want || (c[0].Status == corev1.ConditionTrue) != step.ready {
			t.Errorf("%+v: %+v", step, c)
		}
	}
}

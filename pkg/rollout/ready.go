// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import "fmt"

// ManifestStatus is one resource of a work, with the values that agents report for well-known kinds.
type ManifestStatus struct {
	Group, Kind, Namespace, Name string
	// Numbers and Texts are by the names of Open Cluster Management, such as ReadyReplicas and PodPhase.
	Numbers map[string]int64
	Texts   map[string]string
}

// WellKnown reports whether the readiness of a kind depends on the value of this name.
func WellKnown(group, kind, value string) bool {
	known := map[string][]string{
		"apps/Deployment": {"Replicas", "ReadyReplicas", "AvailableReplicas"},
		"apps/DaemonSet":  {"DesiredNumberScheduled", "NumberReady", "NumberAvailable"},
		"batch/Job":       {"JobComplete"},
		"/Pod":            {"PodReady", "PodPhase"},
	}[group+"/"+kind]
	for _, name := range known {
		if name == value {
			return true
		}
	}
	return false
}

// ready returns the progress of a resource, as far as its values tell. A missing number is 0: its field is omitted then.
func (m *ManifestStatus) ready() (Progress, string) {
	switch m.Group + "/" + m.Kind {
	case "apps/Deployment":
		return m.all("replicas", "Replicas", "ReadyReplicas", "AvailableReplicas")
	case "apps/DaemonSet":
		return m.all("pods", "DesiredNumberScheduled", "NumberReady", "NumberAvailable")
	case "batch/Job":
		if done, known := m.Texts["JobComplete"]; known && done != "True" {
			return Progresses, m.String() + " is not complete"
		}
	case "/Pod":
		switch phase := m.Texts["PodPhase"]; {
		case phase == "Failed":
			return Fails, m.String() + " has failed"
		case phase == "Succeeded":
		case phase != "" && phase != "Running", m.Texts["PodReady"] != "" && m.Texts["PodReady"] != "True":
			return Progresses, m.String() + " is not ready"
		}
	}
	return Succeeds, ""
}

// all checks whether two values are as large as a third.
func (m *ManifestStatus) all(what, want string, have ...string) (Progress, string) {
	wanted, known := m.Numbers[want]
	if !known {
		return Succeeds, ""
	}
	for _, name := range have {
		if n := m.Numbers[name]; n != wanted {
			return Progresses, fmt.Sprintf("%s: %d of %d %s are ready", m, n, wanted, what)
		}
	}
	return Succeeds, ""
}

func (m *ManifestStatus) String() string {
	if m.Namespace == "" {
		return m.Kind + " " + m.Name
	}
	return m.Kind + " " + m.Namespace + "/" + m.Name
}

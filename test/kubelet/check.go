// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// check returns an error for everything in a pod that this kubelet does not support. It clears the supported fields of a copy: all that remains is
// unsupported, including new fields of the type.
func check(pod *corev1.Pod) error {
	spec := pod.Spec.DeepCopy()
	// These are supported, or have no meaning with one node without taints, local images, and no DNS.
	spec.RestartPolicy, spec.TerminationGracePeriodSeconds, spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", nil, "", ""
	spec.NodeName, spec.SchedulerName, spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = "", "", "", nil, nil
	spec.Tolerations, spec.ImagePullSecrets, spec.HostAliases, spec.EnableServiceLinks, spec.AutomountServiceAccountToken = nil, nil, nil, nil, nil
	clearIf(&spec.DNSPolicy, corev1.DNSClusterFirst)
	spec.TopologySpreadConstraints = slices.DeleteFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.ScheduleAnyway
	})
	if spec.NodeSelector[corev1.LabelOSStable] == "linux" {
		delete(spec.NodeSelector, corev1.LabelOSStable)
	}
	if a := spec.Affinity; a != nil {
		if a.NodeAffinity != nil {
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
		if a.PodAffinity != nil {
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
		if a.PodAntiAffinity != nil {
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
	}
	if s := spec.SecurityContext; s != nil {
		s.RunAsUser, s.RunAsGroup, s.RunAsNonRoot, s.FSGroup, s.SupplementalGroups = nil, nil, nil, nil, nil
		s.FSGroupChangePolicy = nil
		clearProfile(&s.SeccompProfile)
	}
	for i := range spec.Volumes {
		clearVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		clearContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		clearContainer(&spec.Containers[i])
	}
	if left := leftIn(spec); len(left) > 0 {
		return refusal("this kubelet of the tests does not know %s. Teach it, or leave that out", strings.Join(left, ", "))
	}
	return nil
}

// clearIf clears a supported value. Other values stay, and are an error.
func clearIf[T comparable](field *T, known ...T) {
	if slices.Contains(known, *field) {
		*field = *new(T)
	}
}

func clearProfile(profile **corev1.SeccompProfile) {
	if *profile != nil && (*profile).Type == corev1.SeccompProfileTypeRuntimeDefault {
		*profile = nil
	}
}

func clearVolume(v *corev1.Volume) {
	if v.Secret == nil && v.ConfigMap == nil && v.Projected == nil && v.EmptyDir == nil && v.PersistentVolumeClaim == nil && v.DownwardAPI == nil {
		return // the error names it
	}
	v.Name, v.Secret, v.ConfigMap, v.EmptyDir = "", nil, nil, nil
	if v.PersistentVolumeClaim != nil {
		v.PersistentVolumeClaim.ClaimName = ""
	}
	if v.DownwardAPI != nil {
		v.DownwardAPI.DefaultMode = nil
		clearFields(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		v.Projected.DefaultMode = nil
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			source.Secret, source.ConfigMap, source.ServiceAccountToken = nil, nil, nil
			if source.DownwardAPI != nil {
				clearFields(source.DownwardAPI.Items)
			}
		}
	}
}

func clearFields(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		items[i].Path, items[i].FieldRef, items[i].Mode = "", nil, nil // the field is validated when it is read
	}
}

func clearContainer(c *corev1.Container) {
	c.Name, c.Image, c.Command, c.Args, c.ImagePullPolicy = "", "", nil, nil, ""
	c.TerminationMessagePath = "" // our programs write none
	clearIf(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	c.Resources = corev1.ResourceRequirements{}
	for i := range c.Ports {
		c.Ports[i].Name, c.Ports[i].ContainerPort = "", 0
		clearIf(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		v := &c.Env[i]
		v.Name, v.Value = "", ""
		if v.ValueFrom != nil {
			v.ValueFrom.FieldRef, v.ValueFrom.SecretKeyRef, v.ValueFrom.ConfigMapKeyRef = nil, nil, nil
		}
	}
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		m.Name, m.MountPath, m.ReadOnly = "", "", false
	}
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p == nil {
			continue
		}
		p.InitialDelaySeconds, p.PeriodSeconds, p.TimeoutSeconds, p.SuccessThreshold, p.FailureThreshold = 0, 0, 0, 0, 0
		if p.HTTPGet != nil {
			p.HTTPGet.Path, p.HTTPGet.Port.IntVal, p.HTTPGet.Port.StrVal, p.HTTPGet.Port.Type, p.HTTPGet.HTTPHeaders = "", 0, "", 0, nil
			clearIf(&p.HTTPGet.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
		}
		if p.TCPSocket != nil {
			p.TCPSocket.Port.IntVal, p.TCPSocket.Port.StrVal, p.TCPSocket.Port.Type = 0, "", 0
		}
	}
	if s := c.SecurityContext; s != nil {
		s.RunAsUser, s.RunAsGroup, s.RunAsNonRoot, s.ReadOnlyRootFilesystem = nil, nil, nil, nil
		s.AllowPrivilegeEscalation = nil
		if s.Privileged != nil && !*s.Privileged {
			s.Privileged = nil
		}
		if s.Capabilities != nil {
			s.Capabilities.Drop = nil
		}
		clearProfile(&s.SeccompProfile)
	}
}

// leftIn returns the paths of all values of an object.
func leftIn(object any) []string {
	data, err := json.Marshal(object)
	var tree any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		return []string{err.Error()}
	}
	return leaves("spec", tree)
}

func leaves(path string, tree any) (found []string) {
	switch tree := tree.(type) {
	case map[string]any:
		for key, value := range tree {
			found = append(found, leaves(path+"."+key, value)...)
		}
		slices.Sort(found)
	case []any:
		for i, value := range tree {
			found = append(found, leaves(fmt.Sprintf("%s[%d]", path, i), value)...)
		}
	case nil:
	case string:
		if tree != "" {
			found = append(found, path)
		}
	case float64:
		if tree != 0 {
			found = append(found, path)
		}
	case bool:
		found = append(found, path) // false may be set, too
	}
	return found
}

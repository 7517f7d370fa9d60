// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	restricted  = "pod-security.kubernetes.io/enforce"
	noNamespace = "its namespace, with its level of pod security, is not among the manifests"
)

// findings says what of the objects, which are deployed together, is against the rules.
func findings(objects []runtime.Object) (found []string) {
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Namespace:
			if o.Labels[restricted] != "restricted" {
				found = append(found, fmt.Sprintf("Namespace %s: the label %s is not restricted", o.Name, restricted))
			}
		case *appsv1.Deployment:
			for _, finding := range ofDeployment(o, objects) {
				found = append(found, fmt.Sprintf("Deployment %s: %s", o.Name, finding))
			}
		}
	}
	return found
}

func ofDeployment(d *appsv1.Deployment, objects []runtime.Object) (found []string) {
	pod := d.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, finding := range ofContainer(c) {
			found = append(found, c.Name+": "+finding)
		}
	}
	for _, c := range pod.Containers {
		if c.LivenessProbe == nil || c.ReadinessProbe == nil {
			found = append(found, c.Name+": it needs a liveness and a readiness probe")
		}
	}
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
		found = append(found, "runAsNonRoot and a seccompProfile are not set")
	}
	if !slices.Contains(namespaces(objects), d.Namespace) {
		found = append(found, noNamespace)
	}
	if d.Spec.Replicas != nil && *d.Spec.Replicas > 1 {
		if !spread(d, corev1.LabelHostname) || !spread(d, corev1.LabelTopologyZone) {
			found = append(found, "its replicas are not spread over machines and zones")
		}
		if !protected(d, objects) {
			found = append(found, "there is no PodDisruptionBudget for its replicas")
		}
	}
	return append(found, ofNetwork(d, objects)...)
}

func ofContainer(c corev1.Container) (found []string) {
	image, digest, _ := strings.Cut(c.Image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if digest == "" && (tag == "" || tag == "latest") {
		found = append(found, fmt.Sprintf("the image %s has neither a version nor a digest", c.Image))
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		found = append(found, "it needs requests of CPU and memory, and a limit of memory")
	}
	if !c.Resources.Limits.Cpu().IsZero() {
		found = append(found, "a limit of CPU delays leases and probes")
	}
	s := c.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil ||
		*s.AllowPrivilegeEscalation || s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
		found = append(found, "it needs a read-only root file system, no privilege escalation and no capabilities")
	}
	return found
}

// spread reports whether the pods of a Deployment, and no others, are spread by a label of nodes.
func spread(d *appsv1.Deployment, key string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == key && selects(c.LabelSelector, d)
	})
}

func protected(d *appsv1.Deployment, objects []runtime.Object) bool {
	return slices.ContainsFunc(objects, func(o runtime.Object) bool {
		b, ok := o.(*policyv1.PodDisruptionBudget)
		return ok && b.Namespace == d.Namespace && selects(b.Spec.Selector, d)
	})
}

// ofNetwork wants a rule on who may reach the pods, by which nothing is let in but to the ports of Services, and to metrics that ask for credentials.
func ofNetwork(d *appsv1.Deployment, objects []runtime.Object) (found []string) {
	served := map[string]bool{}
	for _, o := range objects {
		s, ok := o.(*corev1.Service)
		if !ok || s.Namespace != d.Namespace || !selects(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}, d) {
			continue
		}
		for _, port := range s.Spec.Ports {
			served[port.TargetPort.String()] = true
		}
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == "metrics" && slices.Contains(c.Args, "--metrics-secure") {
				served[strconv.Itoa(int(port.ContainerPort))] = true
			}
		}
	}
	opened, limited := map[string]bool{}, false
	for _, o := range objects {
		p, ok := o.(*networkingv1.NetworkPolicy)
		if !ok || p.Namespace != d.Namespace || !selects(&p.Spec.PodSelector, d) || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			continue
		}
		limited = true
		for _, rule := range p.Spec.Ingress {
			if len(rule.Ports) == 0 {
				found = append(found, fmt.Sprintf("the NetworkPolicy %s opens all ports", p.Name))
			}
			for _, port := range rule.Ports {
				opened[port.Port.String()] = true
			}
		}
	}
	if !limited {
		return append(found, "no NetworkPolicy says who may reach its pods")
	}
	for port := range opened {
		if !served[port] {
			found = append(found, fmt.Sprintf("a NetworkPolicy opens the port %s, which no Service leads to", port))
		}
	}
	for port := range served {
		if !opened[port] {
			found = append(found, fmt.Sprintf("a Service leads to the port %s, which no NetworkPolicy opens", port))
		}
	}
	return found
}

func selects(selector *metav1.LabelSelector, d *appsv1.Deployment) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
}

func namespaces(objects []runtime.Object) (names []string) {
	for _, o := range objects {
		if namespace, ok := o.(*corev1.Namespace); ok {
			names = append(names, namespace.Name)
		}
	}
	return names
}

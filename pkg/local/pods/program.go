// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// program is a program that the node runs.
type program struct {
	// cluster is the flag for the kubeconfig of the cluster that runs the pod. In a container the program finds that by itself.
	cluster string
	// args are added to its arguments, and needs is an argument that its pod must have.
	args  []string
	needs string
	// isIn reports whether the program may run in a namespace. Only admins create these namespaces, and pods in them.
	isIn func(namespace string) bool
}

// operatorNamespace is the namespace of hub-operator.
const operatorNamespace = "clusterhub-operator"

// agentSuffix is the suffix of the namespaces of agents of Klusterlets in mode Detached.
var agentSuffix = (&operatorv1.Klusterlet{Spec: operatorv1.KlusterletSpec{DeployOption: operatorv1.KlusterletDeployOption{
	Mode: operatorv1.InstallModeDetached}}}).AgentNamespace()

const (
	images      = "clusterhub/"
	healthFlag  = "--health-probe-bind-address="
	tokenVolume = "kube-api-access-"
)

// programs are the programs that the node runs, by the names of their images.
var programs = map[string]program{
	"hub-operator": {cluster: "--kubeconfig=", args: []string{"--metrics-bind-address=0"},
		isIn: func(namespace string) bool { return namespace == operatorNamespace }},
	// A detached agent runs no program that a kubeconfig in a Secret names, and reads no file.
	"hub-agent": {cluster: "--management-kubeconfig=", needs: "--detached",
		isIn: func(namespace string) bool { return strings.HasSuffix(namespace, agentSuffix) }},
}

// programOf returns the name of the program in an image.
func programOf(image string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(image, images), ":")
	return name
}

// refused returns why the node does not run a pod, or "".
func refused(pod *corev1.Pod) string {
	spec := &pod.Spec
	if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 || !strings.HasPrefix(spec.Containers[0].Image, images) {
		return "the node of a local hub runs pods of hub-operator and of agents of Klusterlets in mode Detached only"
	}
	c := &spec.Containers[0]
	p, known := programs[programOf(c.Image)]
	if !known || !p.isIn(pod.Namespace) {
		return fmt.Sprintf("the node of a local hub runs hub-operator in the namespace %s, and hub-agent in namespaces that end with %s: got %s in %s",
			operatorNamespace, agentSuffix, c.Image, pod.Namespace)
	}
	for _, v := range spec.Volumes {
		if v.Secret == nil && !isToken(v) {
			return fmt.Sprintf("the node of a local hub supports only Secret volumes: the volume %s has another type", v.Name)
		}
	}
	for _, arg := range c.Args {
		flag, value, set := strings.Cut(arg, "=")
		if !strings.HasPrefix(arg, "--") || strings.Contains(arg, "$(") || strings.HasPrefix(value, "/") && mountOf(c, value) == nil ||
			strings.Contains(value, "..") || set && flag == p.needs {
			return fmt.Sprintf("the node of a local hub supports only flags without variables, with files that the pod mounts: got the argument %q", arg)
		}
	}
	if p.needs != "" && !slices.Contains(c.Args, p.needs) {
		return fmt.Sprintf("the node of a local hub runs %s only with the argument %s", c.Image, p.needs)
	}
	if len(c.Command) > 0 || len(c.Env) > 0 || len(c.EnvFrom) > 0 {
		return "the node of a local hub runs the entrypoints of images: command, env and envFrom are not supported"
	}
	return ""
}

// isToken reports whether a volume is the one with which every pod reaches its own cluster.
func isToken(v corev1.Volume) bool {
	return v.Projected != nil && strings.HasPrefix(v.Name, tokenVolume)
}

func hasToken(pod *corev1.Pod) bool { return slices.ContainsFunc(pod.Spec.Volumes, isToken) }

// mountOf returns the volume mount of a path.
func mountOf(c *corev1.Container, path string) *corev1.VolumeMount {
	for i, m := range c.VolumeMounts {
		if (path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")) && !strings.Contains(path, "..") && m.SubPath == "" {
			return &c.VolumeMounts[i]
		}
	}
	return nil
}

// argsOf returns the arguments of a pod as a process: files are in the folders of volumes, and it listens on a port of loopback.
func argsOf(pod *corev1.Pod, volumes func(name string) string, health, kubeconfig string) (args []string) {
	c := &pod.Spec.Containers[0]
	p := programs[programOf(c.Image)]
	for _, arg := range c.Args {
		flag, value, _ := strings.Cut(arg, "=")
		m := mountOf(c, value)
		switch {
		case strings.HasPrefix(arg, healthFlag):
			arg = healthFlag + health
		case m != nil:
			arg = flag + "=" + volumes(m.Name) + strings.TrimPrefix(value, m.MountPath)
		}
		args = append(args, arg)
	}
	args = append(args, p.args...)
	if hasToken(pod) {
		args = append(args, p.cluster+kubeconfig)
	}
	return args
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// APIServer is the name of hub-apiserver's Deployment, ServiceAccount, Service and volume claim.
	APIServer = "hub-apiserver"
	// Approver is the Deployment of hub-certificate-approver.
	Approver = "hub-certificate-approver"
	// ProviderNamespace is the namespace of the cluster provider on the hub.
	ProviderNamespace = "openmcp-system"

	// ServingCASecret is the Secret with the CA of hub-apiserver's certificate, in its namespace of the hub.
	ServingCASecret = "hub-apiserver-serving-ca"

	// KubeconfigFolder is the folder where a pod finds the kubeconfig of the hub from a Secret.
	KubeconfigFolder = "/hub/config"
	// annotationWay is set on the pods, so that they are recreated when the hub is reached or trusted in a different way.
	annotationWay = "operator.clusterhub.dev/hub-sha256"

	volumeKubeconfig = "hub-kubeconfig"
	// user is the UID of our containers.
	user = 65532
	// maxQuota is the largest size that etcd recommends for its database.
	maxQuota = 8 << 30
)

// KubeconfigSecret returns the name of the Secret with which a pod of this ServiceAccount reaches the hub, if it does not run on it.
func KubeconfigSecret(account string) string { return account + "-kubeconfig" }

// Pods has the changes of the pods of a hub, or of a provider, compared with the manifests. The zero value changes nothing.
type Pods struct {
	// Way stands for how the hub is reached and trusted by pods that run elsewhere: pods are recreated when it changes. Each has a kubeconfig from
	// the Secret KubeconfigSecret of its ServiceAccount, and no token of the cluster that runs it. If it is empty, the pods run on the hub.
	Way string
	// Replicas and Args are by Deployment; Args are flags in addition to those of the manifests.
	Replicas map[string]int64
	Args     map[string][]string
	// EtcdServers and EtcdSecret are for Hub.ExternalEtcd: URLs, and the Secret with ca.crt, tls.crt and tls.key.
	EtcdServers []string
	EtcdSecret  string
	// Volume is the size of the volume of the embedded etcd, and StorageClass its class. The defaults are the size in the manifests and the default
	// class of the cluster.
	Volume       resource.Quantity
	StorageClass string
	// PullSecret is the name of a Secret for images.
	PullSecret string
	// NodeSelector and Tolerations are those of the pods, as in their specification.
	NodeSelector map[string]any
	Tolerations  []any
	// Resources are the resources of each container. Nil leaves those of the manifests, and empty sets none.
	Resources map[string]any
}

func (p Pods) fill(objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		var err error
		switch o.GetKind() {
		case "Deployment":
			err = p.fillDeployment(o)
		case "ServiceAccount":
			if p.Way != "" {
				o.Object["automountServiceAccountToken"] = false
			}
		case "PersistentVolumeClaim":
			err = p.fillClaim(o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", identity(o), err)
		}
	}
	return nil
}

func (p Pods) fillClaim(o *unstructured.Unstructured) error {
	if p.StorageClass != "" {
		if err := unstructured.SetNestedField(o.Object, p.StorageClass, "spec", "storageClassName"); err != nil {
			return err
		}
	}
	if p.Volume.IsZero() {
		return nil
	}
	return unstructured.SetNestedField(o.Object, p.Volume.String(), "spec", "resources", "requests", "storage")
}

// Quota returns the maximum size of the database of an embedded etcd on a volume: less than half of it, since a defragmentation writes a new copy
// beside the old one.
func Quota(volume resource.Quantity) int64 { return min(volume.Value()/5*2, maxQuota) }

func (p Pods) fillDeployment(o *unstructured.Unstructured) error {
	pod, err := mapIn(o.Object, "spec", "template", "spec")
	if err != nil {
		return err
	}
	if replicas, ok := p.Replicas[o.GetName()]; ok {
		if err := unstructured.SetNestedField(o.Object, replicas, "spec", "replicas"); err != nil {
			return err
		}
	}
	if p.PullSecret != "" {
		pod["imagePullSecrets"] = []any{map[string]any{"name": p.PullSecret}}
	}
	if len(p.NodeSelector) > 0 {
		pod["nodeSelector"] = p.NodeSelector
	}
	if len(p.Tolerations) > 0 {
		pod["tolerations"] = p.Tolerations
	}
	if p.Way != "" {
		if err := p.reachHub(o, pod); err != nil {
			return err
		}
	}
	for _, container := range slices.Concat(containersOf(pod, "initContainers"), containersOf(pod, "containers")) {
		if p.Resources != nil {
			container["resources"] = runtime.DeepCopyJSON(p.Resources)
		}
	}
	for _, container := range containersOf(pod, "containers") {
		args := p.argsOf(container)
		for _, arg := range p.Args[o.GetName()] {
			args = append(args, arg)
		}
		container["args"] = args
	}
	for _, volume := range containersOf(pod, "volumes") {
		if secret, ok := volume["secret"].(map[string]any); ok && volume["name"] == "etcd" && p.EtcdSecret != "" {
			secret["secretName"] = p.EtcdSecret
		}
	}
	return nil
}

// argsOf returns the flags of a container, with the flags for etcd adjusted.
func (p Pods) argsOf(container map[string]any) []any {
	args, _ := container["args"].([]any)
	args = slices.Clone(args)
	for i, arg := range args {
		switch text, _ := arg.(string); {
		case strings.HasPrefix(text, "--etcd-servers=") && len(p.EtcdServers) > 0:
			args[i] = "--etcd-servers=" + strings.Join(p.EtcdServers, ",")
		case strings.HasPrefix(text, "--embedded-etcd-quota-backend-bytes=") && !p.Volume.IsZero():
			args[i] = fmt.Sprintf("--embedded-etcd-quota-backend-bytes=%d", Quota(p.Volume))
		}
	}
	return args
}

// reachHub lets a pod reach the hub from elsewhere: with a kubeconfig of its ServiceAccount on the hub, which is renewed in the mounted Secret. The
// cluster that runs the pod gives it no token, and no environment variables of its Services.
func (p Pods) reachHub(o *unstructured.Unstructured, pod map[string]any) error {
	account, _ := pod["serviceAccountName"].(string)
	if account == "" {
		return fmt.Errorf("its pods need a ServiceAccount for the hub, and have none")
	}
	if err := unstructured.SetNestedField(o.Object, p.Way, "spec", "template", "metadata", "annotations", annotationWay); err != nil {
		return err
	}
	pod["automountServiceAccountToken"], pod["enableServiceLinks"] = false, false
	// Only this pod's user and group may read the token.
	if err := unstructured.SetNestedField(pod, int64(user), "securityContext", "fsGroup"); err != nil {
		return err
	}
	volumes, _ := pod["volumes"].([]any)
	pod["volumes"] = append(slices.Clone(volumes), map[string]any{
		"name": volumeKubeconfig, "secret": map[string]any{"secretName": KubeconfigSecret(account), "defaultMode": int64(0o440)},
	})
	for _, container := range slices.Concat(containersOf(pod, "initContainers"), containersOf(pod, "containers")) {
		mounts, _ := container["volumeMounts"].([]any)
		container["volumeMounts"] = append(slices.Clone(mounts), map[string]any{
			"name": volumeKubeconfig, "mountPath": KubeconfigFolder, "readOnly": true,
		})
		args, _ := container["args"].([]any)
		args = append(slices.Clone(args), "--kubeconfig="+KubeconfigFolder+"/kubeconfig")
		if container["name"] == APIServer {
			args = append(args, "--authentication-kubeconfig="+KubeconfigFolder+"/kubeconfig",
				"--authorization-kubeconfig="+KubeconfigFolder+"/kubeconfig")
		}
		container["args"] = args
		// The namespace in its environment is the one on the hub, which differs from the pod's own.
		env, _ := container["env"].([]any)
		for i := range env {
			variable, ok := env[i].(map[string]any)
			field, _, _ := unstructured.NestedString(variable, "valueFrom", "fieldRef", "fieldPath")
			if ok && field == "metadata.namespace" {
				env[i] = map[string]any{"name": variable["name"], "value": o.GetNamespace()}
			}
		}
	}
	return nil
}

// containersOf returns the maps in a list of a pod.
func containersOf(pod map[string]any, list string) (all []map[string]any) {
	items, _ := pod[list].([]any)
	for _, item := range items {
		if one, ok := item.(map[string]any); ok {
			all = append(all, one)
		}
	}
	return all
}

func mapIn(object map[string]any, path ...string) (map[string]any, error) {
	value, _, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil {
		return nil, err
	}
	in, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the field %s is missing or not an object", strings.Join(path, "."))
	}
	return in, nil
}

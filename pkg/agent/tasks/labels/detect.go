// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// detectable are the keys of the labels that can be detected from the cluster.
var detectable = registration.DefaultAgentLabels()

// clouds maps the scheme of a node's provider ID to the value of the label.
var clouds = map[string]string{
	"aws": "Amazon", "azure": "Azure", "gce": "Google", "ibm": "IBM", "openstack": "OpenStack", "vsphere": "VSphere", "alicloud": "Alibaba",
}

// vendors are detected by a part of the cluster's version, or by a label of its nodes.
var vendors = []struct{ version, label, name string }{
	{version: "-eks-", name: "EKS"}, {version: "-gke.", name: "GKE"}, {version: "+k3s", name: "K3S"}, {version: "+rke2", name: "RKE2"},
	{version: "+IKS", name: "IKS"}, {version: "-aliyun", name: "ACK"},
	{label: "node.openshift.io/os_id", name: "OpenShift"}, {label: "kubernetes.azure.com/cluster", name: "AKS"},
}

// detect returns labels for where the cluster runs, by its version and by its first node. Unknown ones are left out.
func detect(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1}) // ordered by name
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{}
	if len(nodes.Items) > 0 {
		node = &nodes.Items[0]
	}
	scheme, _, _ := strings.Cut(node.Spec.ProviderID, ":")
	known := map[string]string{}
	for key, value := range map[string]string{
		registration.LabelRegion: node.Labels[corev1.LabelTopologyRegion],
		registration.LabelCloud:  clouds[scheme],
		registration.LabelVendor: vendorOf(version.GitVersion, node.Labels),
	} {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			known[key] = value
		}
	}
	return known, nil
}

func vendorOf(version string, labels map[string]string) string {
	for _, v := range vendors {
		if _, labelled := labels[v.label]; labelled || v.version != "" && strings.Contains(version, v.version) {
			return v.name
		}
	}
	return ""
}

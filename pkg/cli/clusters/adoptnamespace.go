// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/contents"
)

const adoptFlag = "adopt-namespace"

// adopt labels an existing namespace with the cluster's name. The hub knows the namespaces of clusters by this label, and agents get permissions
// there. adopt does not change a namespace that has any objects in it, such as a RoleBinding by which others could write works for the cluster.
func (o *acceptOptions) adopt(ctx context.Context, h *kit.HubClient, cluster string) (adopted bool, err error) {
	namespace, err := h.Kube.CoreV1().Namespaces().Get(ctx, cluster, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil // the hub creates it
	}
	if err != nil {
		return false, fmt.Errorf("managed cluster %s: getting the namespace of its name: %w", cluster, err)
	}
	if namespace.Labels[registration.ClusterNameLabel] == cluster {
		return false, nil
	}
	if why := adoptionProblem(namespace); why != "" {
		return false, fmt.Errorf("managed cluster %s: the namespace of its name cannot be adopted: %s (nothing was changed)", cluster, why)
	}
	inside, err := contents.New(h.Config)
	if err != nil {
		return false, err
	}
	what, err := inside.First(ctx, cluster)
	switch {
	case err != nil:
		return false, fmt.Errorf("managed cluster %s: the namespace of its name cannot be adopted: its contents could not be listed (nothing was changed): %w", cluster, err)
	case what != "":
		return false, fmt.Errorf("managed cluster %s: the namespace of its name cannot be adopted: it must be empty, but has %s (nothing was changed). Delete these "+
			"objects, or let the cluster join under another name", cluster, command.Printable(what))
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": namespace.UID, "resourceVersion": namespace.ResourceVersion,
		"labels": map[string]string{registration.ClusterNameLabel: cluster}}})
	if err != nil {
		return false, err
	}
	if _, err := h.Kube.CoreV1().Namespaces().Patch(ctx, cluster, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return false, fmt.Errorf("managed cluster %s: labelling the namespace of its name: %w", cluster, err)
	}
	_, _ = fmt.Fprintf(o.ErrOut, "managed cluster %s: the namespace %[1]s is adopted\n", cluster)
	return true, nil
}

// adoptionProblem returns why a namespace cannot be adopted for a cluster even if it is empty, or "".
func adoptionProblem(namespace *corev1.Namespace) string {
	switch of := namespace.Labels[registration.ClusterNameLabel]; {
	case of != "":
		return fmt.Sprintf("its label %s says that it belongs to cluster %s", registration.ClusterNameLabel, command.Printable(of))
	case !namespace.DeletionTimestamp.IsZero():
		return "it is being deleted. Wait until it is gone: the hub creates it again"
	case namespace.Name == metav1.NamespaceDefault, strings.HasPrefix(namespace.Name, kit.SystemNamespacePrefix), strings.HasPrefix(namespace.Name, kit.HubNamespacePrefix):
		return "it belongs to Kubernetes or to the hub. Let the cluster join under another name"
	}
	return ""
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
)

// FieldManager is the field manager of everything that the tests apply: fields that it omits from its next apply are removed.
const FieldManager = "attacker"

// DryRun returns the values of the option dryRun.
func DryRun(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// OnManagedCluster returns a request for a ManagedCluster or a subresource of it.
func OnManagedCluster(verb *rest.Request, name, subresource string) *rest.Request {
	r := verb.Resource("managedclusters").Name(name)
	if subresource != "" {
		r = r.SubResource(subresource)
	}
	return r
}

// PatchWith returns a way to patch a cluster into a different one.
func PatchWith(kind types.PatchType, body func(before, after *clusterv1.ManagedCluster) ([]byte, error)) func(context.Context, rest.Interface, string, bool, *clusterv1.ManagedCluster, *clusterv1.ManagedCluster) error {
	return func(ctx context.Context, client rest.Interface, subresource string, dryRun bool, before, after *clusterv1.ManagedCluster) error {
		data, err := body(before, after)
		if err != nil {
			return err
		}
		opts := &metav1.PatchOptions{DryRun: DryRun(dryRun)}
		if kind == types.ApplyYAMLPatchType {
			opts.Force, opts.FieldManager = new(true), FieldManager
		}
		return OnManagedCluster(client.Patch(kind), before.Name, subresource).
			VersionedParams(opts, scheme.ParameterCodec).Body(data).Do(ctx).Error()
	}
}

// Applied returns the apply configuration of FieldManager for a cluster. It always includes hubAcceptsClient, as upstream's agents do.
func Applied(_, c *clusterv1.ManagedCluster) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": clusterv1.SchemeGroupVersion.String(), "kind": "ManagedCluster",
		"metadata": map[string]any{"name": c.Name, "labels": c.Labels},
		"spec":     map[string]any{"hubAcceptsClient": c.Spec.HubAcceptsClient},
	})
}

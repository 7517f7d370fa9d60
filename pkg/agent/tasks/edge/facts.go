// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"runtime"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// The hub's limits for the facts of a cluster. It would reject larger values, and all facts with them.
const (
	maxCPU, maxMemory = 1 << 20, 1 << 40
	maxObjects        = 256
)

var (
	archForm = regexp.MustCompile(`^[a-z0-9]{1,63}$`)
	factForm = regexp.MustCompile(`^[!-~]{1,253}$`)
)

// teller reports the facts to the hub.
type teller struct {
	Node
	discovery discovery.DiscoveryInterfaces
	// id reads the ID of the cluster; it is empty if the agent may not read it.
	id   func(context.Context) (string, error)
	said repeat.Said
}

// facts returns the current facts; before are the previous ones. Facts that the agent may not read are not set. Those that cannot be read at the
// moment are unchanged: services must not come and go with each failed request.
func (t *teller) facts(ctx context.Context, before edgev1alpha1.EdgeNodeStatus) edgev1alpha1.EdgeNodeStatus {
	now := edgev1alpha1.EdgeNodeStatus{Namespace: t.Namespace, NamespaceScoped: &t.Scoped, KubernetesVersion: before.KubernetesVersion,
		ClusterID: before.ClusterID, ReportTime: before.ReportTime}
	version, err := t.discovery.ServerVersionWithContext(ctx)
	t.said.Result(ctx, "reading the version of the cluster", err)
	if err == nil {
		now.KubernetesVersion = ""
		if factForm.MatchString(version.GitVersion) {
			now.KubernetesVersion = version.GitVersion
		}
	}
	id, err := t.id(ctx)
	t.said.Result(ctx, "reading the ID of the cluster", err)
	if err == nil {
		now.ClusterID = id
	}
	if now.ClusterID != before.ClusterID {
		before = edgev1alpha1.EdgeNodeStatus{} // it may be a different cluster
	}
	t.addNodes(&now, before)
	if t.Scoped {
		objects, unknown, err := definitions(ctx, t.discovery)
		t.said.Result(ctx, "discovering the kinds of the cluster", err)
		for _, o := range before.ClusterObjects {
			if unknown(o) && !slices.Contains(objects, o) {
				objects = append(objects, o)
			}
		}
		now.ClusterObjects = sorted(objects)
	}
	return now
}

// addNodes adds the sums over the nodes. The facts of a cluster without nodes, such as one that is scaled down, are unchanged.
func (t *teller) addNodes(now *edgev1alpha1.EdgeNodeStatus, before edgev1alpha1.EdgeNodeStatus) {
	switch nodes := t.View.Nodes(); {
	case nodes != nil && len(nodes.Arches) > 0:
		now.Arch, now.CPU, now.Memory = archOf(nodes.Arches, before.Arch), within(nodes.CPU, maxCPU), within(nodes.Memory>>20, maxMemory)
	case t.Own.NamespaceScoped:
		now.Arch = runtime.GOARCH // that of the node that runs the agent
	default:
		now.Arch, now.CPU, now.Memory = before.Arch, before.CPU, before.Memory
	}
}

// archOf returns the architecture of most nodes, or the first of those by name. The previous one stays as long as any node has it.
func archOf(arches map[string]int, before string) string {
	if before != "" && arches[before] > 0 {
		return before
	}
	known := slices.DeleteFunc(slices.Collect(maps.Keys(arches)), func(arch string) bool { return !archForm.MatchString(arch) })
	if len(known) == 0 {
		return ""
	}
	return slices.MinFunc(known, func(a, b string) int { return cmp.Or(cmp.Compare(arches[b], arches[a]), cmp.Compare(a, b)) })
}

// within returns a number that the hub accepts, or nil if it is out of range.
func within(n, most int64) *int64 {
	if n < 1 || n > most {
		return nil
	}
	return &n
}

// sorted returns the valid objects in a stable order, and no more than the hub accepts.
func sorted(objects []edgev1alpha1.ClusterScopedObject) []edgev1alpha1.ClusterScopedObject {
	objects = slices.DeleteFunc(objects, func(o edgev1alpha1.ClusterScopedObject) bool { return len(validation.IsDNS1123Subdomain(o.Name)) > 0 })
	slices.SortFunc(objects, func(a, b edgev1alpha1.ClusterScopedObject) int { return cmp.Compare(a.Name, b.Name) })
	objects = slices.Compact(objects)
	return objects[:min(len(objects), maxObjects)]
}

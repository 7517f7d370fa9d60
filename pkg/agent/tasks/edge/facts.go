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

// What the hub takes at most of what a cluster says of itself. It would refuse more, and with it all facts.
const (
	mostCPU, mostMemory = 1 << 20, 1 << 40
	mostObjects         = 256
)

var (
	archForm = regexp.MustCompile(`^[a-z0-9]{1,63}$`)
	factForm = regexp.MustCompile(`^[!-~]{1,253}$`)
)

// teller tells the hub the facts.
type teller struct {
	Node
	discovery discovery.DiscoveryInterfaces
	// id reads the id of the cluster, which is empty where the agent may not know it.
	id   func(context.Context) (string, error)
	said repeat.Said
}

// facts are those that are, after those before. What the agent may not read is not known. What cannot be read just now is as it was:
// services must not come and go with each request that fails.
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
	t.said.Result(ctx, "reading what tells the cluster from others", err)
	if err == nil {
		now.ClusterID = id
	}
	if now.ClusterID != before.ClusterID {
		before = edgev1alpha1.EdgeNodeStatus{} // those of another cluster, maybe
	}
	t.addNodes(&now, before)
	if t.Scoped {
		objects, unknown, err := definitions(ctx, t.discovery)
		t.said.Result(ctx, "asking the cluster for its kinds", err)
		for _, o := range before.ClusterObjects {
			if unknown(o) && !slices.Contains(objects, o) {
				objects = append(objects, o)
			}
		}
		now.ClusterObjects = sorted(objects)
	}
	return now
}

// addNodes adds what the nodes are together. A cluster without nodes, as one that is scaled down, is as it was.
func (t *teller) addNodes(now *edgev1alpha1.EdgeNodeStatus, before edgev1alpha1.EdgeNodeStatus) {
	switch nodes := t.View.Nodes(); {
	case nodes != nil && len(nodes.Arches) > 0:
		now.Arch, now.CPU, now.Memory = archOf(nodes.Arches, before.Arch), within(nodes.CPU, mostCPU), within(nodes.Memory>>20, mostMemory)
	case t.Own.NamespaceScoped:
		now.Arch = runtime.GOARCH // that of the node that runs the agent
	default:
		now.Arch, now.CPU, now.Memory = before.Arch, before.CPU, before.Memory
	}
}

// archOf is the architecture that most nodes have, or the first of those by name. One that was told before stays while a node has it.
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

// within is a number that the hub takes; another one is not known.
func within(n, most int64) *int64 {
	if n < 1 || n > most {
		return nil
	}
	return &n
}

// sorted has the objects in an order that does not change, and no more than the hub takes.
func sorted(objects []edgev1alpha1.ClusterScopedObject) []edgev1alpha1.ClusterScopedObject {
	objects = slices.DeleteFunc(objects, func(o edgev1alpha1.ClusterScopedObject) bool { return len(validation.IsDNS1123Subdomain(o.Name)) > 0 })
	slices.SortFunc(objects, func(a, b edgev1alpha1.ClusterScopedObject) int { return cmp.Compare(a.Name, b.Name) })
	objects = slices.Compact(objects)
	return objects[:min(len(objects), mostObjects)]
}

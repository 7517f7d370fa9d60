// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	edgePath = "/apis/" + edge.GroupName + "/v1alpha1/"
	edgeKind = edge.GroupName + "/v1alpha1"
	// edgeNamespaces is the number of namespaces with policies. Each has bindings for edgeSets sets.
	edgeNamespaces, edgeSets = 50, 20
	// edgeSites is the number of values of the property that policies select by. Each value has the same number of nodes.
	edgeSites = 200
	// edgeServices is the namespace of the services, one for each policy.
	edgeServices = "edge-services"
	// edgeAtOnce is the number of nodes that change at the same time.
	edgeAtOnce = 1000
	edgeAgent  = "bench"
	// edgeRest is the time for which the hub is watched at rest.
	edgeRest = 10 * time.Second
)

// edgeRoles allow agents to write their nodes. hub-controller-manager creates no such roles here.
//
//go:embed edge.yaml
var edgeRoles []byte

// edging is a hub with edge nodes and policies.
type edging struct {
	*env
	audit *audit
	// admins and agents send requests directly to hub-apiserver. Each agent writes the status of its own node.
	admins, agents []*client
	result         *edgeResult
	nodes          int
	// idle is the processor time of the processes per second at rest.
	idle cpuTimes
	// engine is the engine of hub-controller-manager, in this process, with all objects of the hub.
	engine *engine.Engine
}

// measureEdge measures the cost of changes of nodes and policies.
func measureEdge(ctx context.Context, o options) (*edgeResult, error) {
	e := &edging{nodes: o.smallFleet()}
	e.result = &edgeResult{Nodes: e.nodes, Policies: o.edgePolicies, Namespaces: edgeNamespaces}
	adapt := func(c *localhub.Options) (err error) {
		c.WithoutKubeControllerManager = true
		c.HubControllerManagerArgs = []string{"--controllers=sets,edge"}
		e.audit, err = newAudit(c, auditPolicy)
		return err
	}
	return e.result, withHub(ctx, o, adapt, func(ctx context.Context, shared *env) error {
		e.env = shared
		return e.measure(ctx)
	})
}

func (e *edging) measure(ctx context.Context) (err error) {
	e.admins, err = newClients(e.hub.HubAPIServerConfig(0), connections)
	if err != nil {
		return err
	}
	e.agents, err = newClients(e.hub.HubAPIServerConfig(0), connections)
	if err != nil {
		return err
	}
	for _, c := range e.agents {
		c.header = asAgent
	}
	if err := e.fillNodes(ctx); err != nil {
		return err
	}
	if err := e.services(ctx); err != nil {
		return err
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	begun, cpu := time.Now(), e.cpuNow()
	if err := sleep(ctx, edgeRest); err != nil {
		return err
	}
	e.idle = e.cpuNow().since(cpu).over(time.Since(begun))
	if err := e.first(ctx); err != nil {
		return err
	}
	after, err := e.memory(ctx)
	if err != nil {
		return err
	}
	e.result.Memory = after[procControllers].RSS
	return e.changes(ctx)
}

// asAgent impersonates the agent of the cluster in the path.
func asAgent(path string) http.Header {
	parts := strings.Split(path, "/")
	name := parts[len(parts)-2]
	return http.Header{
		"Impersonate-User":  {registration.ClusterUser(name, edgeAgent)},
		"Impersonate-Group": {registration.ClusterGroup(name), registration.ManagedClustersGroup, "system:authenticated"},
	}
}

func (e *edging) create(ctx context.Context, n int, path func(int) string, body func(int) map[string]any) error {
	return e.writeEach(ctx, e.admins, n, http.MethodPost, "application/json", path, func(i int) []byte { return mustJSON(body(i)) })
}

// fillNodes creates accepted clusters with their namespaces and nodes, sets of them, and namespaces with bindings.
func (e *edging) fillNodes(ctx context.Context) error {
	sets := e.nodes / setSize
	e.steps.step("Making %d sets and %d clusters with a node each", sets, e.nodes)
	if err := e.apply(ctx, edgeRoles); err != nil {
		return err
	}
	front, err := newClients(e.hub.AdminConfig(), connections)
	if err != nil {
		return err
	}
	if err := e.writeEach(ctx, front, e.nodes, http.MethodPost, "application/json", func(int) string { return namespacesPath }, func(i int) []byte {
		return mustJSON(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": clusterName(i),
			"labels": map[string]any{"open-cluster-management.io/cluster-name": clusterName(i)}}})
	}); err != nil {
		return err
	}
	if err := e.makeNamespaces(ctx, edgeNamespaces+1, func(i int) string {
		if i == edgeNamespaces {
			return edgeServices
		}
		return edgeNamespace(i)
	}); err != nil {
		return err
	}
	if err := e.writeEach(ctx, e.admins, sets, http.MethodPost, "application/json", func(int) string { return ourSets }, setBody); err != nil {
		return err
	}
	if err := e.create(ctx, e.nodes, func(int) string { return ourClusters }, func(i int) map[string]any {
		return map[string]any{"apiVersion": clusterGroup + "/v1", "kind": "ManagedCluster",
			"metadata": map[string]any{"name": clusterName(i), "labels": map[string]any{setLabel: setOf(i)}}, "spec": map[string]any{"hubAcceptsClient": true}}
	}); err != nil {
		return err
	}
	if err := e.create(ctx, e.nodes, func(int) string { return edgePath + "edgenodes" }, func(i int) map[string]any {
		return map[string]any{"apiVersion": edgeKind, "kind": "EdgeNode", "metadata": map[string]any{"name": clusterName(i)}, "spec": nodeSpec(i%edgeSites, 1)}
	}); err != nil {
		return err
	}
	if err := e.writeEach(ctx, e.agents, e.nodes, http.MethodPatch, mergePatch, func(i int) string { return edgePath + "edgenodes/" + clusterName(i) + "/status" },
		func(i int) []byte {
			return mustJSON(map[string]any{"status": map[string]any{"arch": "amd64", "namespace": "team", "namespaceScoped": true, "kubernetesVersion": "v1.37.1",
				"clusterID": clusterName(i)}})
		}); err != nil {
		return err
	}
	bound := min(edgeSets, sets)
	return e.create(ctx, edgeNamespaces*bound, func(i int) string {
		return "/apis/" + clusterGroup + "/v1beta2/namespaces/" + edgeNamespace(i/bound) + "/managedclustersetbindings"
	}, func(i int) map[string]any {
		set := setName((i/bound*2 + i%bound) % sets)
		return map[string]any{"apiVersion": clusterGroup + "/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": map[string]any{"name": set},
			"spec": map[string]any{"clusterSet": set}}
	})
}

func edgeNamespace(i int) string { return fmt.Sprintf("edge-%02d", i%edgeNamespaces) }

func nodeSpec(site, rank int) map[string]any {
	return map[string]any{"properties": []any{
		map[string]any{"name": "site", "value": siteName(site)}, map[string]any{"name": "rank", "value": rank},
		map[string]any{"name": "owner", "value": "bench"},
	}}
}

func siteName(site int) string { return fmt.Sprintf("site-%03d", site%edgeSites) }

func policyName(i int) string { return fmt.Sprintf("policy-%04d", i) }

func policyPath(i int) string {
	return edgePath + "namespaces/" + edgeNamespace(i) + "/deploymentpolicies"
}

func serviceName(i int) string { return fmt.Sprintf("web-%04d", i) }

// policySpec returns the spec of a policy that deploys its service to the nodes of a site.
func policySpec(i, site int) map[string]any {
	return map[string]any{
		"service":     map[string]any{"name": serviceName(i), "org": edgeServices, "serviceVersions": []any{map[string]any{"version": "1.0.0"}}},
		"constraints": []any{"site == " + siteName(site) + " AND rank < 5"},
	}
}

// services creates a service for each policy, with one ConfigMap in its archive.
func (e *edging) services(ctx context.Context) error {
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	files := tar.NewWriter(zip)
	if err := files.WriteHeader(&tar.Header{Name: "web.yaml", Mode: 0o644, Size: int64(len(manifest)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := files.Write([]byte(manifest)); err != nil {
		return err
	}
	if err := files.Close(); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return e.create(ctx, e.options.edgePolicies, func(int) string { return edgePath + "namespaces/" + edgeServices + "/edgeservices" }, func(i int) map[string]any {
		return map[string]any{"apiVersion": edgeKind, "kind": "EdgeService", "metadata": map[string]any{"name": edge.ServiceName(serviceName(i), "1.0.0", "*")},
			"spec": map[string]any{"url": serviceName(i), "version": "1.0.0", "arch": "*", "public": true,
				"clusterDeployment": map[string]any{"operatorYamlArchive": data.Bytes()}}}
	})
}

// edgeSettledTicks is the number of ticks for which hub-controller-manager must be idle.
const edgeSettledTicks = 6

// settled waits until hub-controller-manager is idle.
func (e *edging) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	return e.awaitIdle(ctx, edgeSettledTicks, func() int { return 0 })
}

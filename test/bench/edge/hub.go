// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge measures changes of edge nodes and of the policies that deploy to them: (o).
package edge

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
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

const (
	apiPath    = "/apis/" + edge.GroupName + "/v1alpha1/"
	apiVersion = edge.GroupName + "/v1alpha1"
	// namespaces is the number of namespaces with policies. Each has bindings for boundSets sets.
	namespaces, boundSets = 50, 20
	// sites is the number of values of the property that policies select by. Each value has the same number of nodes.
	sites = 200
	// servicesNamespace is the namespace of the services, one for each policy.
	servicesNamespace = "edge-services"
	// nodesAtOnce is the number of nodes that change at the same time.
	nodesAtOnce = 1000
	// agentName is the name of the agent of each cluster.
	agentName = "bench"
	// restWindow is the time for which the hub is watched at rest.
	restWindow = 10 * time.Second
)

// agentRoles allow agents to write their nodes. hub-controller-manager creates no such roles here.
//
//go:embed roles.yaml
var agentRoles []byte

// env is a hub with edge nodes and policies.
type env struct {
	*kit.Env
	audit *audit.Log
	// admins and agents send requests directly to hub-apiserver. Each agent writes the status of its own node.
	admins, agents []*kit.Client
	result         *Result
	nodes          int
	// idle is the processor time of the processes per second at rest.
	idle kit.CPUTimes
	// engine is the engine of hub-controller-manager, in this process, with all objects of the hub.
	engine *engine.Engine
}

// Measure measures the cost of changes of nodes and policies.
func Measure(ctx context.Context, o kit.Options) (*Result, error) {
	e := &env{nodes: o.SmallFleet()}
	e.result = &Result{Nodes: e.nodes, Policies: o.EdgePolicies, Namespaces: namespaces}
	adapt := func(c *localhub.Options) (err error) {
		c.WithoutKubeControllerManager = true
		c.HubControllerManagerArgs = []string{"--controllers=sets,edge"}
		e.audit, err = audit.New(c, audit.ControllersPolicy)
		return err
	}
	return e.result, kit.WithHub(ctx, o, adapt, func(ctx context.Context, shared *kit.Env) error {
		e.Env = shared
		return e.measure(ctx)
	})
}

func (e *env) measure(ctx context.Context) (err error) {
	e.admins, err = kit.NewClients(e.Hub.HubAPIServerConfig(0), kit.Connections)
	if err != nil {
		return err
	}
	e.agents, err = kit.NewClients(e.Hub.HubAPIServerConfig(0), kit.Connections)
	if err != nil {
		return err
	}
	for _, c := range e.agents {
		c.Header = impersonateAgent
	}
	if err := e.createNodes(ctx); err != nil {
		return err
	}
	if err := e.createServices(ctx); err != nil {
		return err
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	begun, cpu := time.Now(), e.CPUNow()
	if err := kit.Sleep(ctx, restWindow); err != nil {
		return err
	}
	e.idle = e.CPUNow().Since(cpu).PerSecond(time.Since(begun))
	if err := e.createPolicies(ctx); err != nil {
		return err
	}
	after, err := e.ReadMemory(ctx)
	if err != nil {
		return err
	}
	e.result.Memory = after[kit.ProcControllers].RSS
	return e.measureChanges(ctx)
}

// impersonateAgent impersonates the agent of the cluster in the path.
func impersonateAgent(path string) http.Header {
	parts := strings.Split(path, "/")
	name := parts[len(parts)-2]
	return http.Header{
		"Impersonate-User":  {registration.ClusterUser(name, agentName)},
		"Impersonate-Group": {registration.ClusterGroup(name), registration.ManagedClustersGroup, "system:authenticated"},
	}
}

func (e *env) create(ctx context.Context, n int, path func(int) string, body func(int) map[string]any) error {
	return e.WriteEach(ctx, e.admins, n, http.MethodPost, "application/json", path, func(i int) []byte { return kit.MustJSON(body(i)) })
}

// createNodes creates accepted clusters with their namespaces and nodes, sets of them, and namespaces with bindings.
func (e *env) createNodes(ctx context.Context) error {
	sets := e.nodes / kit.SetSize
	e.Steps.Step("Making %d sets and %d clusters with a node each", sets, e.nodes)
	if err := e.Apply(ctx, agentRoles); err != nil {
		return err
	}
	front, err := kit.NewClients(e.Hub.AdminConfig(), kit.Connections)
	if err != nil {
		return err
	}
	if err := e.WriteEach(ctx, front, e.nodes, http.MethodPost, "application/json", func(int) string { return kit.NamespacesPath }, func(i int) []byte {
		return kit.MustJSON(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": kit.ClusterName(i),
			"labels": map[string]any{"open-cluster-management.io/cluster-name": kit.ClusterName(i)}}})
	}); err != nil {
		return err
	}
	if err := e.CreateNamespaces(ctx, namespaces+1, func(i int) string {
		if i == namespaces {
			return servicesNamespace
		}
		return namespaceName(i)
	}); err != nil {
		return err
	}
	if err := e.WriteEach(ctx, e.admins, sets, http.MethodPost, "application/json", func(int) string { return kit.SetsPath }, kit.SetBody); err != nil {
		return err
	}
	if err := e.create(ctx, e.nodes, func(int) string { return kit.ClustersPath }, func(i int) map[string]any {
		return map[string]any{"apiVersion": kit.ClusterGroup + "/v1", "kind": "ManagedCluster",
			"metadata": map[string]any{"name": kit.ClusterName(i), "labels": map[string]any{kit.SetLabel: kit.SetOf(i)}}, "spec": map[string]any{"hubAcceptsClient": true}}
	}); err != nil {
		return err
	}
	if err := e.create(ctx, e.nodes, func(int) string { return apiPath + "edgenodes" }, func(i int) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": "EdgeNode", "metadata": map[string]any{"name": kit.ClusterName(i)}, "spec": nodeSpec(i%sites, 1)}
	}); err != nil {
		return err
	}
	if err := e.WriteEach(ctx, e.agents, e.nodes, http.MethodPatch, kit.MergePatch, func(i int) string { return apiPath + "edgenodes/" + kit.ClusterName(i) + "/status" },
		func(i int) []byte {
			return kit.MustJSON(map[string]any{"status": map[string]any{"arch": "amd64", "namespace": "team", "namespaceScoped": true, "kubernetesVersion": "v1.37.1",
				"clusterID": kit.ClusterName(i)}})
		}); err != nil {
		return err
	}
	bound := min(boundSets, sets)
	return e.create(ctx, namespaces*bound, func(i int) string {
		return "/apis/" + kit.ClusterGroup + "/v1beta2/namespaces/" + namespaceName(i/bound) + "/managedclustersetbindings"
	}, func(i int) map[string]any {
		set := kit.SetName((i/bound*2 + i%bound) % sets)
		return map[string]any{"apiVersion": kit.ClusterGroup + "/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": map[string]any{"name": set},
			"spec": map[string]any{"clusterSet": set}}
	})
}

func namespaceName(i int) string { return fmt.Sprintf("edge-%02d", i%namespaces) }

func nodeSpec(site, rank int) map[string]any {
	return map[string]any{"properties": []any{
		map[string]any{"name": "site", "value": siteName(site)}, map[string]any{"name": "rank", "value": rank},
		map[string]any{"name": "owner", "value": "bench"},
	}}
}

func siteName(site int) string { return fmt.Sprintf("site-%03d", site%sites) }

func policyName(i int) string { return fmt.Sprintf("policy-%04d", i) }

func policyPath(i int) string {
	return apiPath + "namespaces/" + namespaceName(i) + "/deploymentpolicies"
}

func serviceName(i int) string { return fmt.Sprintf("web-%04d", i) }

// policySpec returns the spec of a policy that deploys its service to the nodes of a site.
func policySpec(i, site int) map[string]any {
	return map[string]any{
		"service":     map[string]any{"name": serviceName(i), "org": servicesNamespace, "serviceVersions": []any{map[string]any{"version": "1.0.0"}}},
		"constraints": []any{"site == " + siteName(site) + " AND rank < 5"},
	}
}

// createServices creates a service for each policy, with one ConfigMap in its archive.
func (e *env) createServices(ctx context.Context) error {
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
	return e.create(ctx, e.Options.EdgePolicies, func(int) string { return apiPath + "namespaces/" + servicesNamespace + "/edgeservices" }, func(i int) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": "EdgeService", "metadata": map[string]any{"name": edge.ServiceName(serviceName(i), "1.0.0", "*")},
			"spec": map[string]any{"url": serviceName(i), "version": "1.0.0", "arch": "*", "public": true,
				"clusterDeployment": map[string]any{"operatorYamlArchive": data.Bytes()}}}
	})
}

// settledTicks is the number of ticks for which hub-controller-manager must be idle.
const settledTicks = 6

// settled waits until hub-controller-manager is idle.
func (e *env) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	return e.AwaitIdle(ctx, settledTicks, func() int { return 0 })
}

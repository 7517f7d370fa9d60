// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package works measures works in the store and at an agent: (l) and (m).
package works

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"time"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

const (
	workGroup = "work.open-cluster-management.io"
	worksPath = "/apis/" + workGroup + "/v1/namespaces/"
	peerWorks = "/apis/bench.clusterhub.dev/v1/namespaces/"
	// comparedWorks is the largest number of works that are created and updated in turns with the peer's.
	comparedWorks = 1000
	// workWrites is the number of label writes for the time until their events.
	workWrites = 300
	// workSettleLongest limits the time until memory settles.
	workSettleLongest = 40 * time.Second
)

// peerWorksManifest is the peer: works as custom resources in the same kube-apiserver.
//
//go:embed peer.yaml
var peerWorksManifest []byte

// storeEnv is a hub with works that no agent applies.
type storeEnv struct {
	*kit.Env
	// direct connects to hub-apiserver, and front to kube-apiserver, as agents do.
	direct, front []*kit.Client
	result        *Result
	// written is the number of works on each cluster.
	written int
}

// Measure measures works on a hub without controllers, whose hub-apiserver has a separate etcd process, so that the memory of each is known.
func Measure(ctx context.Context, o kit.Options) (*Result, error) {
	w := &storeEnv{result: &Result{Clusters: o.SmallFleet()}}
	external := func(c *localhub.Options) error {
		c.WithoutKubeControllerManager, c.WithoutHubControllerManager, c.ExternalEtcd = true, true, true
		return nil
	}
	return w.result, kit.WithHub(ctx, o, external, func(ctx context.Context, e *kit.Env) error {
		w.Env = e
		return w.measure(ctx)
	})
}

func (w *storeEnv) measure(ctx context.Context) (err error) {
	w.direct, err = kit.NewClients(w.Hub.HubAPIServerConfig(0), kit.Connections)
	if err != nil {
		return err
	}
	w.front, err = kit.NewClients(w.Hub.AdminConfig(), kit.Connections)
	if err != nil {
		return err
	}
	fleet := w.Options.SmallFleet()
	w.Steps.Step("Making the namespaces of %d clusters", fleet)
	if err := w.CreateNamespaces(ctx, fleet, kit.ClusterName); err != nil {
		return err
	}
	if err := w.Apply(ctx, peerWorksManifest); err != nil {
		return err
	}
	if err := kit.Eventually(ctx, func() error { return w.front[0].Get(ctx, peerWorks+"default/manifestworks", &bytes.Buffer{}) }); err != nil {
		return err
	}
	before, err := w.settled(ctx)
	if err != nil {
		return err
	}
	// Measure two sizes: only linear growth can be extrapolated.
	for _, each := range workStages(w.Options.WorksPerCluster) {
		if err := w.fill(ctx, each); err != nil {
			return err
		}
		after, err := w.settled(ctx)
		if err != nil {
			return err
		}
		w.result.Memory = append(w.result.Memory, memoryResult{Works: fleet * each, Before: before, After: after})
	}
	if err := w.watchAll(ctx); err != nil {
		return err
	}
	return nil
}

// workStages returns the numbers of works per cluster at which memory is measured.
func workStages(all int) []int {
	if part := all / 4; part > 0 {
		return []int{part, all}
	}
	return []int{all}
}

// fill creates works until each cluster has this number.
func (w *storeEnv) fill(ctx context.Context, each int) error {
	fleet, from := w.Options.SmallFleet(), w.written
	w.Steps.Step("Making works: %d on each of %d clusters", each, fleet)
	all := make([]int, 0, fleet*(each-from))
	for i := range fleet * (each - from) {
		all = append(all, from*fleet+i)
	}
	created := &kit.Rates{}
	for len(all) > 0 {
		part := all[:min(len(all), 5000)]
		if err := w.WriteAll(ctx, w.direct, kit.Write{Method: http.MethodPost, ContentType: "application/json", Rates: created,
			Path: func(i int) string { return worksPath + w.cluster(i) + "/manifestworks" },
			Body: func(i int) []byte { return workBody(workGroup+"/v1", workName(i/fleet)) }}, part); err != nil {
			return err
		}
		all = all[len(part):]
		w.Steps.At(fleet*(each-from)-len(all), fleet*(each-from))
	}
	w.written = each
	w.result.Created = append(w.result.Created, created.Result("create, direct", "ours"))
	return nil
}

// cluster returns the cluster of the ith work.
func (w *storeEnv) cluster(i int) string { return kit.ClusterName(i % w.Options.SmallFleet()) }

func workName(i int) string { return fmt.Sprintf("work-%04d", i) }

// settled returns the memory when it has settled, with a shorter time limit.
func (w *storeEnv) settled(ctx context.Context) (kit.Memory, error) {
	return w.SettledWithin(ctx, workSettleLongest)
}

// compareWrites writes works and their status in turns with the peer's, as agents do: through the front, by merge patches.
func (w *storeEnv) compareWrites(ctx context.Context) error {
	number := min(comparedWorks, w.Options.SmallFleet()*w.Options.WorksPerCluster)
	w.Steps.Step("Writing %d works and their status, in turns with the peer's", number)
	all := make([]int, number)
	for i := range all {
		all[i] = i
	}
	kinds := []struct{ name, version, path string }{{kit.Ours.Name, workGroup + "/v1", worksPath}, {kit.Peer.Name, kit.Peer.APIVersion, peerWorks}}
	var creates, statuses []kit.Write
	var created, status [2]*kit.Rates
	for i, k := range kinds {
		created[i], status[i] = &kit.Rates{}, &kit.Rates{}
		creates = append(creates, kit.Write{Method: http.MethodPost, ContentType: "application/json", Rates: created[i],
			Path: func(i int) string { return k.path + w.cluster(i) + "/manifestworks" },
			Body: func(i int) []byte { return workBody(k.version, fmt.Sprintf("compared-%05d", i)) }})
		statuses = append(statuses, kit.Write{Method: http.MethodPatch, ContentType: kit.MergePatch, Rates: status[i],
			Path: func(i int) string {
				return k.path + w.cluster(i) + fmt.Sprintf("/manifestworks/compared-%05d/status", i)
			},
			Body: func(int) []byte { return workStatusBody() }})
	}
	if err := w.WriteInTurns(ctx, w.front, "work", creates, all); err != nil {
		return err
	}
	if err := w.WriteInTurns(ctx, w.front, "work-status", statuses, all); err != nil {
		return err
	}
	for i, k := range kinds {
		w.result.Writes = append(w.result.Writes, created[i].Result("create, through the front", k.name), status[i].Result("status patch, through the front", k.name))
	}
	w.result.StatusFactor = kit.Round(kit.Ratio(status[0].CPUEach(), status[1].CPUEach()), 2)
	w.result.CreateFactor = kit.Round(kit.Ratio(created[0].CPUEach(), created[1].CPUEach()), 2)
	return nil
}

// workBody returns a work as users write it: a Deployment and its configuration, 2 KB of JSON.
func workBody(version, name string) []byte {
	labels := map[string]any{"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop"}
	container := map[string]any{"name": "web", "image": "shop/web:1.4.2",
		"ports":          []any{map[string]any{"name": "http", "containerPort": 8080, "protocol": "TCP"}},
		"env":            []any{map[string]any{"name": "LOG_LEVEL", "value": "info"}, map[string]any{"name": "REGION", "value": "eu-west-1"}},
		"resources":      map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}, "limits": map[string]any{"memory": "256Mi"}},
		"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": "http"}, "periodSeconds": 10},
		"volumeMounts":   []any{map[string]any{"name": "config", "mountPath": "/etc/web"}}}
	return kit.MustJSON(map[string]any{"apiVersion": version, "kind": "ManifestWork",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app.kubernetes.io/part-of": "shop"}},
		"spec": map[string]any{"workload": map[string]any{"manifests": []any{
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "shop", "labels": labels},
				"spec": map[string]any{"replicas": 3, "selector": map[string]any{"matchLabels": labels},
					"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container},
						"volumes": []any{map[string]any{"name": "config", "configMap": map[string]any{"name": name}}}}}}},
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop", "labels": labels},
				"data": map[string]any{"web.yaml": string(bytes.Repeat([]byte("key: a value of the configuration\n"), 20))}},
		}}}})
}

// workStatusBody returns a merge patch with the status that an agent reports for such a work.
func workStatusBody() []byte {
	condition := func(kind, reason, message string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message, "observedGeneration": 1,
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	}
	manifest := func(ordinal int, group, version, kind, resource string) map[string]any {
		return map[string]any{
			"resourceMeta": map[string]any{"ordinal": ordinal, "group": group, "version": version, "kind": kind, "resource": resource,
				"name": "web", "namespace": "shop"},
			"conditions": []any{condition("Applied", "AppliedManifestComplete", "Apply manifest complete"),
				condition("Available", "ResourceAvailable", "Resource is available"),
				condition("StatusFeedbackSynced", "NoStatusFeedbackSynced", "")},
		}
	}
	return kit.MustJSON(map[string]any{"status": map[string]any{
		"conditions": []any{condition("Applied", "AppliedManifestWorkComplete", "Apply manifest work complete"),
			condition("Available", "ResourcesAvailable", "All resources are available")},
		"resourceStatus": map[string]any{"manifests": []any{
			manifest(0, "apps", "v1", "Deployment", "deployments"), manifest(1, "", "v1", "ConfigMap", "configmaps")}},
	}})
}

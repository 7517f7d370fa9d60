// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/artifacts"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/generated/informers/externalversions"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

const (
	agentCluster = "bench"
	// delivered is the namespace of the works' objects.
	delivered = "shop"
	// drifts is the number of objects that are changed and deleted.
	drifts = 20
)

// agentAuditPolicy logs the requests of the agent, on the hub and on its cluster, including the start of watches.
//
//go:embed agent-audit-policy.yaml
var agentAuditPolicy []byte

// delivering is a hub with one cluster that has joined it: real servers, and hub-agent as it is deployed.
type delivering struct {
	*env
	target          *localhub.Instance
	onHub, onTarget *audit
	admins          []*client
	cluster         *client
	result          *workAgentResult
}

// measureWorkAgent measures one agent with many works.
func measureWorkAgent(ctx context.Context, o options) (*workAgentResult, error) {
	d := &delivering{result: &workAgentResult{Works: o.agentWorks, Manifests: o.agentManifests, MaxWatches: o.agentWatches, WritesPerSecond: o.agentWrites}}
	adapt := func(c *localhub.Options) (err error) {
		// By default an agent may write once a second in the long run, and each work needs two writes.
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, fmt.Sprintf("--agent-writes-per-second=%g", o.agentWrites),
			fmt.Sprintf("--agent-writes-burst=%d", max(60, int(o.agentWrites))))
		d.onHub, err = newAudit(c, agentAuditPolicy)
		return err
	}
	return d.result, withHub(ctx, o, adapt, func(ctx context.Context, e *env) error {
		d.env = e
		defer d.stop()
		if err := d.start(ctx); err != nil {
			return err
		}
		return d.measure(ctx)
	})
}

// start starts a cluster that joins the hub by the commands that users type.
func (d *delivering) start(ctx context.Context) error {
	d.steps.step("Starting a cluster with an agent")
	var err error
	d.target, err = startCluster(ctx, d.env, "cluster", func(c *localhub.Options) (err error) {
		d.onTarget, err = newAudit(c, agentAuditPolicy)
		return err
	})
	if err != nil {
		return err
	}
	d.admins, err = newClients(d.hub.AdminConfig(), connections)
	if err != nil {
		return err
	}
	d.cluster, err = newClient(d.target.AdminConfig())
	if err != nil {
		return err
	}
	printed, err := d.plugin(ctx, d.hub, "init", "--wait", "--output=json")
	if err != nil {
		return err
	}
	var way struct {
		Token  string `json:"hub-token"`
		Server string `json:"hub-apiserver"`
		CA     string `json:"ca-data"`
	}
	if err := json.Unmarshal(printed, &way); err != nil {
		return fmt.Errorf("kubectl hub init has printed something else than JSON: %w", err)
	}
	if _, err := d.plugin(ctx, d.target, "join", "--cluster-name", agentCluster, "--hub-token", way.Token, "--hub-apiserver", way.Server,
		"--ca-data", way.CA); err != nil {
		return err
	}
	manifests := [][]byte{fmt.Appendf(nil, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", delivered)}
	for _, name := range []string{"appliedmanifestworks.yaml", "rbac.yaml"} {
		manifest, err := artifacts.Deploy.ReadFile("deploy/agent-works/" + name)
		if err != nil {
			return err
		}
		manifests = append(manifests, manifest)
	}
	if err := applyTo(ctx, d.target, manifests...); err != nil {
		return err
	}
	if err := d.target.StartHubAgent(ctx, "--cluster-name="+agentCluster, "--works", fmt.Sprintf("--max-work-watches=%d", d.options.agentWatches)); err != nil {
		return err
	}
	d.others = d.otherPIDs
	_, err = d.plugin(ctx, d.hub, "accept", "--clusters", agentCluster, "--wait")
	return err
}

// plugin runs kubectl-hub as an admin, and returns its output.
func (d *delivering) plugin(ctx context.Context, of *localhub.Instance, args ...string) ([]byte, error) {
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(d.config.BinDir, "kubectl-hub"),
		append(args, "--kubeconfig", of.AdminKubeconfig(), "--cache-dir", filepath.Join(of.Dir(), "kubectl-cache"))...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl hub %s: %w: %s", args[0], err, bytes.TrimSpace(complaints.Bytes()))
	}
	return out, nil
}

func (d *delivering) stop() {
	d.others = nil
	if d.target != nil {
		d.target.Stop()
	}
}

// Processes of the cluster in the report.
const (
	procAgent      = "hub-agent"
	procTargetEtcd = "the cluster's etcd"
)

func (d *delivering) otherPIDs() map[string]int {
	of := d.target.PIDs()
	return map[string]int{procAgent: of["hub-agent"], procTargetFront: of["kube-apiserver"], procTargetEtcd: of["etcd"]}
}

// Facts of a work.
const (
	factApplied  = workv1.WorkApplied + "=True"
	factWorkable = workv1.WorkAvailable + "=True"
)

// watchApplied watches the works of the cluster until the context ends.
func (d *delivering) watchApplied(ctx context.Context) (*factWatch, error) {
	client, err := versioned.NewForConfig(d.hub.AdminConfig())
	if err != nil {
		return nil, err
	}
	f := newFactWatch()
	see := func(obj any) {
		work := obj.(*workv1.ManifestWork)
		facts := map[string]bool{}
		for _, c := range work.Status.Conditions {
			facts[c.Type+"="+string(c.Status)] = true
		}
		f.see(work.Name, facts)
	}
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(agentCluster))
	if _, err := factory.Work().V1().ManifestWorks().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f, ctx.Err()
}

func (d *delivering) measure(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := d.watchApplied(ctx)
	if err != nil {
		return err
	}
	// It releases the resources that it needed to join.
	if err := d.silence(ctx, 5*time.Second); err != nil {
		return err
	}
	d.result.Before = d.residents()
	if err := d.bring(ctx, watch); err != nil {
		return err
	}
	d.steps.step("Waiting until the agent has opened its watches")
	if err := d.silence(ctx, 5*time.Second); err != nil {
		return err
	}
	d.result.After = d.residents()
	if err := d.rest(ctx); err != nil {
		return err
	}
	if err := d.drift(ctx); err != nil {
		return err
	}
	d.result.Lost = watch.losses()
	return nil
}

// silence waits until the agent sends no requests to its cluster.
func (d *delivering) silence(ctx context.Context, quiet time.Duration) error {
	// Earlier lists and leases do not matter.
	limited, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	_, err := d.onTarget.silence(limited, quiet)
	return err
}

// residents returns the resident memory of the processes, in KiB.
func (d *delivering) residents() map[string]int {
	residents := map[string]int{}
	for name, pid := range d.pids() {
		if kib, err := rss(pid); err == nil {
			residents[name] = kib
		}
	}
	return residents
}

// bring makes the agent apply all works at once.
func (d *delivering) bring(ctx context.Context, watch *factWatch) error {
	number := d.options.agentWorks
	d.steps.step("Making %d works of %d manifests, and waiting until they are applied", number, d.options.agentManifests)
	defer d.cpuProfileOf(ctx, d.target.AdminConfig(), "agent-cluster", 20)()
	begun, cpu := time.Now(), d.cpuNow()
	if err := d.writeEach(ctx, d.admins, number, http.MethodPost, "application/json",
		func(int) string { return worksPath + agentCluster + "/manifestworks" },
		func(i int) []byte { return configMapWork(workName(i), d.options.agentManifests) }); err != nil {
		return err
	}
	err := watch.await(ctx, &d.steps, number, factApplied, factWorkable)
	applied := watch.since(factExists, factApplied)
	d.result.Seconds, d.result.Applied = seconds(time.Since(begun)), len(applied)
	d.result.AppliedMedian, d.result.AppliedP99 = seconds(applied.median()), seconds(applied.p99())
	if err != nil {
		return err
	}
	if err := d.silence(ctx, 3*time.Second); err != nil {
		return err
	}
	d.result.CPU = d.cpuNow().since(cpu).per(number)
	d.result.OnHub, d.result.OnCluster, d.result.Refused, err = d.requests(begun)
	return err
}

// requests returns the agent's requests since a time, to the hub and to its cluster.
func (d *delivering) requests(begun time.Time) (onHub, onCluster, refused map[string]int, err error) {
	all := func(audited) bool { return true }
	hub, err := d.onHub.requests(begun)
	if err != nil {
		return nil, nil, nil, err
	}
	cluster, err := d.onTarget.requests(begun)
	return hub.counts(all), cluster.counts(all), append(hub.only(all), cluster...).refused(), err
}

// rest measures the agent at rest.
func (d *delivering) rest(ctx context.Context) (err error) {
	d.steps.step("Watching for %s what the agent does at rest", d.options.rest)
	begun, cpu := time.Now(), d.cpuNow()
	if err := sleep(ctx, d.options.rest); err != nil {
		return err
	}
	d.result.RestCores = d.cpuNow().since(cpu).cores(time.Since(begun))
	d.result.RestSeconds = seconds(time.Since(begun))
	d.result.RestOnHub, d.result.RestOnCluster, _, err = d.requests(begun)
	return err
}

// drift changes and deletes objects of works, and measures the time until they are restored.
func (d *delivering) drift(ctx context.Context) error {
	d.steps.step("Changing and deleting %d objects", drifts)
	begun := time.Now()
	var took samples
	for n := range drifts {
		i := n * max(1, d.options.agentWorks/drifts) % d.options.agentWorks
		path := "/api/v1/namespaces/" + delivered + "/configmaps/" + configMapName(workName(i), n%d.options.agentManifests)
		method, body := http.MethodPatch, []byte(`{"data":{"key":"changed"}}`)
		if n%2 == 1 {
			method, body = http.MethodDelete, nil
		}
		if err := d.cluster.do(ctx, method, path, mergePatch, body, &bytes.Buffer{}); err != nil {
			return err
		}
		answered := time.Now()
		for repaired := false; !repaired; {
			var answer bytes.Buffer
			var object struct{ Data map[string]string }
			if d.cluster.get(ctx, path, &answer) == nil && json.Unmarshal(answer.Bytes(), &object) == nil {
				repaired = object.Data["key"] == "value"
			}
			if time.Since(answered) > time.Minute || ctx.Err() != nil {
				return fmt.Errorf("%s has not been repaired after a minute", path)
			}
			if err := sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		took = append(took, time.Since(answered))
	}
	d.result.Drifts, d.result.DriftMedian, d.result.DriftLongest = len(took), milliseconds(took.median()), milliseconds(took.quantile(1))
	if err := d.silence(ctx, 3*time.Second); err != nil {
		return err
	}
	var err error
	d.result.DriftOnHub, d.result.DriftOnCluster, _, err = d.requests(begun)
	return err
}

func configMapName(work string, i int) string { return fmt.Sprintf("%s-%d", work, i) }

// configMapWork returns a work of ConfigMaps, which a cluster without nodes can apply.
func configMapWork(name string, manifests int) []byte {
	all := make([]any, manifests)
	for i := range all {
		all[i] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "value"},
			"metadata": map[string]any{"name": configMapName(name, i), "namespace": delivered}}
	}
	return mustJSON(map[string]any{"apiVersion": workGroup + "/v1", "kind": "ManifestWork", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"workload": map[string]any{"manifests": all}}})
}

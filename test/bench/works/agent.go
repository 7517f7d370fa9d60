// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

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
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
	"github.com/clusterhub/clusterhub/test/bench/observed"
)

const (
	agentCluster = "bench"
	// worksNamespace is the namespace of the works' objects.
	worksNamespace = "shop"
	// driftCount is the number of objects that are changed and deleted.
	driftCount = 20
)

// agentAuditPolicy logs the requests of the agent, on the hub and on its cluster, including the start of watches.
//
//go:embed audit-policy.yaml
var agentAuditPolicy []byte

// agentEnv is a hub with one cluster that has joined it: real servers, and hub-agent as it is deployed.
type agentEnv struct {
	*kit.Env
	target          *localhub.Instance
	onHub, onTarget *audit.Log
	admins          []*kit.Client
	cluster         *kit.Client
	result          *AgentResult
}

// MeasureAgent measures one agent with many works.
func MeasureAgent(ctx context.Context, o kit.Options) (*AgentResult, error) {
	d := &agentEnv{result: &AgentResult{Works: o.AgentWorks, Manifests: o.AgentManifests, MaxWatches: o.AgentWatches, WritesPerSecond: o.AgentWrites}}
	adapt := func(c *localhub.Options) (err error) {
		// By default an agent may write once a second in the long run, and each work needs two writes.
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, fmt.Sprintf("--agent-writes-per-second=%g", o.AgentWrites),
			fmt.Sprintf("--agent-writes-burst=%d", max(60, int(o.AgentWrites))))
		d.onHub, err = audit.New(c, agentAuditPolicy)
		return err
	}
	return d.result, kit.WithHub(ctx, o, adapt, func(ctx context.Context, e *kit.Env) error {
		d.Env = e
		defer d.stop()
		if err := d.start(ctx); err != nil {
			return err
		}
		return d.measure(ctx)
	})
}

// start starts a cluster that joins the hub by the commands that users type.
func (d *agentEnv) start(ctx context.Context) error {
	d.Steps.Step("Starting a cluster with an agent")
	var err error
	d.target, err = kit.StartCluster(ctx, d.Env, "cluster", func(c *localhub.Options) (err error) {
		d.onTarget, err = audit.New(c, agentAuditPolicy)
		return err
	})
	if err != nil {
		return err
	}
	d.admins, err = kit.NewClients(d.Hub.AdminConfig(), kit.Connections)
	if err != nil {
		return err
	}
	d.cluster, err = kit.NewClient(d.target.AdminConfig())
	if err != nil {
		return err
	}
	printed, err := d.plugin(ctx, d.Hub, "init", "--wait", "--output=json")
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
	manifests := [][]byte{fmt.Appendf(nil, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", worksNamespace)}
	for _, name := range []string{"appliedmanifestworks.yaml", "rbac.yaml"} {
		manifest, err := artifacts.Deploy.ReadFile("deploy/agent-works/" + name)
		if err != nil {
			return err
		}
		manifests = append(manifests, manifest)
	}
	if err := kit.ApplyTo(ctx, d.target, manifests...); err != nil {
		return err
	}
	if err := d.target.StartHubAgent(ctx, "--cluster-name="+agentCluster, "--works", fmt.Sprintf("--max-work-watches=%d", d.Options.AgentWatches)); err != nil {
		return err
	}
	d.Others = d.otherPIDs
	_, err = d.plugin(ctx, d.Hub, "accept", "--clusters", agentCluster, "--wait")
	return err
}

// plugin runs kubectl-hub as an admin, and returns its output.
func (d *agentEnv) plugin(ctx context.Context, of *localhub.Instance, args ...string) ([]byte, error) {
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(d.Config.BinDir, "kubectl-hub"),
		append(args, "--kubeconfig", of.AdminKubeconfig(), "--cache-dir", filepath.Join(of.Dir(), "kubectl-cache"))...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl hub %s: %w: %s", args[0], err, bytes.TrimSpace(complaints.Bytes()))
	}
	return out, nil
}

func (d *agentEnv) stop() {
	d.Others = nil
	if d.target != nil {
		d.target.Stop()
	}
}

// Processes of the cluster in the report.
const (
	procAgent      = "hub-agent"
	procTargetEtcd = "the cluster's etcd"
)

func (d *agentEnv) otherPIDs() map[string]int {
	of := d.target.PIDs()
	return map[string]int{procAgent: of["hub-agent"], kit.ProcClusterFront: of["kube-apiserver"], procTargetEtcd: of["etcd"]}
}

// Facts of a work.
const (
	factApplied   = workv1.WorkApplied + "=True"
	factAvailable = workv1.WorkAvailable + "=True"
)

// watchWorks watches the works of the cluster until the context ends.
func (d *agentEnv) watchWorks(ctx context.Context) (*observed.Facts, error) {
	client, err := versioned.NewForConfig(d.Hub.AdminConfig())
	if err != nil {
		return nil, err
	}
	f := observed.NewFacts()
	see := func(obj any) {
		work := obj.(*workv1.ManifestWork)
		facts := map[string]bool{}
		for _, c := range work.Status.Conditions {
			facts[c.Type+"="+string(c.Status)] = true
		}
		f.Observe(work.Name, facts)
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

func (d *agentEnv) measure(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := d.watchWorks(ctx)
	if err != nil {
		return err
	}
	// It releases the resources that it needed to join.
	if err := d.silence(ctx, 5*time.Second); err != nil {
		return err
	}
	d.result.Before = d.residentMemory()
	if err := d.createWorks(ctx, watch); err != nil {
		return err
	}
	d.Steps.Step("Waiting until the agent has opened its watches")
	if err := d.silence(ctx, 5*time.Second); err != nil {
		return err
	}
	d.result.After = d.residentMemory()
	if err := d.measureRest(ctx); err != nil {
		return err
	}
	if err := d.measureDrift(ctx); err != nil {
		return err
	}
	d.result.Lost = watch.TakeLost()
	return nil
}

// silence waits until the agent sends no requests to its cluster.
func (d *agentEnv) silence(ctx context.Context, quiet time.Duration) error {
	// Earlier lists and leases do not matter.
	limited, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	_, err := d.onTarget.AwaitSilence(limited, quiet)
	return err
}

// residentMemory returns the resident memory of the processes, in KiB.
func (d *agentEnv) residentMemory() map[string]int {
	residents := map[string]int{}
	for name, pid := range d.PIDs() {
		if kib, err := kit.RSS(pid); err == nil {
			residents[name] = kib
		}
	}
	return residents
}

// createWorks creates all works at once, and waits until the agent has applied them.
func (d *agentEnv) createWorks(ctx context.Context, watch *observed.Facts) error {
	number := d.Options.AgentWorks
	d.Steps.Step("Making %d works of %d manifests, and waiting until they are applied", number, d.Options.AgentManifests)
	defer d.CPUProfileOf(ctx, d.target.AdminConfig(), "agent-cluster", 20)()
	begun, cpu := time.Now(), d.CPUNow()
	if err := d.WriteEach(ctx, d.admins, number, http.MethodPost, "application/json",
		func(int) string { return worksPath + agentCluster + "/manifestworks" },
		func(i int) []byte { return configMapWork(workName(i), d.Options.AgentManifests) }); err != nil {
		return err
	}
	err := watch.Await(ctx, &d.Steps, number, factApplied, factAvailable)
	applied := watch.Since(observed.Exists, factApplied)
	d.result.Seconds, d.result.Applied = kit.Seconds(time.Since(begun)), len(applied)
	d.result.AppliedMedian, d.result.AppliedP99 = kit.Seconds(applied.Median()), kit.Seconds(applied.P99())
	if err != nil {
		return err
	}
	if err := d.silence(ctx, 3*time.Second); err != nil {
		return err
	}
	d.result.CPU = d.CPUNow().Since(cpu).Per(number)
	d.result.OnHub, d.result.OnCluster, d.result.Refused, err = d.requests(begun)
	return err
}

// requests returns the agent's requests since a time, to the hub and to its cluster.
func (d *agentEnv) requests(begun time.Time) (onHub, onCluster, refused map[string]int, err error) {
	all := func(audit.Request) bool { return true }
	hub, err := d.onHub.Since(begun)
	if err != nil {
		return nil, nil, nil, err
	}
	cluster, err := d.onTarget.Since(begun)
	return hub.Counts(all), cluster.Counts(all), append(hub.Filter(all), cluster...).Refused(), err
}

// measureRest measures the agent at rest.
func (d *agentEnv) measureRest(ctx context.Context) (err error) {
	d.Steps.Step("Watching for %s what the agent does at rest", d.Options.Rest)
	begun, cpu := time.Now(), d.CPUNow()
	if err := kit.Sleep(ctx, d.Options.Rest); err != nil {
		return err
	}
	d.result.RestCores = d.CPUNow().Since(cpu).Cores(time.Since(begun))
	d.result.RestSeconds = kit.Seconds(time.Since(begun))
	d.result.RestOnHub, d.result.RestOnCluster, _, err = d.requests(begun)
	return err
}

// measureDrift changes and deletes objects of works, and measures the time until they are restored.
func (d *agentEnv) measureDrift(ctx context.Context) error {
	d.Steps.Step("Changing and deleting %d objects", driftCount)
	begun := time.Now()
	var took kit.Samples
	for n := range driftCount {
		i := n * max(1, d.Options.AgentWorks/driftCount) % d.Options.AgentWorks
		path := "/api/v1/namespaces/" + worksNamespace + "/configmaps/" + configMapName(workName(i), n%d.Options.AgentManifests)
		method, body := http.MethodPatch, []byte(`{"data":{"key":"changed"}}`)
		if n%2 == 1 {
			method, body = http.MethodDelete, nil
		}
		if err := d.cluster.Do(ctx, method, path, kit.MergePatch, body, &bytes.Buffer{}); err != nil {
			return err
		}
		answered := time.Now()
		for repaired := false; !repaired; {
			var answer bytes.Buffer
			var object struct{ Data map[string]string }
			if d.cluster.Get(ctx, path, &answer) == nil && json.Unmarshal(answer.Bytes(), &object) == nil {
				repaired = object.Data["key"] == "value"
			}
			if time.Since(answered) > time.Minute || ctx.Err() != nil {
				return fmt.Errorf("%s has not been repaired after a minute", path)
			}
			if err := kit.Sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		took = append(took, time.Since(answered))
	}
	d.result.Drifts, d.result.DriftMedian, d.result.DriftLongest = len(took), kit.Milliseconds(took.Median()), kit.Milliseconds(took.Quantile(1))
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
			"metadata": map[string]any{"name": configMapName(name, i), "namespace": worksNamespace}}
	}
	return kit.MustJSON(map[string]any{"apiVersion": workGroup + "/v1", "kind": "ManifestWork", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"workload": map[string]any{"manifests": all}}})
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
	"github.com/clusterhub/clusterhub/test/bench/observed"
)

const (
	klusterletsPath                     = "/apis/operator.open-cluster-management.io/v1/klusterlets"
	operatorNamespace, procHubOperator  = "clusterhub-operator", "hub-operator"
	managementPrefix, procManagedPrefix = "management: ", "managed: "
)

// bootstrapKubeconfig is for a hub that no agent connects to.
const bootstrapKubeconfig = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: hub, user: agent}}], " +
	"clusters: [{name: hub, cluster: {server: 'https://hub.invalid'}}], users: [{name: agent, user: {token: bootstrap}}]}"

//go:embed audit-policy.yaml
var auditPolicy []byte

// env is a management cluster with hub-operator as it is deployed, and managed clusters for which it creates agents. There are no nodes, so no
// agent runs.
type env struct {
	*kit.Env
	operator     kit.Child
	managed      []*managedCluster
	onManagement *audit.Log
	admins       []*kit.Client
	created      int
	watch        *observed.Facts
	result       *Result
}

// managedCluster is the managed cluster of several Klusterlets.
type managedCluster struct {
	*localhub.Instance
	audit  *audit.Log
	source []byte
}

// Measure measures many detached Klusterlets on one management cluster.
func Measure(ctx context.Context, o kit.Options) (*Result, error) {
	i := &env{result: &Result{Klusterlets: o.Klusterlets, ManagedClusters: o.ManagedClusters}}
	adapt := func(c *localhub.Options) (err error) {
		c.Plain, c.HubAPIServerArgs = true, nil
		i.onManagement, err = audit.New(c, auditPolicy)
		return err
	}
	return i.result, kit.WithHub(ctx, o, adapt, func(ctx context.Context, e *kit.Env) error {
		i.Env = e
		defer i.stop()
		if err := i.start(ctx); err != nil {
			return err
		}
		return i.measure(ctx)
	})
}

// start starts the managed clusters and hub-operator.
func (i *env) start(ctx context.Context) error {
	for n := range i.Options.ManagedClusters {
		i.Steps.Step("Starting managed cluster %d of %d", n+1, i.Options.ManagedClusters)
		if err := i.startManaged(ctx, n); err != nil {
			return err
		}
	}
	i.Steps.Step("Starting hub-operator")
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		return err
	}
	var manifests [][]byte
	var args []string
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			args, err = containerArgs(object)
		} else {
			var manifest []byte
			manifest, err = object.MarshalJSON()
			manifests = append(manifests, manifest)
		}
		if err != nil {
			return err
		}
	}
	if err := i.Apply(ctx, manifests...); err != nil {
		return err
	}
	i.admins, err = kit.NewClients(i.Hub.AdminConfig(), kit.Connections)
	if err != nil {
		return err
	}
	if err := kit.Eventually(ctx, func() error {
		_, err := i.admins[0].List(ctx, klusterletsPath)
		return err
	}); err != nil {
		return err
	}
	cluster, token, err := kit.Account(ctx, i.Hub.AdminConfig(), operatorNamespace, procHubOperator)
	if err != nil {
		return err
	}
	file := filepath.Join(i.Config.Dir, procHubOperator+".kubeconfig")
	if err := clientcmd.WriteToFile(*kit.Kubeconfig(cluster, &clientcmdapi.AuthInfo{Token: token}), file); err != nil {
		return err
	}
	// On a machine that runs all clusters, and is busy with them, a Lease of 15 seconds would be lost.
	args = append(args, "--kubeconfig="+file, "--health-probe-bind-address=0", "--metrics-bind-address=0",
		"--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=100s")
	if err := i.operator.StartProcess(exec.Command(filepath.Join(i.Config.BinDir, procHubOperator), args...),
		filepath.Join(i.Config.Dir, "logs", procHubOperator+".log")); err != nil {
		return err
	}
	i.Others = i.otherPIDs
	return i.awaitLeader(ctx)
}

// checkRunning returns an error if hub-operator has ended. It ends if it loses its Lease.
func (i *env) checkRunning() error {
	if i.operator.Exited() {
		return fmt.Errorf("hub-operator has ended; its log is in %s (--keep)", filepath.Join(i.Config.Dir, "logs"))
	}
	return nil
}

// awaitLeader waits until hub-operator has the Lease.
func (i *env) awaitLeader(ctx context.Context) error {
	return kit.Eventually(ctx, func() error {
		if err := i.checkRunning(); err != nil {
			return err
		}
		var answer bytes.Buffer
		if err := i.admins[0].Get(ctx, "/apis/coordination.k8s.io/v1/namespaces/"+operatorNamespace+"/leases/"+procHubOperator, &answer); err != nil {
			return err
		}
		var lease coordinationv1.Lease
		if err := json.Unmarshal(answer.Bytes(), &lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return errors.New("no hub-operator leads")
		}
		return nil
	})
}

// containerArgs returns the arguments of the only container of a Deployment.
func containerArgs(deployment *unstructured.Unstructured) ([]string, error) {
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		return nil, fmt.Errorf("the Deployment %s has %d containers and not one: %w", deployment.GetName(), len(containers), err)
	}
	args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	return args, err
}

func (i *env) startManaged(ctx context.Context, n int) error {
	m := &managedCluster{}
	var err error
	m.Instance, err = kit.StartCluster(ctx, i.Env, fmt.Sprintf("managed-%d", n), func(c *localhub.Options) (err error) {
		m.audit, err = audit.New(c, auditPolicy)
		return err
	})
	if err != nil {
		return err
	}
	i.managed = append(i.managed, m)
	cluster, token, err := kit.ClusterAdmin(ctx, m.Instance)
	if err != nil {
		return err
	}
	m.source, err = clientcmd.Write(*kit.Kubeconfig(cluster, &clientcmdapi.AuthInfo{Token: token}))
	if err != nil || i.Options.TokenLife == 0 {
		return err
	}
	return kit.ApplyTo(ctx, m.Instance, shortTokens(i.Options.TokenLife)...)
}

// shortTokens returns manifests that make a cluster grant the tokens of Klusterlets for a short time. The kube-apiserver's flag for that,
// --service-account-max-token-expiration, must be at least an hour.
func shortTokens(life time.Duration) [][]byte {
	const group, name = "admissionregistration.k8s.io/v1", "short-tokens"
	return [][]byte{
		kit.MustJSON(map[string]any{"apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"failurePolicy": "Fail", "reinvocationPolicy": "Never",
				"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{"apiGroups": []string{""}, "apiVersions": []string{"v1"},
					"operations": []string{"CREATE"}, "resources": []string{"serviceaccounts/token"}}}},
				"matchConditions": []any{map[string]any{"name": "of-klusterlets",
					"expression": fmt.Sprintf("request.namespace.endsWith(%q)", namespaceSuffix())}},
				"mutations": []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": fmt.Sprintf(
					`[JSONPatch{op: "replace", path: "/spec/expirationSeconds", value: %d}]`, int(life.Seconds()))}}},
			}}),
		kit.MustJSON(map[string]any{"apiVersion": group, "kind": "MutatingAdmissionPolicyBinding", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"policyName": name}}),
	}
}

func (i *env) stop() {
	i.Others = nil
	i.operator.Stop()
	for _, m := range i.managed {
		m.Stop()
	}
}

// otherPIDs returns the process IDs of hub-operator and of the managed clusters.
func (i *env) otherPIDs() map[string]int {
	pids := map[string]int{}
	if pid := i.operator.PID(); pid != 0 {
		pids[procHubOperator] = pid
	}
	for n, m := range i.managed {
		for name, pid := range m.PIDs() {
			pids[fmt.Sprintf("%s%s %d", procManagedPrefix, name, n)] = pid
		}
	}
	return pids
}

// bySide adds up the times of the processes of all managed clusters.
func bySide(cpu kit.CPUTimes) kit.CPUTimes {
	sides := kit.CPUTimes{}
	for name, used := range cpu {
		switch process, ok := strings.CutPrefix(name, procManagedPrefix); {
		case ok:
			process, _, _ = strings.Cut(process, " ")
			sides[procManagedPrefix+process] += used
		case name == procHubOperator:
			sides[name] += used
		default:
			sides[managementPrefix+name] += used
		}
	}
	return sides
}

func klusterletName(n int) string { return fmt.Sprintf("k%04d", n) }

func agentNamespace(n int) string {
	k := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: klusterletName(n)}}
	k.Spec.DeployOption.Mode = operatorv1.InstallModeDetached
	return k.AgentNamespace()
}

// namespaceSuffix returns the suffix of all namespaces of agents.
func namespaceSuffix() string { return strings.TrimPrefix(agentNamespace(0), klusterletName(0)) }

func klusterletBody(n int) []byte {
	return kit.MustJSON(map[string]any{"apiVersion": operatorv1.SchemeGroupVersion.String(), "kind": "Klusterlet",
		"metadata": map[string]any{"name": klusterletName(n)},
		"spec": map[string]any{"clusterName": klusterletName(n),
			"deployOption": map[string]any{"mode": operatorv1.InstallModeDetached}}})
}

// secretBody returns one of the two Secrets that the user creates for a Klusterlet.
func secretBody(name string, kubeconfig []byte) []byte {
	return kit.MustJSON(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
		"data": map[string][]byte{"kubeconfig": kubeconfig}})
}

// create creates Klusterlets as a user does: their Secrets can be created when hub-operator has created their namespaces.
func (i *env) create(ctx context.Context, count int) error {
	from := i.created
	i.created += count
	if err := i.WriteEach(ctx, i.admins, count, http.MethodPost, "application/json",
		func(int) string { return klusterletsPath }, func(n int) []byte { return klusterletBody(from + n) }); err != nil {
		return err
	}
	if err := kit.Eventually(ctx, func() error {
		namespaces, err := i.admins[0].List(ctx, kit.NamespacesPath)
		if err != nil {
			return err
		}
		found := 0
		for _, item := range namespaces.Items {
			if strings.HasSuffix(item.Metadata.Name, namespaceSuffix()) {
				found++
			}
		}
		if found < i.created {
			return fmt.Errorf("%d of %d Klusterlets have a namespace", found, i.created)
		}
		return nil
	}); err != nil {
		return err
	}
	secrets := func(n int) string { return kit.NamespacesPath + "/" + agentNamespace(from+n) + "/secrets" }
	if err := i.WriteEach(ctx, i.admins, count, http.MethodPost, "application/json", secrets,
		func(int) []byte { return secretBody(operatorv1.BootstrapHubKubeconfig, []byte(bootstrapKubeconfig)) }); err != nil {
		return err
	}
	return i.WriteEach(ctx, i.admins, count, http.MethodPost, "application/json", secrets, func(n int) []byte {
		return secretBody(operatorv1.ExternalManagedKubeconfig, i.managed[(from+n)%len(i.managed)].source)
	})
}

// Facts of a Klusterlet.
const (
	factReadyToApply      = operatorv1.ConditionReadyToApply + "=True"
	factKlusterletApplied = operatorv1.ConditionKlusterletApplied + "=True"
)

// klusterletFacts returns the facts that are waited for. Agents never become available, because there are no nodes.
func klusterletFacts(object *unstructured.Unstructured) map[string]bool {
	facts := map[string]bool{}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		c, _ := condition.(map[string]any)
		if fact := fmt.Sprintf("%v=%v", c["type"], c["status"]); slices.Contains([]string{factReadyToApply, factKlusterletApplied}, fact) {
			facts[fact] = true
		}
	}
	return facts
}

// watchKlusterlets watches all Klusterlets until the context ends.
func (i *env) watchKlusterlets(ctx context.Context) error {
	client, err := dynamic.NewForConfig(i.Hub.AdminConfig())
	if err != nil {
		return err
	}
	i.watch = observed.NewFacts()
	see := func(obj any) {
		k := obj.(*unstructured.Unstructured)
		i.watch.Observe(k.GetName(), klusterletFacts(k))
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	if _, err := factory.ForResource(operatorv1.SchemeGroupVersion.WithResource("klusterlets")).Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return ctx.Err()
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access measures access to clusters, and short-lived tokens: (h) and (i).
package access

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/generated/informers/externalversions"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
	"github.com/clusterhub/clusterhub/test/bench/observed"
)

var (
	//go:embed roles.yaml
	accessManifest []byte
	// auditPolicy also logs the provider, on the hub and in the cluster.
	//
	//go:embed audit-policy.yaml
	auditPolicy []byte
)

const (
	providerNamespace, teams = "openmcp-system", "teams"
	providerAccount          = "cluster-provider-kubeconfig"
	providerUser             = "system:serviceaccount:" + providerNamespace + ":" + providerAccount

	openmcp        = "/apis/clusters.openmcp.cloud/v1alpha1"
	profilesPath   = openmcp + "/clusterprofiles"
	clustersPath   = openmcp + "/namespaces/" + teams + "/clusters"
	requestsPath   = openmcp + "/namespaces/" + teams + "/accessrequests"
	secretsPath    = "/api/v1/namespaces/" + teams + "/secrets"
	profilePrefix  = providerEnvironment + "." + providerName + "."
	managedByLabel = providerEnvironment + "." + providerName + ".clusters.openmcp.cloud/managed-by-name"
)

// env is a hub with access to a cluster by the provider kubeconfig.
type env struct {
	*kit.Env
	target   *localhub.Instance
	provider *provider
	// onHub and onTarget are the audit logs of the hub and of the cluster.
	onHub, onTarget *audit.Log
	admins          []*kit.Client
	// clusterAdmin is the cluster of the provider's kubeconfig.
	clusterAdmin *clientcmdapi.Cluster
	clusterToken string
}

// withAccess calls measure with a hub, a cluster and the provider.
func withAccess(ctx context.Context, o kit.Options, measure func(context.Context, *env) error) error {
	a := &env{}
	adapt := func(c *localhub.Options) (err error) {
		c.HubControllerManagerArgs = []string{"--registration-drivers="}
		a.onHub, err = audit.New(c, auditPolicy)
		return err
	}
	return kit.WithHub(ctx, o, adapt, func(ctx context.Context, e *kit.Env) error {
		a.Env = e
		defer a.stop()
		if err := a.start(ctx); err != nil {
			return err
		}
		return measure(ctx, a)
	})
}

// start starts a cluster and the provider.
func (a *env) start(ctx context.Context) error {
	a.Steps.Step("Starting a cluster and the provider")
	var err error
	a.target, err = kit.StartCluster(ctx, a.Env, "cluster", func(c *localhub.Options) (err error) {
		a.onTarget, err = audit.New(c, auditPolicy)
		return err
	})
	if err != nil {
		return err
	}
	a.clusterAdmin, a.clusterToken, err = kit.ClusterAdmin(ctx, a.target)
	if err != nil {
		return err
	}
	deployed, err := deployedProvider()
	if err != nil {
		return err
	}
	if err := a.Apply(ctx, append(deployed, accessManifest)...); err != nil {
		return err
	}
	cluster, token, err := kit.Account(ctx, a.Hub.AdminConfig(), providerNamespace, providerAccount)
	if err != nil {
		return err
	}
	file := filepath.Join(a.Config.Dir, procProvider+".kubeconfig")
	if err := clientcmd.WriteToFile(*kit.Kubeconfig(cluster, &clientcmdapi.AuthInfo{Token: token}), file); err != nil {
		return err
	}
	a.admins, err = kit.NewClients(a.Hub.AdminConfig(), kit.Connections)
	if err != nil {
		return err
	}
	a.provider, err = newProvider(filepath.Join(a.Config.BinDir, procProvider), a.Config.Dir, file)
	if err != nil {
		return err
	}
	a.Others = a.otherPIDs
	return a.provider.start(ctx)
}

// deployedProvider returns the manifests of the provider. Nothing runs its pods here.
func deployedProvider() (manifests [][]byte, err error) {
	objects, err := deploy.ClusterProvider{}.Objects()
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		manifest, err := object.MarshalJSON()
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, manifest)
	}
	return manifests, nil
}

func (a *env) stop() {
	a.Others = nil
	if a.provider != nil {
		a.provider.Stop()
	}
	if a.target != nil {
		a.target.Stop()
	}
}

// otherPIDs returns the process IDs of processes that are not part of the hub.
func (a *env) otherPIDs() map[string]int {
	pids := map[string]int{kit.ProcClusterFront: a.target.PIDs()["kube-apiserver"]}
	if pid := a.provider.PID(); pid != 0 {
		pids[procProvider] = pid
	}
	return pids
}

// createClusters creates a number of Clusters, and waits until they are ready. All of them are the same kube-apiserver, which has no effect: each has a
// configuration and a profile of its own, and the provider has separate connections to each.
func (a *env) createClusters(ctx context.Context, clusters []string) error {
	for _, name := range clusters {
		cluster := a.clusterAdmin.DeepCopy()
		// client-go shares connections among equal configurations.
		cluster.CertificateAuthorityData = append([]byte("# "+name+"\n"), cluster.CertificateAuthorityData...)
		data, err := clientcmd.Write(*kit.Kubeconfig(cluster, &clientcmdapi.AuthInfo{Token: a.clusterToken}))
		if err != nil {
			return err
		}
		body := kit.MustJSON(map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "clusters.clusterhub.dev/kubeconfig",
			"metadata": map[string]any{"name": name, "labels": map[string]string{v1alpha1.ProviderLabel: providerName},
				"annotations": map[string]string{"clusters.clusterhub.dev/namespaces": "*"}},
			"data": map[string][]byte{v1alpha1.SecretKeyKubeconfig: data}})
		path := "/api/v1/namespaces/" + providerNamespace + "/secrets"
		if err := a.admins[0].Do(ctx, http.MethodPost, path, "application/json", body, &bytes.Buffer{}); err != nil {
			return err
		}
	}
	for _, name := range clusters {
		body := kit.MustJSON(map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Cluster",
			"metadata": map[string]any{"name": name},
			"spec": map[string]any{"profile": profilePrefix + name, "tenancy": "Shared", "purposes": []string{"bench"},
				"kubernetes": map[string]any{}}})
		// It is rejected until the provider has created its profile.
		if err := kit.Eventually(ctx, func() error {
			return a.admins[0].Do(ctx, http.MethodPost, clustersPath, "application/json", body, &bytes.Buffer{})
		}); err != nil {
			return err
		}
	}
	return kit.Eventually(ctx, func() error {
		ready, err := a.readyClusters(ctx)
		if err == nil && ready < len(clusters) {
			err = fmt.Errorf("%d of %d Clusters are ready", ready, len(clusters))
		}
		return err
	})
}

func (a *env) readyClusters(ctx context.Context) (n int, err error) {
	var answer bytes.Buffer
	if err := a.admins[0].Get(ctx, clustersPath, &answer); err != nil {
		return 0, err
	}
	clusters := &v1alpha1.ClusterList{}
	if err := json.Unmarshal(answer.Bytes(), clusters); err != nil {
		return 0, err
	}
	for _, cluster := range clusters.Items {
		if cluster.Status.Phase == v1alpha1.StatusPhaseReady {
			n++
		}
	}
	return n, nil
}

// deleteClusters deletes the Clusters.
func (a *env) deleteClusters(ctx context.Context, clusters []string) error {
	for _, name := range clusters {
		if err := a.admins[0].Do(ctx, http.MethodDelete, clustersPath+"/"+name, "", nil, &bytes.Buffer{}); err != nil {
			return err
		}
	}
	return nil
}

// Facts of an AccessRequest.
const (
	factPrepared = v1alpha1.ConditionPrepared + "=True"
	factGranted  = "AccessReady=True"
	factDeleting = "deleting"
	factGone     = "gone"
)

// watchRequests watches the AccessRequests with a prefix of their names, until the context ends.
func (a *env) watchRequests(ctx context.Context, prefix string) (*observed.Facts, error) {
	client, err := versioned.NewForConfig(a.Hub.AdminConfig())
	if err != nil {
		return nil, err
	}
	f := observed.NewFacts()
	see := func(obj any) {
		request := obj.(*v1alpha1.AccessRequest)
		if !strings.HasPrefix(request.Name, prefix) {
			return
		}
		facts := map[string]bool{}
		for _, c := range request.Status.Conditions {
			facts[c.Type+"="+string(c.Status)] = true
		}
		if !request.Status.IsGranted() {
			delete(facts, factGranted)
		}
		if request.DeletionTimestamp != nil {
			facts[factDeleting] = true
		}
		f.Observe(request.Name, facts)
	}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	informer := factory.OpenMCP().V1alpha1().AccessRequests().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				f.Add(name.Name, factGone)
			}
		},
	}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f, ctx.Err()
}

// requestBody returns a request for the permissions of the documentation's example: a Role, and a ClusterRole that the cluster has.
func requestBody(name, cluster string) []byte {
	return kit.MustJSON(map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "AccessRequest",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"clusterRef": map[string]any{"name": cluster, "namespace": teams},
			"token": map[string]any{
				"permissions": []any{map[string]any{"namespace": "web", "rules": []any{map[string]any{
					"apiGroups": []string{"apps"}, "resources": []string{"deployments"}, "verbs": []string{"get", "list", "watch", "patch"}}}}},
				"roleRefs": []any{map[string]any{"kind": "ClusterRole", "name": "view"}},
			},
		}})
}

// writeAsAdmin sends a request for each number below n as the hub's admin.
func (a *env) writeAsAdmin(ctx context.Context, n int, method, contentType string, path func(i int) string, body func(i int) []byte) error {
	return a.WriteEach(ctx, a.admins, n, method, contentType, path, body)
}

// cpuProfiles starts CPU profiles of all API servers that are measured, if profiles are enabled.
func (a *env) cpuProfiles(ctx context.Context, name string, length time.Duration) func() {
	seconds := int(length.Seconds())
	waits := []func(){
		a.CPUProfileOf(ctx, a.Hub.HubAPIServerConfig(0), name, seconds),
		a.CPUProfileOf(ctx, a.Hub.AdminConfig(), name+"-front", seconds),
		a.CPUProfileOf(ctx, a.target.AdminConfig(), name+"-cluster", seconds),
	}
	return func() {
		for _, wait := range waits {
			wait()
		}
	}
}

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
)

var (
	//go:embed access.yaml
	accessManifest []byte
	// accessAuditPolicy also logs the provider, on the hub and in the cluster.
	//
	//go:embed access-audit-policy.yaml
	accessAuditPolicy []byte
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

// accessing is a hub with access to a cluster by the provider kubeconfig.
type accessing struct {
	*env
	target   *localhub.Instance
	provider *provider
	// onHub and onTarget are the audit logs of the hub and of the cluster.
	onHub, onTarget *audit
	admins          []*client
	// clusterAdmin is the cluster of the provider's kubeconfig.
	clusterAdmin *clientcmdapi.Cluster
	clusterToken string
}

// withAccess calls measure with such a hub.
func withAccess(ctx context.Context, o options, measure func(context.Context, *accessing) error) error {
	a := &accessing{}
	adapt := func(c *localhub.Options) (err error) {
		c.HubControllerManagerArgs = []string{"--registration-drivers="}
		a.onHub, err = newAudit(c, accessAuditPolicy)
		return err
	}
	return withHub(ctx, o, adapt, func(ctx context.Context, e *env) error {
		a.env = e
		defer a.stop()
		if err := a.start(ctx); err != nil {
			return err
		}
		return measure(ctx, a)
	})
}

// start starts a cluster, and the provider that admits it.
func (a *accessing) start(ctx context.Context) error {
	a.steps.step("Starting a cluster and the provider")
	var err error
	a.target, err = startCluster(ctx, a.env, "cluster", func(c *localhub.Options) (err error) {
		a.onTarget, err = newAudit(c, accessAuditPolicy)
		return err
	})
	if err != nil {
		return err
	}
	a.clusterAdmin, a.clusterToken, err = clusterAdmin(ctx, a.target)
	if err != nil {
		return err
	}
	deployed, err := deployedProvider()
	if err != nil {
		return err
	}
	if err := a.apply(ctx, append(deployed, accessManifest)...); err != nil {
		return err
	}
	cluster, token, err := account(ctx, a.hub.AdminConfig(), providerNamespace, providerAccount)
	if err != nil {
		return err
	}
	file := filepath.Join(a.config.Dir, procProvider+".kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig(cluster, &clientcmdapi.AuthInfo{Token: token}), file); err != nil {
		return err
	}
	a.admins, err = newClients(a.hub.AdminConfig(), connections)
	if err != nil {
		return err
	}
	a.provider, err = newProvider(filepath.Join(a.config.BinDir, procProvider), a.config.Dir, file)
	if err != nil {
		return err
	}
	a.others = a.otherPIDs
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

func (a *accessing) stop() {
	a.others = nil
	if a.provider != nil {
		a.provider.stop()
	}
	if a.target != nil {
		a.target.Stop()
	}
}

// otherPIDs returns the process IDs of processes that are not part of the hub.
func (a *accessing) otherPIDs() map[string]int {
	pids := map[string]int{procTargetFront: a.target.PIDs()["kube-apiserver"]}
	if pid := a.provider.pid(); pid != 0 {
		pids[procProvider] = pid
	}
	return pids
}

// admit creates a number of Clusters, and waits until they are ready. All of them are the same kube-apiserver, which has no effect: each has a
// configuration and a profile of its own, and the provider has separate connections to each.
func (a *accessing) admit(ctx context.Context, clusters []string) error {
	for _, name := range clusters {
		cluster := a.clusterAdmin.DeepCopy()
		// client-go shares connections among equal configurations.
		cluster.CertificateAuthorityData = append([]byte("# "+name+"\n"), cluster.CertificateAuthorityData...)
		data, err := clientcmd.Write(*kubeconfig(cluster, &clientcmdapi.AuthInfo{Token: a.clusterToken}))
		if err != nil {
			return err
		}
		body := mustJSON(map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "clusters.clusterhub.dev/kubeconfig",
			"metadata": map[string]any{"name": name, "labels": map[string]string{v1alpha1.ProviderLabel: providerName},
				"annotations": map[string]string{"clusters.clusterhub.dev/namespaces": "*"}},
			"data": map[string][]byte{v1alpha1.SecretKeyKubeconfig: data}})
		path := "/api/v1/namespaces/" + providerNamespace + "/secrets"
		if err := a.admins[0].do(ctx, http.MethodPost, path, "application/json", body, &bytes.Buffer{}); err != nil {
			return err
		}
	}
	for _, name := range clusters {
		body := mustJSON(map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Cluster",
			"metadata": map[string]any{"name": name},
			"spec": map[string]any{"profile": profilePrefix + name, "tenancy": "Shared", "purposes": []string{"bench"},
				"kubernetes": map[string]any{}}})
		// It is rejected until the provider has created its profile.
		if err := eventually(ctx, func() error {
			return a.admins[0].do(ctx, http.MethodPost, clustersPath, "application/json", body, &bytes.Buffer{})
		}); err != nil {
			return err
		}
	}
	return eventually(ctx, func() error {
		ready, err := a.ready(ctx)
		if err == nil && ready < len(clusters) {
			err = fmt.Errorf("%d of %d Clusters are ready", ready, len(clusters))
		}
		return err
	})
}

func (a *accessing) ready(ctx context.Context) (n int, err error) {
	var answer bytes.Buffer
	if err := a.admins[0].get(ctx, clustersPath, &answer); err != nil {
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

// dismiss deletes the Clusters.
func (a *accessing) dismiss(ctx context.Context, clusters []string) error {
	for _, name := range clusters {
		if err := a.admins[0].do(ctx, http.MethodDelete, clustersPath+"/"+name, "", nil, &bytes.Buffer{}); err != nil {
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
func (a *accessing) watchRequests(ctx context.Context, prefix string) (*factWatch, error) {
	client, err := versioned.NewForConfig(a.hub.AdminConfig())
	if err != nil {
		return nil, err
	}
	f := newFactWatch()
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
		f.see(request.Name, facts)
	}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	informer := factory.OpenMCP().V1alpha1().AccessRequests().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				f.add(name.Name, factGone)
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
	return mustJSON(map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "AccessRequest",
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

// each sends a request for each number below n as the hub's admin.
func (a *accessing) each(ctx context.Context, n int, method, contentType string, path func(i int) string, body func(i int) []byte) error {
	return a.writeEach(ctx, a.admins, n, method, contentType, path, body)
}

// cpuProfiles starts CPU profiles of all API servers that are measured, if profiles are enabled.
func (a *accessing) cpuProfiles(ctx context.Context, name string, length time.Duration) func() {
	seconds := int(length.Seconds())
	waits := []func(){
		a.cpuProfileOf(ctx, a.hub.HubAPIServerConfig(0), name, seconds),
		a.cpuProfileOf(ctx, a.hub.AdminConfig(), name+"-front", seconds),
		a.cpuProfileOf(ctx, a.target.AdminConfig(), name+"-cluster", seconds),
	}
	return func() {
		for _, wait := range waits {
			wait()
		}
	}
}

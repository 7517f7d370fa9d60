// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
	"github.com/clusterhub/clusterhub/test/bench/observed"
)

const (
	// restWindow is the time for which the provider is watched at rest. It checks each cluster once in that time.
	restWindow = 30 * time.Second
	// usedKubeconfigs is the number of kubeconfigs that are used.
	usedKubeconfigs = 10
)

// grantRun is a number of AccessRequests that are created at the same time, and their results.
type grantRun struct {
	requests, clusters int
	// took is the time until the last is granted. prepared, granted and gone are the times of each from its creation or deletion.
	took, deletion          time.Duration
	prepared, granted, gone kit.Samples
	lost                    []string
	left                    int
	grant, delete           *traffic
	rest, restart           *traffic
	// restarting is the time from the start of the provider until it has synced all requests.
	restarting time.Duration
	// empty, full and restarted are the provider's resident memory in KiB.
	empty, full, restarted int
	renewing               *renewalRun
}

// traffic has the requests within a time.
type traffic struct {
	took time.Duration
	// controllers and provider are their requests to the hub, and cluster those of the provider to the cluster.
	controllers, provider, cluster audit.Requests
	cpu                            kit.CPUTimes
}

// MeasureGrants measures requests for one cluster, and the same number for many.
func MeasureGrants(ctx context.Context, o kit.Options) (results Grants, err error) {
	err = withAccess(ctx, o, func(ctx context.Context, a *env) error {
		for _, clusters := range []int{1, o.AccessClusters} {
			g := &grantRun{requests: o.AccessRequests, clusters: clusters}
			err := a.measureGrants(ctx, g)
			results = append(results, g.result())
			if err != nil {
				return fmt.Errorf("%d clusters: %w", clusters, err)
			}
		}
		return nil
	})
	return results, err
}

func (a *env) measureGrants(ctx context.Context, g *grantRun) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clusters := make([]string, g.clusters)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("of-%d-%04d", g.clusters, i)
	}
	a.Steps.Step("Making %d Clusters", g.clusters)
	if err := a.createClusters(ctx, clusters); err != nil {
		return err
	}
	// What it has done before does not count.
	a.provider.Stop()
	if err := a.provider.start(ctx); err != nil {
		return err
	}
	prefix := fmt.Sprintf("on-%d-", g.clusters)
	name := func(i int) string { return fmt.Sprintf("%s%06d", prefix, i) }
	watch, err := a.watchRequests(ctx, prefix)
	if err != nil {
		return err
	}
	if err := a.grantAll(ctx, g, watch, name, clusters); err != nil {
		return err
	}
	users, err := a.useKubeconfigs(ctx, g, name)
	if err != nil {
		return err
	}
	if err := a.measureRest(ctx, g); err != nil {
		return err
	}
	if g.clusters == 1 {
		if err := a.measureRenewals(ctx, g); err != nil {
			return err
		}
	}
	g.lost = watch.TakeLost()
	if err := a.deleteAll(ctx, g, watch, name); err != nil {
		return err
	}
	if err := checkRevoked(ctx, users); err != nil {
		return err
	}
	return a.deleteClusters(ctx, clusters)
}

func (a *env) grantAll(ctx context.Context, g *grantRun, watch *observed.Facts, name func(int) string, clusters []string) error {
	if err := kit.Sleep(ctx, 5*time.Second); err != nil { // the provider checks its clusters
		return err
	}
	g.empty = a.provider.RSS()
	a.Steps.Step("Making %d AccessRequests for %d clusters, and waiting until all are granted", g.requests, g.clusters)
	defer a.cpuProfiles(ctx, fmt.Sprintf("grant-%d", g.clusters), 15*time.Second)()
	begun, cpu := time.Now(), a.CPUNow()
	if err := a.writeAsAdmin(ctx, g.requests, http.MethodPost, "application/json", func(int) string { return requestsPath },
		func(i int) []byte { return requestBody(name(i), clusters[i%len(clusters)]) }); err != nil {
		return err
	}
	err := watch.Await(ctx, &a.Steps, g.requests, factPrepared, factGranted)
	g.took, g.prepared, g.granted = time.Since(begun), watch.Since(observed.Exists, factPrepared), watch.Since(observed.Exists, factGranted)
	if err != nil {
		return err
	}
	g.grant, err = a.trafficSince(ctx, begun, cpu)
	g.full = a.provider.RSS()
	return err
}

// trafficSince waits until the provider is idle, and returns the requests since a time.
func (a *env) trafficSince(ctx context.Context, begun time.Time, cpu kit.CPUTimes) (*traffic, error) {
	if err := a.provider.awaitWork(ctx, 0); err != nil {
		return nil, err
	}
	t := &traffic{took: time.Since(begun), cpu: a.CPUNow().Since(cpu)}
	hub, err := a.onHub.Since(begun)
	if err != nil {
		return nil, err
	}
	t.provider = hub.Filter(func(one audit.Request) bool { return one.User.Username == providerUser })
	t.controllers = hub.Filter(func(one audit.Request) bool { return one.User.Username != providerUser })
	t.cluster, err = a.onTarget.Since(begun)
	return t, err
}

// measureRest measures the requests at rest, and then when the provider restarts.
func (a *env) measureRest(ctx context.Context, g *grantRun) error {
	a.Steps.Step("Watching for %s what is done at rest", restWindow)
	if err := kit.Sleep(ctx, 10*time.Second); err != nil {
		return err
	}
	begun, cpu := time.Now(), a.CPUNow()
	if err := kit.Sleep(ctx, restWindow); err != nil {
		return err
	}
	var err error
	g.rest, err = a.trafficSince(ctx, begun, cpu)
	if err != nil {
		return err
	}
	a.Steps.Step("Restarting the provider")
	a.provider.Stop()
	begun, cpu = time.Now(), a.CPUNow()
	if err := a.provider.start(ctx); err != nil {
		return err
	}
	if err := a.provider.awaitWork(ctx, g.requests); err != nil {
		return err
	}
	g.restarting = time.Since(begun)
	if err := kit.Sleep(ctx, 3*time.Second); err != nil {
		return err
	}
	g.restart, err = a.trafficSince(ctx, begun, cpu)
	g.restarted = a.provider.RSS()
	return err
}

// deleteAll deletes all requests, and waits until they are gone.
func (a *env) deleteAll(ctx context.Context, g *grantRun, watch *observed.Facts, name func(int) string) error {
	a.Steps.Step("Deleting %d AccessRequests, and waiting until all are gone", g.requests)
	defer a.cpuProfiles(ctx, fmt.Sprintf("delete-%d", g.clusters), 15*time.Second)()
	begun, cpu := time.Now(), a.CPUNow()
	if err := a.writeAsAdmin(ctx, g.requests, http.MethodDelete, "", func(i int) string { return requestsPath + "/" + name(i) },
		func(int) []byte { return nil }); err != nil {
		return err
	}
	err := watch.Await(ctx, &a.Steps, g.requests, factGone)
	g.deletion, g.gone = time.Since(begun), watch.Since(factDeleting, factGone)
	if err != nil {
		return err
	}
	g.delete, err = a.trafficSince(ctx, begun, cpu)
	if err != nil {
		return err
	}
	g.left, err = a.leftovers(ctx)
	return err
}

// leftovers counts the objects that remain of requests, on the hub and in the cluster.
func (a *env) leftovers(ctx context.Context) (n int, err error) {
	target, err := kit.NewClient(a.target.AdminConfig())
	if err != nil {
		return 0, err
	}
	count := func(c *kit.Client, path string) {
		if err == nil {
			var found *kit.List
			found, err = c.List(ctx, path)
			if err == nil {
				n += len(found.Items)
			}
		}
	}
	for _, path := range []string{"/api/v1/serviceaccounts", rbacPath + "roles", rbacPath + "rolebindings", rbacPath + "clusterroles",
		rbacPath + "clusterrolebindings"} {
		count(target, path+"?labelSelector="+managedByLabel)
	}
	count(a.admins[0], secretsPath+"?labelSelector="+v1alpha1.ManagedByLabel+"="+providerName)
	count(a.admins[0], "/api/v1/namespaces/"+v1alpha1.TokenSourceNamespace+"/secrets")
	return n, err
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

// deployments is a path that the requests give permission for.
const deployments = "/apis/apps/v1/namespaces/web/deployments?limit=1"

// secret returns the Secret with the credentials of a request.
func (a *env) secret(ctx context.Context, request string) (*corev1.Secret, error) {
	var answer bytes.Buffer
	if err := a.admins[0].Get(ctx, requestsPath+"/"+request, &answer); err != nil {
		return nil, err
	}
	found := &v1alpha1.AccessRequest{}
	if err := json.Unmarshal(answer.Bytes(), found); err != nil {
		return nil, err
	}
	if found.Status.SecretRef == nil {
		return nil, fmt.Errorf("the AccessRequest %s has no status.secretRef", request)
	}
	if err := a.admins[0].Get(ctx, secretsPath+"/"+found.Status.SecretRef.Name, &answer); err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	return secret, json.Unmarshal(answer.Bytes(), secret)
}

// useKubeconfigs uses some of the kubeconfigs, to verify that what is measured works.
func (a *env) useKubeconfigs(ctx context.Context, g *grantRun, name func(int) string) (users []*rest.Config, err error) {
	for i := 0; i < g.requests; i += max(1, g.requests/usedKubeconfigs) {
		secret, err := a.secret(ctx, name(i))
		if err != nil {
			return nil, err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[v1alpha1.SecretKeyKubeconfig])
		if err != nil {
			return nil, err
		}
		user, err := kit.NewClient(config)
		if err != nil {
			return nil, err
		}
		if err := user.Get(ctx, deployments, &bytes.Buffer{}); err != nil {
			return nil, fmt.Errorf("the kubeconfig of %s does not work: %w", name(i), err)
		}
		users = append(users, config)
	}
	return users, nil
}

// checkRevoked returns an error if a user's access has not been revoked.
func checkRevoked(ctx context.Context, users []*rest.Config) error {
	for _, config := range users {
		user, err := kit.NewClient(config)
		if err != nil {
			return err
		}
		// The cluster caches tokens for some seconds.
		if err := kit.Eventually(ctx, func() error {
			err := user.Get(ctx, deployments, &bytes.Buffer{})
			switch {
			case err == nil:
				return errors.New("a kubeconfig works though its AccessRequest is gone")
			case strings.Contains(err.Error(), "401 Unauthorized"):
				return nil
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

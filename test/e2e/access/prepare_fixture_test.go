// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// preparation is a hub with a hub-controller-manager that the test can kill, and a namespace of requests.
type preparation struct {
	*testing.T
	client.Client
	hub  *localhub.Instance
	kill func()
	// said is the output of hub-controller-manager since its last start.
	said *harness.Buffer
}

const holder = "example.com/holder"

func newPreparation(t *testing.T) *preparation {
	t.Helper()
	h := harness.LendHub(t)
	p := &preparation{T: t, hub: h, Client: harness.Must(client.New(h.AdminConfig(), client.Options{Scheme: scheme.Scheme}))(t)}
	for _, name := range []string{"teams", "clusters"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		harness.Must(harness.Kube(t, h.AdminConfig()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}))(t)
	}
	return p
}

// start runs hub-controller-manager with the rights of its manifests.
func (p *preparation) start(args ...string) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), harness.Binary(p.T, "hub-controller-manager"), append([]string{
		"--kubeconfig=" + filepath.Join(p.hub.Dir(), "hub-controller-manager.kubeconfig"), "--registration-drivers=",
		"--leader-elect=false", "--leader-elect-resource-name=", // without a Lease to write, it can be idle
		"--health-probe-bind-address=0", "--metrics-bind-address=0",
	}, args...)...)
	out, ended := &harness.Buffer{}, make(chan struct{})
	p.said = out
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	p.kill = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	p.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if strings.Contains(out.String(), "forbidden") || p.Failed() {
			p.Errorf("hub-controller-manager says:\n%s", out.String())
		}
	})
}

func (p *preparation) create(objects ...client.Object) {
	p.Helper()
	for _, object := range objects {
		if err := p.Create(p.Context(), object); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *preparation) patch(object client.Object, patch string) {
	p.Helper()
	if err := p.Patch(p.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		p.Fatal(err)
	}
}

func (p *preparation) patchStatus(object client.Object, format string, args ...any) {
	p.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":`+format+`}`, args...))
	if err := p.Status().Patch(p.Context(), object, patch); err != nil {
		p.Fatal(err)
	}
}

// await polls an object until ok returns true, and returns how long that took.
func (p *preparation) await(what string, object client.Object, ok func() bool) time.Duration {
	p.Helper()
	start := time.Now()
	defer func() {
		if p.Failed() {
			data, _ := json.Marshal(object)
			p.Logf("it is %s", data)
		}
	}()
	harness.Eventually(p.T, what, func(ctx context.Context) (bool, error) {
		err := p.Get(ctx, client.ObjectKeyFromObject(object), object)
		return err == nil && ok(), err
	})
	return time.Since(start)
}

// outlives waits until every request that was created before with this ttl has expired: it waits until a request that is created now, and lives
// longer, has ended.
func (p *preparation) outlives(ttl time.Duration, labels map[string]string) {
	p.Helper()
	later := accessRequest("teams")
	later.Labels, later.Spec.TTL = labels, &duration.Duration{Duration: ttl + time.Second}
	p.create(later)
	p.awaitGone(later)
}

func (p *preparation) awaitGone(object client.Object) {
	p.Helper()
	harness.Eventually(p.T, object.GetName()+" is gone", func(ctx context.Context) (bool, error) {
		err := p.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func isPrepared(a *v1alpha1.AccessRequest) bool {
	return a.Labels[v1alpha1.ProviderLabel] == "kind" && a.Labels[v1alpha1.ProfileLabel] != "" && a.Spec.ClusterRef != nil &&
		a.Status.Phase == "Pending" && a.Status.ObservedGeneration == a.Generation &&
		meta.IsStatusConditionTrue(a.Status.Conditions, "Prepared")
}

// awaitPrepared waits for the status that a provider waits for.
func (p *preparation) awaitPrepared(a *v1alpha1.AccessRequest) time.Duration {
	p.Helper()
	return p.await(a.Name+" is prepared", a, func() bool { return isPrepared(a) })
}

// awaitProblem waits for the condition that a user sees.
func (p *preparation) awaitProblem(a *v1alpha1.AccessRequest, reason, message string) {
	p.Helper()
	p.await(a.Name+": "+message, a, func() bool {
		c := meta.FindStatusCondition(a.Status.Conditions, "Prepared")
		return c != nil && c.Status == "False" && c.Reason == reason && strings.Contains(c.Message, message) && a.Status.Phase == "Pending"
	})
}

func (p *preparation) profile() *v1alpha1.ClusterProfile {
	p.Helper()
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: harness.Unique("profile")}, Spec: v1alpha1.ClusterProfileSpec{
		ProviderRef: v1alpha1.LocalObjectReference{Name: "kind"}, ProviderConfigRef: v1alpha1.LocalObjectReference{Name: "small"},
		SupportedVersions: []v1alpha1.SupportedK8sVersion{},
	}}
	p.create(profile)
	return profile
}

// cluster creates a Cluster with the finalizer of a provider, as every provider sets it.
func (p *preparation) cluster() *v1alpha1.Cluster {
	p.Helper()
	c := harness.OpenMCPCluster("clusters", p.profile().Name)
	c.Finalizers = []string{holder}
	p.create(c)
	return c
}

func toCluster(a *v1alpha1.AccessRequest, c *v1alpha1.Cluster) *v1alpha1.AccessRequest {
	a.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}
	return a
}

func toRequest(a *v1alpha1.AccessRequest, r *v1alpha1.ClusterRequest) *v1alpha1.AccessRequest {
	a.Spec.RequestRef = &v1alpha1.ObjectReference{Namespace: r.Namespace, Name: r.Name}
	return a
}

func (p *preparation) grant(r *v1alpha1.ClusterRequest, c *v1alpha1.Cluster) {
	p.Helper()
	p.patchStatus(r, `{"phase":"Granted","observedGeneration":1,"cluster":{"namespace":%q,"name":%q}}`, c.Namespace, c.Name)
}

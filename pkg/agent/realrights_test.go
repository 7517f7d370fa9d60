// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/labels"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/await"
)

// The part that registers has two users on real clusters: one has the declared rights on the managed cluster, and the other those on the management
// cluster. Only a real server shows how RBAC treats names, and objects that do not exist yet.
func TestRegistration_OnRealClustersWithOwnRights(t *testing.T) {
	home, own := worktest.Namespace(t), worktest.Namespace(t)
	as := func(user string) *rest.Config {
		config := worktest.Config(t)
		config.Impersonate.UserName = user
		return config
	}
	w := newWorld(t)
	j := w.joiner()
	var err error
	j.Spoke, err = spoke.New(as("own-"+own), own)
	if err != nil {
		t.Fatal(err)
	}
	j.Home, err = spoke.NewManagement(as("home-"+home), home)
	if err != nil {
		t.Fatal(err)
	}
	j.Store = &state.Store{Client: j.Home.Client, Namespace: home}
	a, err := newAgent(j, hub.NewView(60), csr.New(), status.NewFacts(j.Spoke, status.Claims{Most: 20}),
		labels.New(labels.Options{Detect: true, Own: j.Spoke, Tell: j.Home.Report}))
	if err != nil {
		t.Fatal(err)
	}
	w.Grant(a.rights())
	kube := kubernetes.NewForConfigOrDie(worktest.Config(t))
	for _, one := range []struct {
		user, namespace string
		rules           rights.Rules
	}{{"own-" + own, own, a.rights().Own}, {"home-" + home, home, a.rights().Management}} {
		to := rbacv1.Subject{Kind: "User", Name: one.user, APIGroup: rbacv1.GroupName}
		bind(t, kube, one.namespace, one.rules.Namespace, to)
		bind(t, kube, "", one.rules.Cluster, to)
	}
	stop := start(t, a)
	worktest.Eventually(t, "a certificate is asked for", func() bool { return len(w.CSRs()) == 1 })
	w.Accept()
	worktest.Eventually(t, "the cluster has joined, and its status is known", func() bool {
		return w.Condition(registration.ConditionJoined).Status == metav1.ConditionTrue && w.Cluster().Status.Version.Kubernetes != ""
	})
	team := "team-" + own
	w.Ask("set/" + team)
	a.view.Changed()
	worktest.Eventually(t, "the namespace is there", func() bool {
		_, err := kube.CoreV1().Namespaces().Get(t.Context(), team, metav1.GetOptions{})
		return err == nil
	})
	a.Home.Report(t.Context(), corev1.EventTypeNormal, "Reason", "text")
	stop()

	onHome, err := kube.CoreV1().Secrets(home).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(onHome.Items) != 1 || onHome.Items[0].Name != registration.HubKubeconfigSecret || len(onHome.Items[0].Data[registration.KeyTLSCert]) == 0 {
		t.Errorf("the management cluster has %d secrets: %v", len(onHome.Items), err)
	}
	events, err := kube.CoreV1().Events(home).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) == 0 {
		t.Errorf("the management cluster has %d events: %v", len(events.Items), err)
	}
	onOwn, err := kube.CoreV1().Secrets(own).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(onOwn.Items) > 0 {
		t.Errorf("the managed cluster has %d secrets: %v", len(onOwn.Items), err)
	}
	if lease := w.Lease(); lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > await.Limit {
		t.Error("the lease was not renewed")
	}
}

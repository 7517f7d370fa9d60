// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

// as returns the configuration of a user.
func as(t *testing.T, name string) *rest.Config {
	config := worktest.Config(t)
	config.Impersonate.UserName = name
	return config
}

// TestTask has the rights that it declares on the hub and on its cluster, and otherwise only the rights to the objects of its works.
func TestTask(t *testing.T) {
	runTask(t, Rights, func(*Options, string) {})
}

// TestTask_InNamespace has a Role in its namespace, and no rights outside of it.
func TestTask_InNamespace(t *testing.T) {
	runTask(t, NamespaceRights, func(o *Options, namespace string) { o.Namespace = namespace })
}

func runTask(t *testing.T, stated rights.Rights, set func(o *Options, namespace string)) {
	ctx, cluster, namespace := t.Context(), worktest.Namespace(t), worktest.Namespace(t)
	onHub, onCluster := "hub-"+cluster, "own-"+cluster
	rbac := kubernetes.NewForConfigOrDie(worktest.Config(t)).RbacV1()
	to := func(user string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	}
	if len(stated.Own.Cluster) > 0 {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: onCluster}, Rules: stated.Own.Cluster}
		if _, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: onCluster},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: onCluster}, Subjects: to(onCluster)}
		if _, err := rbac.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The objects of works here are ServiceAccounts.
	objects := rights.Rule("", "serviceaccounts", "get", "list", "watch", "create", "update", "patch", "delete")
	for _, one := range []struct {
		where, who string
		rules      []rbacv1.PolicyRule
	}{{cluster, onHub, stated.Hub.Namespace}, {namespace, onCluster, append(slices.Clone(stated.Own.Namespace), objects)}} {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: one.who}, Rules: one.rules}
		if _, err := rbac.Roles(one.where).Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: one.who},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: one.who}, Subjects: to(one.who)}
		if _, err := rbac.RoleBindings(one.where).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	h, err := hub.New(as(t, onHub))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := hub.Kubeconfig(agenttest.BootstrapKubeconfig(), cluster, clientcmdapi.NewAuthInfo())
	if err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	o.AgentID, o.Grace = cluster, time.Hour
	set(&o, namespace)
	own := New(o, &spoke.Cluster{Config: as(t, onCluster), Namespace: "agent"})
	running, stop := context.WithCancel(klog.NewContext(context.Background(), klog.New(nil)))
	ended := make(chan error, 1)
	go func() {
		ended <- own.Run(running, task.Session{Hub: h, State: state.State{ClusterName: cluster, Kubeconfig: kubeconfig}, Random: func() float64 { return 0.5 }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the task has ended: %v", err)
		}
	})

	admin, err := hub.New(worktest.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	works := admin.Works.ManifestWorks(cluster)
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "a-" + cluster}}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"sa","namespace":"` + namespace + `"}}`)}}}
	work, err = works.Create(ctx, work, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "the work is applied", func() bool {
		have, err := works.Get(ctx, work.Name, metav1.GetOptions{})
		return err == nil && meta.IsStatusConditionTrue(have.Status.Conditions, workv1.WorkApplied) &&
			meta.IsStatusConditionTrue(have.Status.Conditions, workv1.WorkAvailable)
	})
	if err := works.Delete(ctx, work.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "the work is gone", func() bool {
		_, err := works.Get(ctx, work.Name, metav1.GetOptions{})
		return apply.IsGone(err)
	})
}

// TestRights_AreLimitedToNamespace: the task has the rights that follow from its flags.
func TestRights_AreLimitedToNamespace(t *testing.T) {
	o := NewOptions()
	if got := New(o, &spoke.Cluster{}).Rights; len(got.Own.Cluster) == 0 {
		t.Error("works of the whole cluster need no ClusterRole")
	}
	o.Namespace = "n"
	if got := New(o, &spoke.Cluster{}).Rights; len(got.Own.Cluster) > 0 || len(got.Own.Namespace) == 0 || len(got.Hub.Namespace) == 0 {
		t.Errorf("they are %+v", got)
	}
}

// TestOptions_UpgradeFlag: the flag is the name of a repository, needs works, and adds the right to one Deployment.
func TestOptions_UpgradeFlag(t *testing.T) {
	o := NewOptions()
	o.Enabled, o.AgentID = true, registration.KlusterletAgentPrefix+"k1"
	if got := o.own(&spoke.Cluster{Namespace: "n"}); got.Repository != "" || got.Klusterlet != "k1" {
		t.Errorf("by default the agent has %+v", got)
	}
	if got := o.rights().Own.Namespace; len(got) != 0 {
		t.Errorf("by default it has the rights %v", got)
	}
	o.UpgradeRepository = "images.example.com:5000/hub-agent"
	if errs := o.Validate(); len(errs) > 0 || o.own(&spoke.Cluster{}).Repository != o.UpgradeRepository || len(o.rights().Own.Namespace) != 1 {
		t.Errorf("with a repository: %v", errs)
	}
	for _, wrong := range []string{"hub-agent:v1", "a b", "hub-agent@sha256:1"} {
		o.UpgradeRepository = wrong
		if len(o.Validate()) != 1 {
			t.Errorf("%q: %v", wrong, o.Validate())
		}
	}
	o.UpgradeRepository, o.Enabled = "hub-agent", false
	if len(o.Validate()) != 1 {
		t.Errorf("without works: %v", o.Validate())
	}
}

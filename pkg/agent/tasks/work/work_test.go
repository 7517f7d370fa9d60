// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"os"
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
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

// as is the way of a user.
func as(t *testing.T, name string) *rest.Config {
	config := worktest.Config(t)
	config.Impersonate.UserName = name
	return config
}

// TestTask has the rights that it states on the hub and on its cluster, and beside those only admin in the namespace of the objects.
func TestTask(t *testing.T) {
	ctx, cluster, namespace := t.Context(), worktest.Namespace(t), worktest.Namespace(t)
	onHub, onCluster := "hub-"+cluster, "own-"+cluster
	rbac := kubernetes.NewForConfigOrDie(worktest.Config(t)).RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: onCluster}, Rules: Rights.Own.Cluster}
	if _, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: onCluster},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: onCluster},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: onCluster}}}
	if _, err := rbac.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.Roles(cluster).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: onHub}, Rules: Rights.Hub.Namespace}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for where, ref := range map[string]rbacv1.RoleBinding{
		cluster: {RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: onHub},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: onHub}}},
		namespace: {RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: onCluster}}},
	} {
		ref.Name = "agent"
		if _, err := rbac.RoleBindings(where).Create(ctx, &ref, metav1.CreateOptions{}); err != nil {
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
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"` + namespace + `"}}`)}}}
	if work, err = works.Create(ctx, work, metav1.CreateOptions{}); err != nil {
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

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/install"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

const (
	managerAccountPath = "/api/v1/namespaces/clusterhub-system/serviceaccounts/hub-controller-manager"
	creatorRole        = "arn:aws:iam::123456789012:role/hub_managed-cluster-identity-creator"
)

// TestInit_ConfiguresTheRunningHub verifies that init configures the running hub for AWS IAM, and does not change it if another program manages it.
func TestInit_ConfiguresTheRunningHub(t *testing.T) {
	made := []string{"--leader-elect-namespace=a", "--controllers=sets", "--registration-drivers=awsirsa", "--hub-cluster-arn=" + clitest.HubARN}
	labelled := func(label, value string) func(*appsv1.Deployment, *corev1.ServiceAccount) {
		return func(d *appsv1.Deployment, _ *corev1.ServiceAccount) { d.Labels = map[string]string{label: value} }
	}
	for name, test := range map[string]struct {
		args   []string
		flags  []string
		change func(*appsv1.Deployment, *corev1.ServiceAccount)
		refuse string
		// want are the flags afterwards; nil means that they do not change. role is the role of the ServiceAccount afterwards.
		want []string
		role string
		says string
	}{
		"a hub that was told nothing": {want: made, role: creatorRole, says: "hub-controller-manager now runs with --registration-drivers=awsirsa --hub-cluster-arn=" + clitest.HubARN},
		"with --print":                {args: []string{"--print"}, says: "(with --print the hub is not changed)"},
		"flags in two arguments":      {flags: []string{"--registration-drivers", "csr", "--v=2"}, want: append(append(slices.Clone(made[:2]), "--v=2", "--registration-drivers=awsirsa,csr"), made[3]), role: creatorRole},
		"with a path":                 {args: []string{"--hub-role-path=/a/"}, want: append(slices.Clone(made), "--hub-role-path=/a/"), role: creatorRole},
		"of another ARN":              {flags: []string{"--registration-drivers=awsirsa", "--hub-cluster-arn=" + clitest.ManagedARN}, says: "is not changed: it runs with --hub-cluster-arn=" + clitest.ManagedARN},
		"of a ClusterManager":         {change: labelled(operatorv1.LabelClusterManager, "hub"), says: "is not changed: it belongs to the ClusterManager hub"},
		"of Helm":                     {change: labelled(deploy.LabelManagedBy, "Helm"), says: "is not changed: it is deployed by Helm"},
		"flags of the command": {change: func(d *appsv1.Deployment, _ *corev1.ServiceAccount) {
			d.Spec.Template.Spec.Containers[1].Command = []string{"run", "--registration-drivers=csr"}
		}, says: "is not changed: its command has the flags"},
		"a role that others gave": {change: func(_ *appsv1.Deployment, a *corev1.ServiceAccount) {
			a.Annotations = map[string]string{install.RoleAnnotation: "another"}
		},
			want: made, role: "another", says: "already has the role another, which is not changed"},
		"an account that others have": {change: func(d *appsv1.Deployment, a *corev1.ServiceAccount) {
			d.Spec.Template.Spec.ServiceAccountName, a.Name = "shared", "shared"
		}, want: made, says: "runs with the ServiceAccount shared, which others may use, too"},
		"without the right to change accounts":    {refuse: "PUT " + managerAccountPath, says: "Warning: hub-controller-manager is not changed: "},
		"without the right to change Deployments": {refuse: "PUT " + clitest.ManagerPath, role: creatorRole, says: "Warning: hub-controller-manager is not changed: "},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := clitest.NewPrepared(t)
			deployment, account := clitest.RunsWith(test.flags...), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ManagerNamespace, Name: deploy.Manager}}
			if test.change != nil {
				test.change(deployment, account)
			}
			s.Put(deployment)
			s.Put(account)
			if test.refuse != "" {
				s.Refuse(test.refuse, clitest.Forbidden("it", "update"))
			}
			_, stderr, err := clitest.Run(t, config, append([]string{"init", "--hub-apiserver=https://hub.example.com", "--registration-auth=awsirsa", "--hub-cluster-arn=" + clitest.HubARN}, test.args...)...)
			if err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			clitest.Says(t, stderr, test.says, "kind: Kustomization\n")
			if test.want == nil {
				test.want = deployment.Spec.Template.Spec.Containers[1].Args
				if strings.Contains(stderr, " now runs with ") {
					t.Errorf("it says %s", stderr)
				}
			}
			now := clitest.Object[appsv1.Deployment](t, s, clitest.ManagerPath).Spec.Template.Spec.Containers
			if !slices.Equal(now[1].Args, test.want) || !slices.Equal(now[0].Args, []string{"--registration-drivers=x"}) {
				t.Errorf("it runs with %q, want %q", now[1].Args, test.want)
			}
			have := clitest.Object[corev1.ServiceAccount](t, s, strings.Replace(managerAccountPath, deploy.Manager, account.Name, 1))
			if got := have.Annotations[install.RoleAnnotation]; got != test.role {
				t.Errorf("the account has the role %q, want %q", got, test.role)
			}
		})
	}
}

// TestInit_ReportsHubOperatorConditions: if a ClusterManager should make the hub, init prints why there is no hub yet.
func TestInit_ReportsHubOperatorConditions(t *testing.T) {
	const why = "bind the ClusterRole cluster-admin to its ServiceAccount (kubectl create clusterrolebinding hub-operator-admin)"
	lacking := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	lacking.Status.Conditions = []metav1.Condition{{Type: operatorv1.ConditionClusterManagerApplied, Status: metav1.ConditionFalse, Message: why}}
	detached := lacking.DeepCopy()
	detached.Name, detached.Spec.DeployOption.Mode = "elsewhere", operatorv1.InstallModeDetached
	for name, test := range map[string]struct {
		managers []*operatorv1.ClusterManager
		want     string
	}{
		"none": {want: "is not a hub"}, "detached": {[]*operatorv1.ClusterManager{detached}, "is not a hub"},
		"its own": {[]*operatorv1.ClusterManager{detached, lacking}, "the ClusterManager own, which deploys the hub here, reports: " + why},
	} {
		for _, args := range [][]string{{"init"}, {"init", "--wait", "--timeout=100ms"}} {
			s, config := clitest.NewPrepared(t)
			s.Refuse("GET /apis/cluster.open-cluster-management.io/v1", apierrors.NewNotFound(schema.GroupResource{}, "v1"))
			for _, cm := range test.managers {
				s.Put(cm)
			}
			_, _, err := clitest.Run(t, config, args...)
			if err == nil || !strings.Contains(command.ErrorLine(err), test.want) || strings.Contains(err.Error(), "elsewhere") {
				t.Errorf("%s, %q: it says %v, want %s", name, args, err, test.want)
			}
		}
	}
}

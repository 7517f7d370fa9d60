// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/test/await"
)

// asOperator starts hub-operator with only the rights of its ServiceAccount as shipped.
func asOperator(t *testing.T) client.Client {
	t.Helper()
	return asOperatorThrough(t, nil)
}

// asOperatorThrough does so with a wrapped transport to its own cluster, and with other options.
func asOperatorThrough(t *testing.T, wrap transport.WrapperFunc, change ...func(*operator.Options)) client.Client {
	t.Helper()
	admin := operatortest.Shared.Config(t, "management")
	operatortest.Install(t, admin)
	limited := rest.CopyConfig(admin)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:clusterhub-operator:hub-operator",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:clusterhub-operator", "system:authenticated"}}
	limited.Wrap(wrap)
	o := operator.NewOptions()
	o.HealthAddress, o.Metrics.Address = "0", "0"
	// A slow machine must not prevent renewals in time. The process releases the Lease when it ends.
	o.LeaderElection.LeaseDuration, o.LeaderElection.RenewDeadline = 2*await.Limit, await.Limit
	for _, change := range change {
		change(o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.RunWith(ctx, limited) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("hub-operator has ended: %v", err)
			}
		case <-time.After(await.Limit):
			t.Errorf("hub-operator does not end within %s", await.Limit)
		}
	})
	s := runtime.NewScheme()
	if err := errors.Join(operatorv1.AddToScheme(s), scheme.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(admin, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// made returns a new Klusterlet, with its secrets.
func made(t *testing.T, c client.Client, mode operatorv1.InstallMode, source []byte) *operatorv1.Klusterlet {
	t.Helper()
	k := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: "p" + rand.String(6)}}
	k.Spec.DeployOption.Mode, k.Spec.Namespace = mode, "open-cluster-management-"+k.Name
	if err := c.Create(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	operatortest.Gone(t, c, k)
	for name, data := range map[string][]byte{operatorv1.ExternalManagedKubeconfig: source, operatorv1.BootstrapHubKubeconfig: operatortest.Bootstrap} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.AgentNamespace(), Name: name}, Data: map[string][]byte{"kubeconfig": data}}
		operatortest.Eventually(t, "the namespace is there", func() bool {
			err := c.Create(t.Context(), secret)
			return err == nil || apierrors.IsAlreadyExists(err)
		})
	}
	return k
}

// waits waits for a condition.
func waits(t *testing.T, c client.Client, k *operatorv1.Klusterlet, conditionType string, status metav1.ConditionStatus) {
	t.Helper()
	operatortest.Eventually(t, conditionType+" is "+string(status), func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(k), k); err != nil {
			return false
		}
		return meta.IsStatusConditionPresentAndEqual(k.Status.Conditions, conditionType, status)
	})
}

func gone(t *testing.T, c client.Client, k *operatorv1.Klusterlet) {
	t.Helper()
	if err := c.Delete(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("its conditions are %+v", k.Status.Conditions)
		}
	}()
	operatortest.Eventually(t, "it is gone", func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(k), k))
	})
}

// run marks the pods of a Deployment as running: the cluster has no nodes, and no controller that creates pods.
func run(t *testing.T, c client.Client, namespace, deployment string) {
	t.Helper()
	operatortest.Eventually(t, deployment+" runs", func() bool {
		d := &appsv1.Deployment{}
		if c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: deployment}, d) != nil {
			return false
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		return c.Status().Update(t.Context(), d) == nil
	})
}

func TestProcess_WithShippedRights(t *testing.T) {
	c, f := asOperator(t), &operatortest.Front{}
	source := f.Start(t, operatortest.Shared.Config(t, "managed"))
	k := made(t, c, operatorv1.InstallModeDetached, source)
	waits(t, c, k, operatorv1.ConditionKlusterletApplied, metav1.ConditionTrue)
	waits(t, c, k, operatorv1.ConditionKlusterletAvailable, metav1.ConditionFalse)
	for _, deployment := range []string{k.RegistrationDeployment(), k.WorkDeployment()} {
		run(t, c, k.AgentNamespace(), deployment)
	}
	waits(t, c, k, operatorv1.ConditionKlusterletAvailable, metav1.ConditionTrue)

	// At rest, even after changes here, only watches to the managed cluster are open.
	before := f.Requests()
	k.Spec.PriorityClassName = "system-cluster-critical"
	if err := c.Update(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the pods are changed", func() bool {
		d := &appsv1.Deployment{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: k.AgentNamespace(), Name: k.WorkDeployment()}, d)
		return err == nil && d.Spec.Template.Spec.PriorityClassName == k.Spec.PriorityClassName
	})
	if more := f.Requests()[len(before):]; len(more) > 0 {
		t.Errorf("at rest the managed cluster was asked: %q", more)
	}

	// A change there is reported by an event.
	managed, err := client.New(operatortest.Shared.Config(t, "managed"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: k.ManagedNamespace(), Name: k.WorkServiceAccount()}}
	if err := managed.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the ServiceAccount is there again, and its token", func() bool {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: k.AgentNamespace(), Name: operatorv1.ExternalManagedKubeconfigWork}
		return managed.Get(t.Context(), client.ObjectKeyFromObject(account), account) == nil && c.Get(t.Context(), key, secret) == nil &&
			string(secret.Data[operatorv1.KeyServiceAccountUID]) == string(account.UID)
	})
	gone(t, c, k)

	// The same on one cluster, where hub-operator has no rights to the objects of works.
	k = made(t, c, operatorv1.InstallModeSingleton, nil)
	waits(t, c, k, operatorv1.ConditionKlusterletApplied, metav1.ConditionTrue)
	object := operatortest.Work(t, c, deploy.Klusterlet{Name: k.Name}.AgentID(), k.Name)
	gone(t, c, k)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || len(object.OwnerReferences) > 0 {
		t.Errorf("what a work has brought is %+v: %v", object.ObjectMeta, err)
	}
}

// TestProcess_OneClusterDoesNotDelayOthers: a cluster that does not respond delays no other.
func TestProcess_OneClusterDoesNotDelayOthers(t *testing.T) {
	c, f := asOperator(t), &operatortest.Front{Hangs: make(chan struct{})}
	stuck := made(t, c, operatorv1.InstallModeHosted, f.Start(t, operatortest.Shared.Config(t, "managed")))
	operatortest.Eventually(t, "the cluster is asked", func() bool { return len(f.Requests()) > 0 })
	source, err := operatortest.Kubeconfig(operatortest.Shared.Config(t, "managed"))
	if err != nil {
		t.Fatal(err)
	}
	k := made(t, c, operatorv1.InstallModeHosted, source)
	waits(t, c, k, operatorv1.ConditionKlusterletApplied, metav1.ConditionTrue)
	gone(t, c, k)
	for _, method := range f.Requests() {
		if !strings.HasPrefix(method, "GET ") {
			t.Errorf("the cluster that hangs was written to: %s", method)
		}
	}
	close(f.Hangs)
	waits(t, c, stuck, operatorv1.ConditionKlusterletApplied, metav1.ConditionTrue)
	gone(t, c, stuck)
}

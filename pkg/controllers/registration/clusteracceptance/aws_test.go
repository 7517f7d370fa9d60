// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/csr"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// A working cluster costs only reads, and only as often as checks are due, whatever happens on the hub.
func TestAWS_SteadyFleetCausesNoWrites(t *testing.T) {
	const clusters, hours = 20, 24
	all := make([]string, clusters)
	for i := range all {
		all[i] = fmt.Sprintf("c%d", i)
	}
	f := newAWSFixture(t, awsirsa.AccessEntry, all...)
	for _, name := range all {
		f.settle(name)
	}
	f.aws.ResetCalls()
	from := f.clock.Now()
	for f.clock.Now().Before(from.Add(hours * time.Hour)) {
		f.clock.SetTime(f.clock.Now().Add(10 * time.Minute))
		for _, name := range all {
			if _, err := f.reconcile(name); err != nil {
				t.Fatal(err)
			}
		}
		if f.clock.Now().Sub(from) == hours*time.Hour/2 {
			f.restart()
		}
	}
	reads := f.aws.Count("iam:*", "eks:*")
	t.Logf("%d clusters in %d hours: %d reads", clusters, hours, reads)
	if len(f.aws.Writes()) > 0 {
		t.Errorf("%d writes: %v", len(f.aws.Writes()), f.aws.Writes())
	}
	if most := clusters * hours * 6; reads > most || reads < most/2 {
		t.Errorf("want at most %d reads, six for each cluster and hour", most)
	}
}

// A call that AWS refuses for one cluster is retried with an increasing delay, is reported in the cluster's condition, and does not affect other
// clusters.
func TestAWS_ErrorsAffectOneCluster(t *testing.T) {
	for name, test := range map[string]struct {
		operation string
		err       error
		// most is the maximum number of calls in an hour, and want the text of the condition.
		most int
		want string
	}{
		"throttling": {"iam:*", fakeaws.Throttled, 50, "IAM GetRole %s: Throttling: Rate exceeded"},
		"throttling by EKS": {"eks:CreateAccessEntry", fakeaws.Throttled, 110,
			"EKS CreateAccessEntry %s: ThrottlingException: Rate exceeded"},
		"a fault of AWS": {"iam:*", fakeaws.Internal, 50, "IAM GetRole %s: InternalFailure: "},
		"no answer":      {"iam:*", fakeaws.Cut, 50, "IAM GetRole %s: "},
		"access denied": {"iam:CreateRole", &fakeaws.Error{Code: "AccessDenied", Message: "no"}, 25,
			"IAM CreateRole %s: AccessDenied: no"},
		"a quota": {"iam:CreateRole", &fakeaws.Error{Code: "LimitExceeded", Message: "RolesPerAccount"}, 25,
			"IAM CreateRole %s: LimitExceeded: RolesPerAccount"},
		"an agent's role that is not there": {"iam:CreateRole", &fakeaws.Error{Code: "MalformedPolicyDocument", Message: "Invalid principal"}, 50,
			"IAM CreateRole %s: MalformedPolicyDocument: Invalid principal (the managed cluster's role "},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAWSFixture(t, awsirsa.AccessEntry, "c1", "c2")
			role := f.hubRole("c1")
			remove := f.aws.Inject(fakeaws.Fault{Operation: test.operation, Hook: func(c fakeaws.Call) error {
				if strings.Contains(fmt.Sprint(c.Params), role) {
					return test.err
				}
				return nil
			}})
			must(f.sdk.Credentials.Retrieve(t.Context()))(t) // by a network, which does not exist in the bubble
			synctest.Test(t, func(t *testing.T) {            // where the driver waits while it is throttled
				f.T = t
				f.anHour("c1")
				calls := f.aws.Count("iam:*", "eks:*")
				t.Logf("%d calls in an hour", calls)
				if calls > test.most || calls < 8 {
					t.Errorf("%d calls in an hour, want at most %d", calls, test.most)
				}
				want := "False Error granting the cluster its identity: " + fmt.Sprintf(test.want, role)
				if got := f.accepted("c1"); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
					t.Errorf("condition %q, want %q", got, want)
				}
				f.settle("c2")
				if got := f.accepted("c2"); got != "True HubClusterAdminAccepted Accepted by hub cluster admin" {
					t.Errorf("the other cluster: %q", got)
				}
				remove()
				f.settle("c1")
				if diff := cmp.Diff(sorted(f.granted("c1"), f.granted("c2")), f.inAWS()); diff != "" {
					t.Errorf("in AWS (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// AWS does not respond about one cluster. The others do not wait for it.
func TestAWS_HangingClusterDoesNotBlockOthers(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "c1", "c2")
	role := f.hubRole("c1")
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.aws.Inject(fakeaws.Fault{Operation: "iam:GetRole", Hook: func(c fakeaws.Call) error {
		if c.Params["RoleName"] == role {
			once.Do(func() { close(entered) })
			<-leave
		}
		return nil
	}})
	// The fixture must not be shared by two goroutines, so these are workers of one process without it.
	r := newReconciler(f.client, f.client, events.NewFakeRecorder(100), f.clock, Options{Drivers: f.drivers()})
	done := make(chan error)
	go func() {
		_, err := r.Reconcile(context.WithoutCancel(t.Context()), request("c1"))
		done <- err
	}()
	<-entered
	if _, err := r.Reconcile(t.Context(), request("c2")); err != nil || f.accepted("c2") != "True HubClusterAdminAccepted Accepted by hub cluster admin" {
		t.Errorf("%v, condition %q", err, f.accepted("c2"))
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(sorted(f.granted("c1"), f.granted("c2")), f.inAWS()); diff != "" {
		t.Errorf("in AWS (-want +got):\n%s", diff)
	}
}

// Drivers are independent: each has its clusters, and a new one needs no change of existing clusters.
func TestDrivers_AreIndependent(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "by-iam")
	f.drivers = func() driver.Drivers {
		return driver.Drivers{f.cloud, f.driver(), csr.New(f.client, nil)}
	}
	f.restart()
	byCloud, byCertificate := newCluster("by-cloud"), newCluster("by-certificate")
	byCertificate.Annotations = nil
	for _, cluster := range []*clusterv1.ManagedCluster{byCloud, byCertificate} {
		if err := f.client.Create(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	drivers := map[string]string{"by-iam": "awsirsa", "by-cloud": "cloud", "by-certificate": "csr"}
	for name := range drivers {
		f.settle(name)
	}
	for name, driver := range drivers {
		if got := f.record(name); got.Driver != driver || got.Granted.IsZero() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if diff := cmp.Diff(f.granted("by-iam"), f.inAWS()); diff != "" || len(f.cloud.granted) != 1 {
		t.Errorf("in the cloud %v, in AWS (-want +got):\n%s", f.cloud.granted, diff)
	}
	for name := range drivers {
		f.change(name, deny)
		f.settle(name)
		if got := f.accepted(name); got != "False HubClusterAdminDenied Denied by hub cluster admin" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if len(f.cloud.granted) != 0 || len(f.inAWS()) != 0 {
		t.Errorf("left: %v, %v", f.cloud.granted, f.inAWS())
	}
}

// Clusters that are accepted at the same time do not compete for the one ConfigMap aws-auth: all concurrent calls of the driver share an update.
// The time of a bubble passes only when all of them wait for it.
func TestAWS_FleetSharesAWSAuthUpdates(t *testing.T) {
	const clusters, most = 3*callers + 1, 4
	all := make([]string, clusters)
	for i := range all {
		all[i] = fmt.Sprintf("c%d", i)
	}
	f := newAWSFixture(t, awsirsa.AWSAuth, all...)
	must(f.sdk.Credentials.Retrieve(t.Context()))(t) // by a network, which does not exist in the bubble
	// The fixture is for one worker; this test has all of them.
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&clusterv1.ManagedCluster{}).
		WithIndex(&corev1.ConfigMap{}, byIdentity, f.claimed).WithIndex(&rbacv1.ClusterRole{}, byIdentity, f.claimed).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*clusterv1.ManagedClusterList); ok {
					return nil // no two claim one ARN, and a fake has no index that is as fast
				}
				return c.List(ctx, list, opts...)
			},
		})
	for _, name := range all {
		cluster := f.cluster(name)
		cluster.ResourceVersion = ""
		b.WithObjects(cluster)
	}
	c := b.Build()
	var updates atomic.Int32
	f.kube.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		updates.Add(1)
		return false, nil, nil
	})
	run := func(want string) {
		t.Helper()
		updates.Store(0)
		synctest.Test(t, func(t *testing.T) {
			r := newReconciler(c, c, events.NewFakeRecorder(10*clusters), f.clock, Options{Drivers: f.drivers()})
			f.clock.SetTime(f.clock.Now().Add(time.Hour)) // a new process may not trust IAM that there is no role
			queue := make(chan string, clusters)
			for _, name := range all {
				queue <- name
			}
			var left, wg sync.WaitGroup
			left.Add(clusters)
			for range workers {
				wg.Go(func() {
					for name := range queue {
						_, err := r.Reconcile(t.Context(), request(name))
						cluster := &clusterv1.ManagedCluster{}
						if err = firstError(err, c.Get(t.Context(), client.ObjectKey{Name: name}, cluster)); err != nil {
							t.Error(err)
						}
						if err != nil || slices.ContainsFunc(cluster.Status.Conditions, func(c metav1.Condition) bool { return c.Reason == want }) {
							left.Done()
						} else {
							time.Sleep(10 * time.Millisecond) // of the bubble: its driver is busy
							queue <- name
						}
					}
				})
			}
			left.Wait()
			close(queue)
			wg.Wait()
			time.Sleep(time.Minute) // until the driver waits for no further edit
		})
		t.Logf("%s: %d updates for %d clusters", want, updates.Load(), clusters)
		if n := updates.Load(); n > most {
			t.Errorf("%s: %d updates for %d clusters, want %d", want, n, clusters, most)
		}
	}
	run(registration.ReasonAccepted)
	if got := len(f.inAWS()); got != 2*clusters {
		t.Errorf("%d roles and mappings, want %d", got, 2*clusters)
	}
	for _, name := range all {
		cluster := &clusterv1.ManagedCluster{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			t.Fatal(err)
		}
		deny(cluster)
		if err := c.Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	run(registration.ReasonDenied)
	if left := f.inAWS(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// An admin's mistake in aws-auth is not changed, but reported.
func TestAWSAuth_UneditableIsReported(t *testing.T) {
	configMaps := func(f *awsFixture) interface {
		Update(context.Context, *corev1.ConfigMap, metav1.UpdateOptions) (*corev1.ConfigMap, error)
		Delete(context.Context, string, metav1.DeleteOptions) error
	} {
		return f.kube.CoreV1().ConfigMaps("kube-system")
	}
	for name, test := range map[string]struct {
		data map[string]string
		want string
	}{
		"malformed": {map[string]string{"mapRoles": "- rolearn: [", "mapUsers": "x"}, "the ConfigMap kube-system/aws-auth: mapRoles is malformed and is not touched"},
		"not there": {nil, "kubectl create configmap aws-auth --namespace kube-system"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAWSFixture(t, awsirsa.AWSAuth, "c1")
			if test.data == nil {
				if err := configMaps(f).Delete(t.Context(), "aws-auth", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			} else {
				must(configMaps(f).Update(t.Context(), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}, Data: maps.Clone(test.data),
				}, metav1.UpdateOptions{}))(t)
			}
			result, err := f.reconcile("c1")
			if err != nil || result.RequeueAfter < lastRetry {
				t.Errorf("%v, %v, want the longest backoff", result, err)
			}
			if got := f.accepted("c1"); !strings.HasPrefix(got, "False Error ") || !strings.Contains(got, test.want) {
				t.Errorf("condition %q, want %q", got, test.want)
			}
			found, err := f.kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "aws-auth", metav1.GetOptions{})
			if test.data == nil && err == nil || test.data != nil && !maps.Equal(found.Data, test.data) {
				t.Errorf("%v, it is %v", err, found)
			}
		})
	}
}

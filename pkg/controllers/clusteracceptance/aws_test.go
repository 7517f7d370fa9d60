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
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/csr"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	names "github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// awsFixture is a fixture whose process has the driver of AWS IAM, and the AWS that it calls.
type awsFixture struct {
	*fixture
	aws          *fakeaws.Server
	hub, managed *fakeaws.Account
	hubCluster   irsa.Cluster
	access       awsirsa.Access
	kube         *kubefake.Clientset
}

const (
	awsRegion = "us-west-2"
	// podSubject is whom hub-controller-manager's token is of.
	podSubject = "system:serviceaccount:clusterhub-system:hub-controller-manager"
	// noNodes is what aws-auth says before any cluster joins.
	noNodes = "- rolearn: arn:aws:iam::123456789012:role/nodes\n  username: system:node:{{EC2PrivateDNSName}}\n"
)

// newAWSFixture returns one with these clusters, which say that they are the EKS clusters of their names.
func newAWSFixture(t *testing.T, access awsirsa.Access, clusters ...string) *awsFixture {
	t.Helper()
	f := &awsFixture{aws: must(fakeaws.Start(1))(t), access: access}
	t.Cleanup(f.aws.Close)
	f.hub = must(f.aws.AddAccount("123456789012", awsRegion))(t)
	f.managed = must(f.aws.AddAccount("210987654321", awsRegion))(t)
	f.hubCluster = must(irsa.ParseClusterARN(f.hub.AddCluster(fakeaws.Cluster{Name: "hub"})))(t)
	issuer := must(f.hub.AddIssuer("oidc.eks." + awsRegion + ".amazonaws.com/id/HUB"))(t)
	creator := must(f.hub.AddRole(fakeaws.Role{
		Name:     must(irsa.CreatorRole(f.hubCluster))(t),
		Trust:    irsa.WebIdentityTrustPolicy(f.hubCluster, issuer.Provider, podSubject).JSON(),
		Policies: map[string]string{"creator": irsa.CreatorPolicy(f.hubCluster, access == awsirsa.AccessEntry).JSON()},
	}))(t)
	for key, value := range must(issuer.PodEnv(t.TempDir(), creator, podSubject))(t) {
		t.Setenv(key, value)
	}
	f.kube = kubefake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}, Data: map[string]string{"mapRoles": noNodes},
	})
	f.fixture = newFixture(t)
	for _, name := range clusters {
		f.join(name, f.arn(name))
	}
	f.drivers = func() registration.Drivers { return registration.Drivers{f.driver()} }
	f.restart()
	return f
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// driver is that of a new process.
func (f *awsFixture) driver() registration.Driver {
	f.Helper()
	return must(awsirsa.New(awsirsa.Config{
		HubClusterARN: f.hubCluster.String(), AWS: must(awsirsa.LoadConfig(f.Context(), awsRegion))(f.T), Access: f.access,
		Kube: f.kube, CheckInterval: time.Hour, Clock: f.clock,
	}))(f.T)
}

// arn is that of an EKS cluster, whose admin has made its agent's role.
func (f *awsFixture) arn(name string) string {
	f.Helper()
	managed := f.hubCluster
	managed.Account, managed.Name = f.managed.ID, name
	identity := must(irsa.NewIdentity(f.hubCluster, managed))(f.T)
	if _, there := f.managed.Roles()[identity.ManagedRole()]; !there {
		must(f.managed.AddRole(fakeaws.Role{
			Name: identity.ManagedRole(), Tags: identity.Tags(), Trust: irsa.WebIdentityTrustPolicy(managed, "oidc", "agent").JSON(),
		}))(f.T)
	}
	return managed.String()
}

// hubRole names the role that the hub makes for an EKS cluster.
func (f *awsFixture) hubRole(name string) string {
	return "ocm-hub-" + irsa.Suffix(f.hubCluster.Account, f.hubCluster.Name, f.managed.ID, name)
}

// join makes an accepted ManagedCluster that says of itself which EKS cluster it is.
func (f *awsFixture) join(name, arn string) {
	f.Helper()
	cluster := newCluster(name)
	cluster.Annotations = map[string]string{names.AnnotationManagedClusterARN: arn}
	if err := f.client.Create(f.Context(), cluster); err != nil {
		f.Fatal(err)
	}
}

// inAWS lists what was made for clusters, and for which.
func (f *awsFixture) inAWS() (all []string) {
	f.Helper()
	for name, role := range f.hub.Roles() {
		if strings.HasPrefix(name, "ocm-hub-") {
			all = append(all, fmt.Sprintf("role of %s with %d policies", role.Tags[awsirsa.TagCluster], len(role.Policies)))
		}
	}
	roles := f.hub.Roles()
	for principal, e := range f.hub.AccessEntries(f.hubCluster.String()) {
		role := roles[principal[strings.LastIndex(principal, "/")+1:]]
		all = append(all, fmt.Sprintf("entry of %s for %v, of that role: %t", e.Tags[awsirsa.TagCluster], e.KubernetesGroups,
			e.Tags[awsirsa.TagRoleID] == role.ID))
	}
	found := must(f.kube.CoreV1().ConfigMaps("kube-system").Get(f.Context(), "aws-auth", metav1.GetOptions{}))(f.T)
	mine, ok := strings.CutPrefix(found.Data["mapRoles"], noNodes)
	if !ok {
		f.Errorf("the entry of others has changed: %s", found.Data["mapRoles"])
	}
	for line := range strings.Lines(mine) {
		if user, ok := strings.CutPrefix(line, "  username: "); ok {
			all = append(all, "mapping of "+strings.TrimSpace(user))
		}
	}
	slices.Sort(all)
	return all
}

// granted is what inAWS lists when a cluster has all.
func (f *awsFixture) granted(name string) []string {
	role := "role of " + name + " with 1 policies"
	if f.access == awsirsa.AWSAuth {
		return []string{"mapping of system:open-cluster-management:" + name, role}
	}
	return []string{"entry of " + name + " for [open-cluster-management:" + name + "], of that role: true", role}
}

// errNoProcess is the answer to who is dead. The SDK does not ask again.
var errNoProcess = &fakeaws.Error{Code: "NoProcess", Message: errKilled.Error(), Status: 400}

// mortal lets the process die of what it does to AWS and to aws-auth, too.
func (f *awsFixture) mortal() {
	f.aws.Inject(fakeaws.Fault{Hook: func(fakeaws.Call) error {
		if f.dead {
			return errNoProcess
		}
		return nil
	}})
	f.aws.Inject(fakeaws.Fault{AfterEffect: true, Hook: func(c fakeaws.Call) error {
		if c.Write && f.effect(c.Operation, func() error { return nil }) != nil {
			return errNoProcess
		}
		return nil
	}})
	f.kube.PrependReactor("*", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if f.dead {
			return true, nil, errKilled
		}
		update, ok := a.(clienttesting.UpdateAction)
		if !ok || a.GetVerb() != "update" {
			return false, nil, nil
		}
		return true, update.GetObject(), f.effect("update ConfigMap", func() error {
			return f.kube.Tracker().Update(a.GetResource(), update.GetObject(), a.GetNamespace())
		})
	})
}

// nextCheck lets the time pass after which the cluster has been checked.
func (f *awsFixture) nextCheck(name string) {
	f.Helper()
	f.clock.SetTime(f.clock.Now().Add(3 * time.Hour))
	f.settle(name)
}

// lives are what may happen to a cluster, and what there is in AWS at the end.
var lives = map[string]struct {
	before, do func(f *awsFixture)
	want       func(f *awsFixture) []string
}{
	"accept": {func(*awsFixture) {}, func(*awsFixture) {}, func(f *awsFixture) []string { return f.granted("c1") }},
	"deny":   {func(f *awsFixture) { f.settle("c1") }, func(f *awsFixture) { f.change("c1", deny) }, nil},
	"delete": {func(f *awsFixture) { f.settle("c1") }, func(f *awsFixture) { deleteCluster(f.fixture) }, nil},
	"delete while it is accepted": {
		func(f *awsFixture) {
			f.killAfter = 8 // the role has been made, and is all that has
			_, _ = f.reconcile("c1")
			f.restart()
			if got := f.inAWS(); !slices.Equal(got, []string{"role of c1 with 0 policies"}) {
				f.Fatalf("in AWS: %q", got)
			}
		},
		func(f *awsFixture) { deleteCluster(f.fixture) }, nil,
	},
	"delete by force": {
		func(f *awsFixture) { f.settle("c1") },
		func(f *awsFixture) {
			f.change("c1", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
			deleteCluster(f.fixture)
		}, nil,
	},
	"accept again as another EKS cluster": {
		func(f *awsFixture) {
			f.settle("c1")
			f.change("c1", deny)
			f.killAfter = 1
			_, _ = f.reconcile("c1")
			f.restart()
		},
		func(f *awsFixture) {
			f.change("c1", func(c *clusterv1.ManagedCluster) {
				accept(c)
				c.Annotations[names.AnnotationManagedClusterARN] = f.arn("c2")
			})
		},
		func(f *awsFixture) []string { return f.granted("c1") },
	},
	"repair": {
		func(f *awsFixture) {
			f.settle("c1")
			f.hub.RemoveRole(f.hubRole("c1"))
		},
		func(f *awsFixture) {
			_, _ = f.reconcile("c1")
			f.clock.SetTime(f.clock.Now().Add(3 * time.Hour))
		}, func(f *awsFixture) []string { return f.granted("c1") },
	},
}

// world is how AWS is: what lets a role in, and for how many looks a new one is hidden.
type world struct {
	access awsirsa.Access
	hidden int
}

// eachLife runs a test for all that may happen.
func eachLife(t *testing.T, worlds []world, test func(t *testing.T, newLife func() *awsFixture, do func(f *awsFixture), end func(f *awsFixture))) {
	for name, life := range lives {
		for _, w := range worlds {
			t.Run(fmt.Sprintf("%s, by %s, roles hidden for %d looks", name, w.access, w.hidden), func(t *testing.T) {
				newLife := func() *awsFixture {
					f := newAWSFixture(t, w.access, "c1")
					f.mortal()
					f.aws.DelayVisibility(w.hidden, 0)
					life.before(f)
					f.restart()
					return f
				}
				test(t, newLife, life.do, func(f *awsFixture) {
					f.Helper()
					f.settle("c1")
					f.nextCheck("c1")
					var want []string
					if life.want != nil {
						want = life.want(f)
					}
					if diff := cmp.Diff(want, f.inAWS()); diff != "" {
						f.Errorf("after %q, in AWS (-want +got):\n%s", f.effects, diff)
					}
					// And all of it can be taken away.
					if f.client.Get(f.Context(), client.ObjectKey{Name: "c1"}, &clusterv1.ManagedCluster{}) == nil {
						if f.cluster("c1").DeletionTimestamp.IsZero() {
							deleteCluster(f.fixture)
						}
						f.settle("c1")
					}
					if left := f.inAWS(); len(left) > 0 {
						f.Errorf("after %q, left in AWS: %q", f.effects, left)
					}
					if diff := cmp.Diff([]string{"Namespace /c1"}, f.has()); diff != "" {
						f.Errorf("after %q, left on the hub (-want +got):\n%s", f.effects, diff)
					}
				})
			})
		}
	}
}

// A process may be killed after anything that it has done, to the hub, to AWS or to aws-auth: the next one brings it to the
// same end, and nothing is left of what nobody knows of.
func TestKilled_NothingLeaksInAWS(t *testing.T) {
	eachLife(t, []world{{awsirsa.AccessEntry, 0}, {awsirsa.AccessEntry, 2}, {awsirsa.AWSAuth, 0}}, func(t *testing.T, newLife func() *awsFixture, do, end func(f *awsFixture)) {
		for n := 1; ; n++ {
			f := newLife()
			do(f)
			f.effects, f.killAfter = nil, n
			for range 30 {
				result, err := f.reconcile("c1")
				if f.dead {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if result.RequeueAfter > 0 {
					f.clock.SetTime(f.clock.Now().Add(min(result.RequeueAfter, time.Minute)))
				}
			}
			finished := !f.dead
			f.restart()
			end(f)
			if finished {
				if n < 3 {
					t.Errorf("only %d effects: %q", n, f.effects)
				}
				return
			}
		}
	})
}

// An answer of AWS may be lost on its way: the call has had its effect, and the process does not know.
func TestLostAnswers_AreMadeGood(t *testing.T) {
	eachLife(t, []world{{awsirsa.AccessEntry, 0}}, func(t *testing.T, newLife func() *awsFixture, do, end func(f *awsFixture)) {
		for n := 1; ; n++ {
			f := newLife()
			lost := false
			calls := 0
			f.aws.Inject(fakeaws.Fault{AfterEffect: true, Hook: func(c fakeaws.Call) error {
				// The SDK's own second try is lost, too.
				if calls++; calls == n || lost && calls == n+1 {
					lost = true
					return fakeaws.Cut
				}
				return nil
			}})
			do(f)
			end(f)
			if !lost {
				return
			}
		}
	})
}

// What is well costs reads, and only as often as it is to be checked, whatever happens on the hub.
func TestAWS_AWorkingFleetCostsNoWrites(t *testing.T) {
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
	if most := clusters * hours * 3; reads > most || reads < most/2 {
		t.Errorf("want at most %d reads, three for each cluster and hour", most)
	}
}

// anHour looks at a cluster for an hour: when it is time to, and five times more because of events.
func (f *awsFixture) anHour(name string) {
	f.Helper()
	for end := f.clock.Now().Add(time.Hour); f.clock.Now().Before(end); {
		result, err := f.reconcile(name)
		if err != nil || result.RequeueAfter <= 0 {
			f.Fatalf("%v, %v", result, err)
		}
		for range 5 {
			if _, err := f.reconcile(name); err != nil {
				f.Fatal(err)
			}
		}
		f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
	}
}

// What AWS refuses for one cluster is tried again ever more seldom, is told in the cluster's condition, and is nothing to
// the others.
func TestAWS_ErrorsOfOneClusterAreItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		operation string
		err       error
		// most is how many calls it may cost in an hour, and want what the condition says.
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
	}
}

func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return all
}

// AWS answers nothing about one cluster, for as long as it likes. The others do not wait for it.
func TestAWS_AClusterThatHangsHoldsNobodyUp(t *testing.T) {
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
	// Two processes of the fixture would share what is not theirs to share, so these are workers of one, without it.
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

// What a cluster says of itself is what its agent says. It gets what its ARN is for, or a reason, and never anything of
// another's.
func TestAWS_WhatClustersSayIsNotTrusted(t *testing.T) {
	const account = "arn:aws:eks:us-west-2:210987654321:cluster/"
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"no ARN":             {map[string]string{names.AnnotationManagedClusterARN: "c2"}, `"c2" is not the ARN of an EKS cluster`},
		"a part of one":      {map[string]string{names.AnnotationManagedClusterARN: "arn:aws:eks:us-west-2"}, "parts between colons"},
		"of a role":          {map[string]string{names.AnnotationManagedClusterARN: "arn:aws:iam::123456789012:role/admin"}, "its service is"},
		"of no account":      {map[string]string{names.AnnotationManagedClusterARN: "arn:aws:eks:us-west-2::cluster/c2"}, "its account is"},
		"of another form":    {map[string]string{names.AnnotationManagedClusterARN: account + "c2/c3"}, "is not the name of an EKS cluster"},
		"with a separator":   {map[string]string{names.AnnotationManagedClusterARN: account + "c2#123456789012#hub"}, "is not the name of an EKS cluster"},
		"with a wildcard":    {map[string]string{names.AnnotationManagedClusterARN: account + "*"}, "is not the name of an EKS cluster"},
		"with a policy":      {map[string]string{names.AnnotationManagedClusterARN: account + `c2"},"Principal":"*`}, "is not the name of an EKS cluster"},
		"with a line's end":  {map[string]string{names.AnnotationManagedClusterARN: account + "c2\n"}, "is not the name of an EKS cluster"},
		"of many characters": {map[string]string{names.AnnotationManagedClusterARN: account + strings.Repeat("x", 100_000)}, "is not the name of an EKS cluster"},
		"of another partition": {map[string]string{names.AnnotationManagedClusterARN: "arn:aws-cn:eks:cn-north-1:210987654321:cluster/c1"},
			"the cluster is in the AWS partition aws-cn and the hub in aws"},
		"of a partition that the region is not in": {map[string]string{names.AnnotationManagedClusterARN: "arn:aws:eks:cn-north-1:210987654321:cluster/c1"},
			"the region cn-north-1 is in the partition aws-cn"},
		"of a cluster that has joined": {map[string]string{names.AnnotationManagedClusterARN: account + "c2"},
			`belongs to the ManagedCluster "c2", whose EKS cluster has the account and the name of `},
		"of one that has joined, in another region": {map[string]string{names.AnnotationManagedClusterARN: "arn:aws:eks:eu-west-1:210987654321:cluster/c2"},
			`belongs to the ManagedCluster "c2", whose EKS cluster has the account and the name of `},
		"two of them": {map[string]string{names.AnnotationManagedClusterARN: account + "c1", names.AnnotationManagedClusterARNOfSeed: account + "c2"},
			"name different clusters"},
		"the suffix of another": {map[string]string{names.AnnotationManagedClusterARN: account + "c1",
			names.AnnotationRoleSuffix: irsa.Suffix("123456789012", "hub", "210987654321", "c2")}, "the agent and the hub disagree about the hub's ARN"},
		"a suffix that is none": {map[string]string{names.AnnotationManagedClusterARN: account + "c1", names.AnnotationRoleSuffix: "../admin"},
			"the agent and the hub disagree about the hub's ARN"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAWSFixture(t, awsirsa.AccessEntry, "c1", "c2")
			f.settle("c2")
			f.change("c1", func(c *clusterv1.ManagedCluster) { c.Annotations = test.annotations })
			f.aws.ResetCalls()
			for range 5 {
				if _, err := f.reconcile("c1"); err != nil {
					t.Fatal(err)
				}
			}
			got := f.accepted("c1")
			if !strings.HasPrefix(got, "False Error ") || !strings.Contains(got, test.want) || strings.Contains(got, "\n") || len(got) > 1200 {
				t.Errorf("condition %q, want %q", got, test.want)
			}
			f.change("c1", deny)
			f.settle("c1")
			deleteCluster(f.fixture)
			f.settle("c1")
			if writes := f.aws.Writes(); len(writes) > 0 {
				t.Errorf("AWS was changed: %v", writes)
			}
			if diff := cmp.Diff(f.granted("c2"), f.inAWS()); diff != "" {
				t.Errorf("in AWS (-want +got):\n%s", diff)
			}
		})
	}
}

// Once a cluster is accepted, its agent can write what it likes: it has what it was accepted with, and that is what is
// checked and what is taken away.
func TestAWS_WhatAClusterSaysLaterChangesNothing(t *testing.T) {
	for name, change := range map[string]func(f *awsFixture, annotations map[string]string){
		"the ARN of another": func(f *awsFixture, a map[string]string) { a[names.AnnotationManagedClusterARN] = f.arn("c2") },
		"the suffix of another": func(f *awsFixture, a map[string]string) {
			a[names.AnnotationRoleSuffix] = strings.TrimPrefix(f.hubRole("c2"), "ocm-hub-")
		},
		"a new ARN":       func(f *awsFixture, a map[string]string) { a[names.AnnotationManagedClusterARN] = f.arn("c3") },
		"a malformed ARN": func(_ *awsFixture, a map[string]string) { a[names.AnnotationManagedClusterARN] = "arn" },
		"no ARN":          func(_ *awsFixture, a map[string]string) { delete(a, names.AnnotationManagedClusterARN) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newAWSFixture(t, awsirsa.AccessEntry, "c1", "c2")
			f.settle("c1")
			f.settle("c2")
			both := sorted(f.granted("c1"), f.granted("c2"))
			f.change("c1", func(c *clusterv1.ManagedCluster) { change(f, c.Annotations) })
			f.aws.ResetCalls()
			f.restart()
			f.settle("c1")
			f.nextCheck("c1")
			if diff := cmp.Diff(both, f.inAWS()); diff != "" || len(f.aws.Writes()) > 0 || f.aws.Count("iam:GetRole") == 0 {
				t.Errorf("calls %v, in AWS (-want +got):\n%s", f.aws.Calls(), diff)
			}
			if got := f.accepted("c1"); !strings.HasPrefix(got, "True HubClusterAdminAccepted Accepted by hub cluster admin. What the cluster says") {
				t.Errorf("condition %q", got)
			}
			deleteCluster(f.fixture)
			f.settle("c1")
			if diff := cmp.Diff(f.granted("c2"), f.inAWS()); diff != "" {
				t.Errorf("in AWS (-want +got):\n%s", diff)
			}
		})
	}
}

// Drivers do not know of each other: each has its clusters, and a new one needs no change to those there are.
func TestDrivers_StandSideBySide(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "by-iam")
	f.drivers = func() registration.Drivers {
		return registration.Drivers{f.cloud, f.driver(), csr.New(f.client, nil)}
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
		if got := recordOf(f.role(name)); got.driver != driver || got.granted.IsZero() {
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

// A fleet that is accepted at once does not fight over the one ConfigMap that lets it in.
func TestAWS_AFleetSharesTheUpdatesOfAWSAuth(t *testing.T) {
	const clusters = 300
	all := make([]string, clusters)
	for i := range all {
		all[i] = fmt.Sprintf("c%d", i)
	}
	f := newAWSFixture(t, awsirsa.AWSAuth, all...)
	// The fixture is for one worker; here are all of them.
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&clusterv1.ManagedCluster{})
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
	r := newReconciler(c, c, events.NewFakeRecorder(10*clusters), f.clock, Options{Drivers: f.drivers()})
	run := func(want string) {
		t.Helper()
		updates.Store(0)
		queue := make(chan string, clusters)
		for _, name := range all {
			queue <- name
		}
		var left atomic.Int32
		left.Store(clusters)
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for left.Load() > 0 {
					select {
					case name := <-queue:
						_, err := r.Reconcile(t.Context(), request(name))
						cluster := &clusterv1.ManagedCluster{}
						if err = firstError(err, c.Get(t.Context(), client.ObjectKey{Name: name}, cluster)); err != nil {
							t.Error(err)
							left.Add(-1)
							continue
						}
						if slices.ContainsFunc(cluster.Status.Conditions, func(c metav1.Condition) bool { return c.Reason == want }) {
							left.Add(-1)
							continue
						}
						queue <- name // it finds its driver busy
					case <-time.After(10 * time.Millisecond):
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%s: %d updates for %d clusters", want, updates.Load(), clusters)
		if n := updates.Load(); n > clusters/3 {
			t.Errorf("%s: %d updates for %d clusters", want, n, clusters)
		}
	}
	run(names.ReasonAccepted)
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
	run(names.ReasonDenied)
	if left := f.inAWS(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// An admin's mistake in aws-auth is left alone, and told.
func TestAWSAuth_ThatCannotBeEditedIsTold(t *testing.T) {
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

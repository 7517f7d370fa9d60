// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/join"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

const klusterletsPath = "/apis/operator.open-cluster-management.io/v1/klusterlets"

func TestWaitsFor_ReportsNextStep(t *testing.T) {
	former := clitest.Available
	former.ObservedGeneration = 1
	deleted := clitest.NewKlusterlet("c1", clitest.Unavailable)
	deleted.DeletionTimestamp = &metav1.Time{Time: clitest.Expiry}
	for name, test := range map[string]struct {
		k    *operatorv1.Klusterlet
		want string
	}{
		"nothing known":           {clitest.NewKlusterlet("c1"), "hub-operator has not processed it yet"},
		"known of an earlier one": {clitest.NewKlusterlet("c1", former), "hub-operator has not processed it yet"},
		"a secret is missing":     {clitest.NewKlusterlet("c1", clitest.Unready, clitest.Unavailable, clitest.Unregisters), `the secret x is missing\x1b[2J`},
		"not applied":             {clitest.NewKlusterlet("c1", clitest.Unapplied, clitest.Unavailable, clitest.Unregisters), "the managed cluster: no route"},
		"not registered":          {clitest.NewKlusterlet("c1", clitest.Applied, clitest.Unregisters, clitest.Unavailable), "the agent has not started to register the cluster"},
		"one of several hubs":     {clitest.NewKlusterlet("c1", clitest.Applied, clitest.Unaccepted, clitest.Rebootstraps, clitest.Unavailable), "the agent has no identity yet"},
		"not accepted":            {clitest.NewKlusterlet("c1", clitest.Applied, clitest.Unaccepted, clitest.Unavailable), "the hub must accept it: kubectl hub accept --clusters c1"},
		"no pod":                  {clitest.NewKlusterlet("c1", clitest.Applied, clitest.Unavailable), "no pod is ready"},
		"all is well":             {clitest.NewKlusterlet("c1", clitest.Applied, clitest.Available), ""},
		"pods and no hub":         {clitest.NewKlusterlet("c1", clitest.Applied, clitest.Available, clitest.Unaccepted), "the hub must accept it: kubectl hub accept --clusters c1"},
		"it goes":                 {deleted, "it is being deleted: no pod is ready"},
	} {
		if got := join.WaitsFor(test.k); got != test.want {
			t.Errorf("%s: it waits for %q, want %q", name, got, test.want)
		}
	}
}

func TestGetKlusterlets(t *testing.T) {
	s := clitest.NewServer(t, clitest.NewKlusterlet("c1", clitest.Applied, clitest.Available), clitest.NewKlusterlet("c2", clitest.Applied, clitest.Unaccepted, clitest.Unavailable)).Named("management")
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t), "mgmt": s})
	args := []string{"get", "klusterlets", "--management-context", "mgmt"}
	if got, want := clitest.MustRun(t, config, args...), ""+
		"NAME   MODE       CLUSTER   APPLIED   AVAILABLE   WAITING FOR\n"+
		"c1     Detached   c1        True      True        <none>\n"+
		"c2     Detached   c2        True      False       the hub must accept it: kubectl hub accept --clusters c2\n"; got != want {
		t.Errorf("it prints\n%swant\n%s", got, want)
	}
	clitest.Says(t, clitest.MustRun(t, config, append(args, "-o", "wide")...), "NAMESPACE", "c1-open-cluster-management-agent")
	clitest.Says(t, clitest.MustRun(t, config, append(args, "-o", "yaml")...), "kind: KlusterletList\n", "kind: Klusterlet\n", "clusterName: c2\n")
	clitest.Says(t, clitest.MustRun(t, config, append(args, "-o", "json")...), `"kind": "KlusterletList"`)
	if got, want := clitest.MustRun(t, config, append(args, "-o", "name")...), "klusterlet.operator.open-cluster-management.io/c1\nklusterlet.operator.open-cluster-management.io/c2\n"; got != want {
		t.Errorf("it prints the names %q, want %q", got, want)
	}
	s.PageSize = 1
	if got := clitest.MustRun(t, config, args...); strings.Count(got, "\n") != 3 {
		t.Errorf("in pages it prints\n%s", got)
	}
	s.WantUnchanged()

	empty := clitest.NewServer(t).Named("management")
	if _, stderr, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": empty}), "get", "klusterlets"); err != nil || stderr != "No klusterlets found.\n" {
		t.Errorf("of none: %v: %q", err, stderr)
	}
}

func TestGetKlusterlets_InvalidArguments(t *testing.T) {
	s := clitest.NewServer(t).Named("management")
	s.Refuse("GET "+klusterletsPath, apierrors.NewForbidden(operatorv1.Resource("klusterlets"), "", nil))
	file := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	clitest.AddBroken(t, file, s)
	for args, want := range map[string]string{
		"": "is forbidden", "--context dead": "the management cluster https://127.0.0.1:1 cannot be reached", "-o x": "unable to match a printer",
		"--context noca": "is not trusted", "--management-kubeconfig /nonexistent": "reading the kubeconfig",
		"--management-context x": `context "x" does not exist: check --management-context and --management-kubeconfig. kubectl config get-contexts shows`,
	} {
		_, _, err := clitest.Run(t, file, append([]string{"get", "klusterlets"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(command.ErrorLine(err), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestJoinDetached_Waits verifies that join --wait prints what must happen next, and ends when the agent works with the hub.
func TestJoinDetached_Waits(t *testing.T) {
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: clitest.DetachedSpace, Name: "c1-registration-agent"}}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusterhub-operator", Name: management.OperatorName}}
	pod := func(of *appsv1.Deployment, reason string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: "p", Labels: map[string]string{deploy.AgentLabel: of.Name}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}}}
	}
	for name, test := range map[string]struct {
		there      []runtime.Object
		conditions []metav1.Condition
		want       string
	}{
		"hub-operator elsewhere":    {want: "hub-operator has not processed it yet"},
		"hub-operator is not there": {there: []runtime.Object{operator}, want: "hub-operator does not run: its pod does not exist yet"},
		"hub-operator has no image": {there: []runtime.Object{operator, pod(operator, "ErrImagePull")}, want: "hub-operator does not run: its container is waiting: ErrImagePull"},
		"the agent has no image":    {[]runtime.Object{agent, pod(agent, "ErrImagePull")}, []metav1.Condition{clitest.Applied, clitest.Unregisters, clitest.Unavailable}, "its agent does not run: its container is waiting: ErrImagePull"},
		"the hub must accept it":    {conditions: []metav1.Condition{clitest.Applied, clitest.Unaccepted, clitest.Unavailable}, want: "the hub must accept it: kubectl hub accept --clusters c1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDetaching(t)
			for _, o := range test.there {
				d.management.Put(o)
			}
			d.management.AnswersKlusterlet(test.conditions, 0)
			_, stderr, err := clitest.RunIn(d.management.InterruptedAt("GET "+clitest.KlusterletPath, 5), t, d.config, append(d.args, "--wait")...)
			if err == nil {
				t.Fatal("it goes on")
			}
			d.hides(t, stderr, err)
			clitest.Says(t, err.Error(), "waiting for Klusterlet c1 to be available: interrupted: "+test.want)
		})
	}
	d := newDetaching(t)
	looks := d.management.AnswersKlusterlet([]metav1.Condition{clitest.Applied, clitest.Available}, 5)
	stdout, _, err := d.run(t, "--wait")
	if err != nil || *looks < 5 || stdout != "Cluster c1 has joined the hub "+d.hub.URL+". Its agent runs on the management cluster, in the namespace "+clitest.DetachedSpace+".\n"+
		"It applies works with the rights of admin in all namespaces.\n" {
		t.Errorf("%v: %q after %d looks", err, stdout, *looks)
	}
}

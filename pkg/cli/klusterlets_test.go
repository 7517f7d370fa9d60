// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

const klusterletsPath = "/apis/operator.open-cluster-management.io/v1/klusterlets"

// condition returns a condition that hub-operator wrote for generation 2.
func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: 2}
}

func newKlusterlet(name string, conditions ...metav1.Condition) *operatorv1.Klusterlet {
	k := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2, Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}}}
	k.Spec.ClusterName, k.Spec.DeployOption.Mode = name, operatorv1.InstallModeDetached
	k.Status.Conditions = conditions
	if len(conditions) > 0 {
		k.Status.ObservedGeneration = 2
	}
	return k
}

var (
	unready      = condition(operatorv1.ConditionReadyToApply, "False", operatorv1.ReasonKlusterletPrepareFailed, "the secret x is missing\x1b[2J")
	unapplied    = condition(operatorv1.ConditionKlusterletApplied, "False", operatorv1.ReasonManagedClusterResourceApplyFailed, "the managed cluster: no route")
	unregisters  = condition(operatorv1.ConditionHubConnectionDegraded, "True", operatorv1.ReasonHubKubeConfigSecretMissing, "the agent has not started to register the cluster")
	rebootstraps = condition(operatorv1.ConditionRebootstrapProgressing, "True", operatorv1.ReasonRebootstrapStarted, "the agent tries the hub of the Secret a")
	unaccepted   = condition(operatorv1.ConditionHubConnectionDegraded, "True", operatorv1.ReasonHubKubeConfigMissing, "the agent has no identity yet")
	unavailable  = condition(operatorv1.ConditionKlusterletAvailable, "False", operatorv1.ReasonKlusterletNoAvailablePods, "no pod is ready")
	applied      = condition(operatorv1.ConditionKlusterletApplied, "True", operatorv1.ReasonKlusterletApplied, "all is there")
	available    = condition(operatorv1.ConditionKlusterletAvailable, "True", operatorv1.ReasonKlusterletAvailable, "the agent runs")
)

func TestWaitsFor_ReportsNextStep(t *testing.T) {
	former := available
	former.ObservedGeneration = 1
	deleted := newKlusterlet("c1", unavailable)
	deleted.DeletionTimestamp = &metav1.Time{Time: expiry}
	for name, test := range map[string]struct {
		k    *operatorv1.Klusterlet
		want string
	}{
		"nothing known":           {newKlusterlet("c1"), "hub-operator has not processed it yet"},
		"known of an earlier one": {newKlusterlet("c1", former), "hub-operator has not processed it yet"},
		"a secret is missing":     {newKlusterlet("c1", unready, unavailable, unregisters), `the secret x is missing\x1b[2J`},
		"not applied":             {newKlusterlet("c1", unapplied, unavailable, unregisters), "the managed cluster: no route"},
		"not registered":          {newKlusterlet("c1", applied, unregisters, unavailable), "the agent has not started to register the cluster"},
		"one of several hubs":     {newKlusterlet("c1", applied, unaccepted, rebootstraps, unavailable), "the agent has no identity yet"},
		"not accepted":            {newKlusterlet("c1", applied, unaccepted, unavailable), "the hub must accept it: kubectl hub accept --clusters c1"},
		"no pod":                  {newKlusterlet("c1", applied, unavailable), "no pod is ready"},
		"all is well":             {newKlusterlet("c1", applied, available), ""},
		"pods and no hub":         {newKlusterlet("c1", applied, available, unaccepted), "the hub must accept it: kubectl hub accept --clusters c1"},
		"it goes":                 {deleted, "it is being deleted: no pod is ready"},
	} {
		if got := waitsFor(test.k); got != test.want {
			t.Errorf("%s: it waits for %q, want %q", name, got, test.want)
		}
	}
}

func TestGetKlusterlets(t *testing.T) {
	s := newServer(t, newKlusterlet("c1", applied, available), newKlusterlet("c2", applied, unaccepted, unavailable)).named("management")
	config := kubeconfig(t, map[string]*fakeServer{"hub": newServer(t), "mgmt": s})
	args := []string{"get", "klusterlets", "--management-context", "mgmt"}
	if got, want := mustRun(t, config, args...), ""+
		"NAME   MODE       CLUSTER   APPLIED   AVAILABLE   WAITING FOR\n"+
		"c1     Detached   c1        True      True        <none>\n"+
		"c2     Detached   c2        True      False       the hub must accept it: kubectl hub accept --clusters c2\n"; got != want {
		t.Errorf("it prints\n%swant\n%s", got, want)
	}
	says(t, mustRun(t, config, append(args, "-o", "wide")...), "NAMESPACE", "c1-open-cluster-management-agent")
	says(t, mustRun(t, config, append(args, "-o", "yaml")...), "kind: KlusterletList\n", "kind: Klusterlet\n", "clusterName: c2\n")
	says(t, mustRun(t, config, append(args, "-o", "json")...), `"kind": "KlusterletList"`)
	if got, want := mustRun(t, config, append(args, "-o", "name")...), "klusterlet.operator.open-cluster-management.io/c1\nklusterlet.operator.open-cluster-management.io/c2\n"; got != want {
		t.Errorf("it prints the names %q, want %q", got, want)
	}
	s.pageSize = 1
	if got := mustRun(t, config, args...); strings.Count(got, "\n") != 3 {
		t.Errorf("in pages it prints\n%s", got)
	}
	s.wantUnchanged()

	empty := newServer(t).named("management")
	if _, stderr, err := run(t, kubeconfig(t, map[string]*fakeServer{"hub": empty}), "get", "klusterlets"); err != nil || stderr != "No klusterlets found.\n" {
		t.Errorf("of none: %v: %q", err, stderr)
	}
}

func TestGetKlusterlets_InvalidArguments(t *testing.T) {
	s := newServer(t).named("management")
	s.refuse("GET "+klusterletsPath, apierrors.NewForbidden(operatorv1.Resource("klusterlets"), "", nil))
	file := kubeconfig(t, map[string]*fakeServer{"hub": s})
	addBroken(t, file, s)
	for args, want := range map[string]string{
		"": "is forbidden", "--context dead": "the management cluster https://127.0.0.1:1 cannot be reached", "-o x": "unable to match a printer",
		"--context noca": "is not trusted", "--management-kubeconfig /nonexistent": "reading the kubeconfig",
		"--management-context x": `context "x" does not exist: check --management-context and --management-kubeconfig. kubectl config get-contexts shows`,
	} {
		_, _, err := run(t, file, append([]string{"get", "klusterlets"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(command.ErrorLine(err), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestJoinDetached_Waits verifies that join --wait prints what must happen next, and ends when the agent works with the hub.
func TestJoinDetached_Waits(t *testing.T) {
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: detachedSpace, Name: "c1-registration-agent"}}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusterhub-operator", Name: operatorName}}
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
		"the agent has no image":    {[]runtime.Object{agent, pod(agent, "ErrImagePull")}, []metav1.Condition{applied, unregisters, unavailable}, "its agent does not run: its container is waiting: ErrImagePull"},
		"the hub must accept it":    {conditions: []metav1.Condition{applied, unaccepted, unavailable}, want: "the hub must accept it: kubectl hub accept --clusters c1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDetaching(t)
			for _, o := range test.there {
				d.management.put(o)
			}
			d.management.answersKlusterlet(test.conditions, 0)
			_, stderr, err := runIn(d.management.interruptedAt("GET "+klusterletPath, 5), t, d.config, append(d.args, "--wait")...)
			if err == nil {
				t.Fatal("it goes on")
			}
			d.hides(t, stderr, err)
			says(t, err.Error(), "waiting for Klusterlet c1 to be available: interrupted: "+test.want)
		})
	}
	d := newDetaching(t)
	looks := d.management.answersKlusterlet([]metav1.Condition{applied, available}, 5)
	stdout, _, err := d.run(t, "--wait")
	if err != nil || *looks < 5 || stdout != "Cluster c1 has joined the hub "+d.hub.URL+". Its agent runs on the management cluster, in the namespace "+detachedSpace+".\n"+
		"It applies works with the rights of admin in all namespaces.\n" {
		t.Errorf("%v: %q after %d looks", err, stdout, *looks)
	}
}

// answersKlusterlet adds conditions to the Klusterlet, once it exists, from the given read on.
func (s *fakeServer) answersKlusterlet(conditions []metav1.Condition, from int) *int {
	looks := 0
	s.on["GET "+klusterletPath] = func(w http.ResponseWriter, _ []byte) bool {
		k := s.get(klusterletPath)
		if k == nil {
			return false
		}
		looks++
		if looks < from {
			return false
		}
		said := newKlusterlet("c1", slices.Clone(conditions)...)
		k.Object["metadata"].(map[string]any)["generation"] = int64(2)
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&said.Status)
		if err != nil {
			s.t.Error(err)
		}
		k.Object["status"] = status
		writeJSON(w, http.StatusOK, k.Object)
		return true
	}
	return &looks
}

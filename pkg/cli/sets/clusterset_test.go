// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets_test

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

const (
	setsV1beta1  = "/apis/cluster.open-cluster-management.io/v1beta1/managedclustersets"
	bindingsPath = "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/team-a/managedclustersetbindings"
	allBindings  = "GET /apis/cluster.open-cluster-management.io/v1beta2/managedclustersetbindings"
)

func newBinding(set string) *v1beta2.ManagedClusterSetBinding {
	return &v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: set},
		Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
}

func TestCreateClusterSet(t *testing.T) {
	for name, test := range map[string]struct {
		args, selector string
		// fails is the expected error; if it is empty, body is the expected request.
		fails, body string
	}{
		"as clusteradm does": {body: `"clusterSelector":{}`},
		"by its own label": {args: "--exclusive-label info.open-cluster-management.io/region=eu",
			body: `"clusterSelector":{"selectorType":"ExclusiveLabel","exclusiveLabel":{"key":"info.open-cluster-management.io/region","value":"eu"}}`},
		"by labels": {selector: "env=test,tier notin (gold)", body: `"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"env":"test"},` +
			`"matchExpressions":[{"key":"tier","operator":"NotIn","values":["gold"]}]}`},
		"by a label without a value": {args: "--exclusive-label region", fails: `--exclusive-label must be KEY=VALUE, not "region"`},
		"by a label that is none":    {args: "--exclusive-label a_/b=c", fails: `--exclusive-label must be KEY=VALUE, not "a_/b=c": `},
		"by a selector that is none": {args: "--selector a=b=c", fails: "--selector: "},
		"by both":                    {args: "--selector a=b --exclusive-label a=b", fails: "none of the others can be"},
		"of two names":               {args: "other", fails: "takes the name of a cluster set, not 2 arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewServer(t)
			config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
			args := append([]string{"create", "clusterset", "payments"}, strings.Fields(test.args)...)
			if test.selector != "" {
				args = append(args, "--selector", test.selector)
			}
			stdout, _, err := clitest.Run(t, config, args...)
			if test.fails != "" {
				if err == nil || stdout != "" {
					t.Fatalf("it goes on: %v, %q", err, stdout)
				}
				clitest.Says(t, err.Error(), test.fails)
				s.WantAsked()
				return
			}
			if err != nil || stdout != "managedclusterset/payments created\n" {
				t.Fatalf("%v: %q", err, stdout)
			}
			clitest.Says(t, s.Bodies["POST "+setsV1beta1], `"name":"payments"`, test.body)
		})
	}
}

// TestCreateClusterSet_Existing verifies that an existing set is not changed, and that the command fails if the set should have a certain
// selector.
func TestCreateClusterSet_Existing(t *testing.T) {
	s := clitest.NewServer(t)
	s.Refuse("POST "+setsV1beta1, apierrors.NewAlreadyExists(v1beta2.Resource("managedclustersets"), "payments"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	if got := clitest.MustRun(t, config, "create", "clusterset", "payments"); got != "managedclusterset/payments unchanged\n" {
		t.Errorf("it says %q", got)
	}
	if _, _, err := clitest.Run(t, config, "create", "clusterset", "payments", "--exclusive-label", "a=b"); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a set that is there, with another selector: %v", err)
	}
}

func TestDeleteClusterSet(t *testing.T) {
	elsewhere := newBinding("payments")
	elsewhere.Namespace = "team-b"
	s := clitest.NewServer(t, clitest.NewSet("payments"), clitest.NewSet("default"), newBinding("payments"), newBinding("other"), elsewhere)
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	for _, hubs := range []string{"default", "global"} {
		if _, _, err := clitest.Run(t, config, "delete", "clusterset", hubs); err == nil || !strings.Contains(err.Error(), "would create it again") {
			t.Errorf("%s: %v", hubs, err)
		}
	}
	_, _, err := clitest.Run(t, config, "delete", "clusterset", "payments")
	if err == nil {
		t.Fatal("a set that is bound is deleted")
	}
	clitest.Says(t, err.Error(), "the set payments is bound to the namespaces team-a, team-b: kubectl hub unbind payments --namespace team-a first")
	s.WantUnchanged()

	if got := clitest.MustRun(t, config, "unbind", "payments", "--namespace", "team-a"); got != "managedclusterset/payments unbound from namespace team-a\n" {
		t.Errorf("unbind says %q", got)
	}
	clitest.MustRun(t, config, "unbind", "payments", "-n", "team-b")
	// The deletion names the UID of the set that was read. Warnings of the hub are printed.
	s.On["DELETE "+clitest.SetsPath+"/payments"] = func(w http.ResponseWriter, _ []byte) bool {
		w.Header().Add("Warning", `299 - "the set has 2 members"`)
		return false
	}
	stdout, stderr, err := clitest.Run(t, config, "delete", "clusterset", "payments", "--wait")
	if err != nil || stdout != "managedclusterset \"payments\" deleted\n" || stderr != "Warning: the set has 2 members\n" {
		t.Errorf("%v: %q, %q", err, stdout, stderr)
	}
	clitest.Says(t, s.Bodies["DELETE "+clitest.SetsPath+"/payments"], `"preconditions":{"uid":`)
	delete(s.On, "DELETE "+clitest.SetsPath+"/payments")
	if got := clitest.MustRun(t, config, "delete", "clusterset", "payments"); got != "managedclusterset \"payments\" not found\n" {
		t.Errorf("again, it says %q", got)
	}
	if s.Get(bindingsPath+"/other") == nil || s.Get(clitest.SetsPath+"/default") == nil {
		t.Errorf("there are only %q", s.Paths())
	}
}

// TestDeleteClusterSet_WithoutRightToListBindings verifies that a user who may delete the set does not need permission to list all bindings.
func TestDeleteClusterSet_WithoutRightToListBindings(t *testing.T) {
	s := clitest.NewServer(t, clitest.NewSet("payments"))
	s.Refuse(allBindings, clitest.Forbidden("managedclustersetbindings", "list"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	stdout, stderr, err := clitest.Run(t, config, "delete", "clusterset", "payments")
	if err != nil || stdout != "managedclusterset \"payments\" deleted\n" {
		t.Errorf("%v: %q", err, stdout)
	}
	clitest.Says(t, stderr, "Warning: you may not see which namespaces the set payments is bound to")
	s.Put(clitest.NewSet("payments"))
	s.Refuse(allBindings, apierrors.NewServiceUnavailable("away"))
	if _, _, err := clitest.Run(t, config, "delete", "clusterset", "payments"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("without an answer it goes on: %v", err)
	}
}

// TestBind: clusteradm has the same commands below clusterset.
func TestBind(t *testing.T) {
	for _, words := range [][]string{nil, {"clusterset"}} {
		s := clitest.NewServer(t, clitest.NewSet("payments"))
		config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
		command := func(args ...string) []string {
			return append(append(words[:len(words):len(words)], args...), "--namespace", "team-a")
		}
		if _, _, err := clitest.Run(t, config, command("bind", "nothing")...); !apierrors.IsNotFound(err) {
			t.Errorf("a set that is not there is bound: %v", err)
		}
		for _, want := range []string{"bound to", "already bound to"} {
			if got := clitest.MustRun(t, config, command("bind", "payments")...); got != "managedclusterset/payments "+want+" namespace team-a\n" {
				t.Errorf("it says %q", got)
			}
		}
		if made := s.Get(bindingsPath + "/payments"); made == nil {
			t.Errorf("there are %q", s.Paths())
		} else if set, _, _ := unstructured.NestedString(made.Object, "spec", "clusterSet"); set != "payments" {
			t.Errorf("the binding is %v", made)
		}
		for _, want := range []string{"unbound from", "already unbound from"} {
			if got := clitest.MustRun(t, config, command("unbind", "payments")...); got != "managedclusterset/payments "+want+" namespace team-a\n" {
				t.Errorf("it says %q", got)
			}
		}
	}
}

// TestBind_NamespaceOfContext verifies that the default namespace is the one of the context.
func TestBind_NamespaceOfContext(t *testing.T) {
	s := clitest.NewServer(t, clitest.NewSet("payments"))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	if got := clitest.MustRun(t, config, "bind", "payments", "-o", "json"); !strings.Contains(got, `"namespace": "default"`) || !strings.Contains(got, `"changed": true`) {
		t.Errorf("it says %q", got)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const operatorPath = "/apis/apps/v1/namespaces/clusterhub-operator/deployments/hub-operator"

// newInstalling is newDetaching on a management cluster without hub-operator.
func newInstalling(t *testing.T) *detaching {
	t.Helper()
	d := newDetaching(t)
	d.args = slices.DeleteFunc(d.args, func(arg string) bool { return arg == "--skip-operator" })
	return d
}

func TestJoinDetached_InstallsTheOperator(t *testing.T) {
	d := newInstalling(t)
	// Its kinds are served after a moment.
	looks := 0
	d.management.On["GET /apis/operator.open-cluster-management.io/v1"] = func(w http.ResponseWriter, _ []byte) bool {
		looks++
		if looks < 4 {
			_, status := clitest.StatusOf(apierrors.NewNotFound(schema.GroupResource{}, ""))
			clitest.WriteJSON(w, http.StatusNotFound, status)
		}
		return looks < 4
	}
	_, stderr, err := d.run(t)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		made := d.management.Get(clitest.PathOf(o.Object))
		if made == nil || made.GetLabels()[deploy.LabelManagedBy] != deploy.ManagedBy || !strings.Contains(stderr, kit.Created(o)+"\n") {
			t.Errorf("%s: %v, and it says %s", remote.IDOf(o), made, stderr)
		}
	}
	deployment := &appsv1.Deployment{}
	d.management.As(operatorPath, deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Image != "clusterhub/hub-operator:v1.2.3" || !slices.Contains(container.Args, "--agent-image=clusterhub/hub-agent:v1.2.3") {
		t.Errorf("it runs %s with %q", container.Image, container.Args)
	}
	for _, server := range []string{"hub-apiserver", "hub-controller-manager", "cluster-provider"} {
		if flag := "--" + server + "-image=clusterhub/" + server + ":v1.2.3"; !slices.Contains(container.Args, flag) {
			t.Errorf("without %s it makes hubs of another version: %q", flag, container.Args)
		}
	}
	before := d.management.Paths()
	_, stderr, err = d.run(t)
	if err != nil || strings.Contains(stderr, " created\n") || !slices.Equal(before, d.management.Paths()) {
		t.Errorf("again: %v: %s", err, stderr)
	}
}

// TestJoinDetached_UpdatesTheOperator verifies that an existing hub-operator is changed only if it is older and ours.
func TestJoinDetached_UpdatesTheOperator(t *testing.T) {
	ours := map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}
	for name, test := range map[string]struct {
		image  string
		labels map[string]string
		more   []string
		want   string
		said   string
	}{
		"an older one":             {"clusterhub/hub-operator:v1.2.2", ours, nil, "clusterhub/hub-operator:v1.2.3", ""},
		"the same":                 {"clusterhub/hub-operator:v1.2.3", ours, nil, "clusterhub/hub-operator:v1.2.3", ""},
		"a later one":              {"clusterhub/hub-operator:v1.10.0", ours, nil, "clusterhub/hub-operator:v1.10.0", ""},
		"one of no version":        {"clusterhub/hub-operator:main", ours, nil, "clusterhub/hub-operator:main", ""},
		"an older one of others":   {"clusterhub/hub-operator:v1.2.2", nil, nil, "clusterhub/hub-operator:v1.2.2", "is clusterhub/hub-operator:v1.2.2, which is older than clusterhub/hub-operator:v1.2.3. kubectl hub did not install it"},
		"an older one, left alone": {"clusterhub/hub-operator:v1.2.2", ours, []string{"--skip-operator"}, "clusterhub/hub-operator:v1.2.2", ""},
		"another place": {"clusterhub/hub-operator:v1.2.2", ours, []string{"--operator-image", "r.example.com:5000/m/hub-operator:v1.2.4"},
			"r.example.com:5000/m/hub-operator:v1.2.4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newInstalling(t)
			d.management.Put(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusterhub-operator", Name: management.OperatorName, Labels: test.labels},
				Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: management.OperatorName, Image: test.image}}}}}})
			_, stderr, err := d.run(t, test.more...)
			if err != nil {
				t.Fatal(err)
			}
			clitest.Says(t, stderr, test.said)
			deployment := &appsv1.Deployment{}
			d.management.As(operatorPath, deployment)
			if got := deployment.Spec.Template.Spec.Containers[0].Image; got != test.want {
				t.Errorf("it runs %s, want %s", got, test.want)
			}
			if args := deployment.Spec.Template.Spec.Containers[0].Args; name == "another place" && !slices.Contains(args, "--agent-image=r.example.com:5000/m/hub-agent:v1.2.4") {
				t.Errorf("agents have %q", args)
			}
		})
	}
}

func TestJoinDetached_ReportsWhyOperatorIsNotInstalled(t *testing.T) {
	crd := func() *unstructured.Unstructured {
		objects, err := deploy.Operator{}.Objects()
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return remote.IDOf(o).GroupKind == kit.CRDKind })
		return objects[at]
	}
	for name, test := range map[string]struct {
		given func(*detaching)
		more  []string
		want  []string
	}{
		"the operator of others": {given: func(d *detaching) { d.management.PutRaw(crd()) }, want: []string{"the management cluster has the CustomResourceDefinition", "which kubectl hub did not create",
			"add --skip-operator", "Open Cluster Management's operator"}},
		"something in its place": {given: func(d *detaching) {
			d.management.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "clusterhub-operator", Name: management.OperatorName}})
		}, want: []string{"ServiceAccount clusterhub-operator/hub-operator already exists and was not created by kubectl hub"}},
		"no rights": {given: func(d *detaching) { d.management.Allow(false) }, want: []string{"this user may not create customresourcedefinitions.apiextensions.k8s.io on the management cluster",
			"which is needed to install hub-operator: have an admin of it run this command, or install hub-operator, and add --skip-operator"}},
		"rights that cannot be given": {given: func(d *detaching) {
			d.management.Refuse("POST /apis/rbac.authorization.k8s.io/v1/clusterroles", apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "", errOf("attempting to grant RBAC permissions not currently held")))
		}, want: []string{"this user may not grant hub-operator the rights of ClusterRole clusterhub:hub-operator", "Have an admin of the management cluster install hub-operator"}},
		"no image": {more: []string{"--operator-image", ""}, want: []string{"--operator-image must be set to an image of hub-operator, or --skip-operator"}},
		"no name":  {more: []string{"--operator-image", "a b"}, want: []string{`--operator-image must be the name of an image, not "a b"`}},
		"not there, and not to be made": {given: func(d *detaching) {
			d.management.Refuse("GET /apis/operator.open-cluster-management.io/v1", apierrors.NewNotFound(schema.GroupResource{}, ""))
		}, more: []string{"--skip-operator"}, want: []string{"the management cluster does not serve Klusterlets: install hub-operator there, or omit --skip-operator"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newInstalling(t)
			if test.given != nil {
				test.given(d)
			}
			before := d.management.Paths()
			_, _, err := d.run(t, test.more...)
			if err == nil {
				t.Fatal("it goes on")
			}
			clitest.Says(t, command.ErrorLine(err), test.want...)
			if after := d.management.Paths(); !slices.Equal(before, after) {
				t.Errorf("it has made %q", after)
			}
		})
	}
}

// TestJoinDetached_ResumesOperatorInstallation verifies that an installation that ended before the Deployment, which is created last, is done again.
func TestJoinDetached_ResumesOperatorInstallation(t *testing.T) {
	d := newInstalling(t)
	_, _, err := clitest.RunIn(d.management.InterruptedAt("PATCH "+operatorPath, 1), t, d.config, d.args...)
	if err == nil {
		t.Fatal("it goes on")
	}
	d.management.Mu.Lock()
	delete(d.management.Objects, operatorPath)
	d.management.Mu.Unlock()
	if _, _, err := d.run(t); err != nil || d.management.Get(operatorPath) == nil {
		t.Errorf("again: %v", err)
	}
}

type errOf string

func (e errOf) Error() string { return string(e) }

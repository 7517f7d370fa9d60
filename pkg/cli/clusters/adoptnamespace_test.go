// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func inC1(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "c1", Name: name} }

// TestAccept_AdoptsEmptyNamespace verifies that a namespace that existed before its cluster is adopted if it has nothing in it that gives
// permissions to others, or that others could lose.
func TestAccept_AdoptsEmptyNamespace(t *testing.T) {
	now := metav1.Now()
	usual := []runtime.Object{&corev1.ServiceAccount{ObjectMeta: inC1("default")}, &corev1.ConfigMap{ObjectMeta: inC1("kube-root-ca.crt")}}
	for name, test := range map[string]struct {
		namespace *corev1.Namespace
		cluster   string
		has       []runtime.Object
		refuse    map[string]*apierrors.StatusError
		want      string
		unchanged bool
	}{
		"an empty one":                  {namespace: &corev1.Namespace{}},
		"one with other labels":         {namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}},
		"none":                          {unchanged: true},
		"the cluster's own":             {namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{registration.ClusterNameLabel: "c1"}}}, unchanged: true},
		"another cluster's":             {namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{registration.ClusterNameLabel: "c2"}}}, want: "says that it belongs to cluster c2"},
		"one that goes":                 {namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, want: "it is being deleted"},
		"one of Kubernetes":             {namespace: &corev1.Namespace{}, cluster: "kube-node-lease", want: "it belongs to Kubernetes or to the hub"},
		"one of the hub":                {namespace: &corev1.Namespace{}, cluster: "clusterhub-access", want: "it belongs to Kubernetes or to the hub"},
		"the default":                   {namespace: &corev1.Namespace{}, cluster: "default", want: "it belongs to Kubernetes or to the hub"},
		"one with a Secret":             {namespace: &corev1.Namespace{}, has: []runtime.Object{&corev1.Secret{ObjectMeta: inC1("token")}}, want: "it must be empty, but has secrets token"},
		"one with a binding":            {namespace: &corev1.Namespace{}, has: []runtime.Object{&rbacv1.RoleBinding{ObjectMeta: inC1(registration.InspectorRoleBinding)}}, want: "but has rolebindings.rbac.authorization.k8s.io "},
		"one that may not be looked in": {namespace: &corev1.Namespace{}, refuse: map[string]*apierrors.StatusError{"GET /api/v1/namespaces/c1/secrets": clitest.Forbidden("secrets", "list")}, want: "its contents could not be listed"},
		"one that may not be seen":      {namespace: &corev1.Namespace{}, refuse: map[string]*apierrors.StatusError{"GET /api/v1/namespaces/c1": clitest.Forbidden("namespaces", "get")}, want: "getting the namespace of its name"},
		"one that may not be labelled":  {namespace: &corev1.Namespace{}, refuse: map[string]*apierrors.StatusError{"PATCH /api/v1/namespaces/c1": clitest.Forbidden("namespaces", "patch")}, want: "labelling the namespace of its name"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := "c1"
			if test.cluster != "" {
				cluster = test.cluster
			}
			s := clitest.NewServer(t, append(usual, test.has...)...)
			s.Put(clitest.NewCluster(cluster, nil))
			if test.namespace != nil {
				test.namespace.Name, test.namespace.UID, test.namespace.ResourceVersion = cluster, "1", "7"
				s.Put(test.namespace)
			}
			for request, err := range test.refuse {
				s.Refuse(request, err)
			}
			stdout, stderr, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "accept", "--clusters", cluster, "--adopt-namespace", "-o", "json")
			accepted, _, _ := nestedBool(s, clitest.ClustersPath+"/"+cluster)
			if test.want != "" {
				if err == nil || !strings.Contains(command.ErrorLine(err), test.want) || accepted {
					t.Errorf("accepted is %t, it says %v, want %s", accepted, err, test.want)
				}
				return
			}
			if err != nil || !accepted || strings.Contains(stdout, `"adoptedNamespace": true`) == test.unchanged || (stderr == "") != test.unchanged {
				t.Fatalf("accepted is %t, it says %v, %s, %s", accepted, err, stdout, stderr)
			}
			if namespace := s.Get("/api/v1/namespaces/c1"); namespace != nil && namespace.GetLabels()[registration.ClusterNameLabel] != "c1" {
				t.Errorf("the labels are %v", namespace.GetLabels())
			}
			if body := s.Bodies["PATCH /api/v1/namespaces/c1"]; !test.unchanged && (!strings.Contains(body, `"uid":"1"`) || !strings.Contains(body, `"resourceVersion":"7"`)) {
				t.Errorf("it sends %s", body)
			}
		})
	}
}

// TestAccept_DoesNotLabelNamespaceWithoutFlag verifies that no namespace is labeled without the flag.
func TestAccept_DoesNotLabelNamespaceWithoutFlag(t *testing.T) {
	s := clitest.NewServer(t, clitest.NewCluster("c1", nil), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}})
	clitest.MustRun(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "accept", "--clusters", "c1")
	if labels := s.Get("/api/v1/namespaces/c1").GetLabels(); len(labels) > 0 {
		t.Errorf("it has the labels %v", labels)
	}
}

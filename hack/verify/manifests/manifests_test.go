// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests holds all manifests that there are to rules that no API server knows.
package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const root = "../../../artifacts/deploy"

// strict refuses fields that there are not.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// decoded are the objects of kinds that the rules are about.
func decoded(t *testing.T, text []byte) (objects []runtime.Object) {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		object, _, err := strict.Decode(raw.Raw, nil, nil)
		switch {
		case runtime.IsNotRegisteredError(err): // as APIServices are
		case err != nil:
			t.Fatal(err)
		default:
			objects = append(objects, object)
		}
	}
}

func built(t *testing.T, overlay string) []runtime.Object {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, overlay))
	if err != nil {
		t.Fatal(err)
	}
	text, err := all.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, text)
}

// agents returns the objects that kubectl hub deploys to a managed cluster.
func agents(t *testing.T) []runtime.Object {
	t.Helper()
	objects, err := deploy.Agent{Image: "clusterhub/hub-agent:v1", Hub: "hub"}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return typed(t, objects)
}

func typed(t *testing.T, objects []*unstructured.Unstructured) []runtime.Object {
	t.Helper()
	var text bytes.Buffer
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(data)
		text.WriteString("\n")
	}
	return decoded(t, text.Bytes())
}

// TestManifests_FollowRules builds every kustomization. A component is deployed by an overlay of a user, and has no pods.
func TestManifests_FollowRules(t *testing.T) {
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	sets := map[string][]runtime.Object{"kubectl hub join": agents(t)}
	for _, folder := range folders {
		file, err := os.ReadFile(filepath.Join(root, folder.Name(), "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(file, []byte("\nkind: Component\n")) {
			sets[folder.Name()] = built(t, folder.Name())
		}
	}
	for name, objects := range sets {
		for _, finding := range findings(objects) {
			if name == teams && strings.HasSuffix(finding, noNamespace) {
				continue // it is the team's
			}
			t.Errorf("%s: %s", name, finding)
		}
	}
	if len(sets) < 4 {
		t.Errorf("there are only %d sets of manifests", len(sets))
	}
}

// teams is the folder of an agent in a namespace that is there already.
const teams = "agent-namespace"

// What a user applies who has rights in one namespace is in that namespace: a kustomization that sets a namespace moves all of it.
func TestManifests_NamespacedStayInNamespace(t *testing.T) {
	objects, moved := built(t, teams), 0
	for _, o := range objects {
		object, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		if object.GetNamespace() != registration.AgentNamespace {
			t.Errorf("%T %s is in the namespace %q", o, object.GetName(), object.GetNamespace())
		}
		if binding, ok := o.(*rbacv1.RoleBinding); ok {
			moved += len(binding.Subjects)
			for _, s := range binding.Subjects {
				if s.Namespace != registration.AgentNamespace || s.Name != registration.AgentServiceAccount {
					t.Errorf("%s is for %v", binding.Name, s)
				}
			}
		}
	}
	if len(objects) < 7 || moved != 2 {
		t.Errorf("there are %d objects with %d subjects", len(objects), moved)
	}
}

// TestFindings breaks each rule.
func TestFindings(t *testing.T) {
	of := func(objects []runtime.Object, name string) *appsv1.Deployment {
		for _, o := range objects {
			if d, ok := o.(*appsv1.Deployment); ok && d.Name == name {
				return d
			}
		}
		t.Fatalf("there is no Deployment %s", name)
		return nil
	}
	container := func(change func(*corev1.Container)) func([]runtime.Object) []runtime.Object {
		return func(objects []runtime.Object) []runtime.Object {
			change(&of(objects, "hub-apiserver").Spec.Template.Spec.Containers[0])
			return objects
		}
	}
	without := func(is func(runtime.Object) bool) func([]runtime.Object) []runtime.Object {
		return func(objects []runtime.Object) []runtime.Object { return slices.DeleteFunc(objects, is) }
	}
	for want, change := range map[string]func([]runtime.Object) []runtime.Object{
		"Namespace clusterhub-access: the label": func(objects []runtime.Object) []runtime.Object {
			for _, o := range objects {
				if n, ok := o.(*corev1.Namespace); ok && n.Name == "clusterhub-access" {
					n.Labels = nil
				}
			}
			return objects
		},
		"the image clusterhub/hub-apiserver has neither": container(func(c *corev1.Container) { c.Image = "clusterhub/hub-apiserver" }),
		"the image r:5000/hub:latest has neither":        container(func(c *corev1.Container) { c.Image = "r:5000/hub:latest" }),
		"the image r:5000/hub has neither":               container(func(c *corev1.Container) { c.Image = "r:5000/hub" }),
		"a limit of memory":                              container(func(c *corev1.Container) { c.Resources.Limits = nil }),
		"a limit of CPU delays":                          container(func(c *corev1.Container) { c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1") }),
		"a read-only root file system":                   container(func(c *corev1.Container) { c.SecurityContext.ReadOnlyRootFilesystem = nil }),
		"a liveness and a readiness probe":               container(func(c *corev1.Container) { c.LivenessProbe = nil }),
		"runAsNonRoot": func(objects []runtime.Object) []runtime.Object {
			of(objects, "hub-apiserver").Spec.Template.Spec.SecurityContext = nil
			return objects
		},
		"its replicas are not spread": func(objects []runtime.Object) []runtime.Object {
			of(objects, "hub-apiserver").Spec.Template.Spec.TopologySpreadConstraints = nil
			return objects
		},
		"its namespace, with its level": without(func(o runtime.Object) bool { _, is := o.(*corev1.Namespace); return is }),
		"no PodDisruptionBudget":        without(func(o runtime.Object) bool { _, is := o.(*policyv1.PodDisruptionBudget); return is }),
		"no NetworkPolicy says":         without(func(o runtime.Object) bool { _, is := o.(*networkingv1.NetworkPolicy); return is }),
		"which no Service leads to":     without(func(o runtime.Object) bool { _, is := o.(*corev1.Service); return is }),
		"opens the port 8443, which no Service": func(objects []runtime.Object) []runtime.Object {
			c := &of(objects, "hub-controller-manager").Spec.Template.Spec.Containers[0]
			c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return arg == "--metrics-secure" })
			return objects
		},
		"which no NetworkPolicy opens": policies(func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress = nil }),
		"opens all ports":              policies(func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress = make([]networkingv1.NetworkPolicyIngressRule, 1) }),
		"opens the port 22, which": policies(func(p *networkingv1.NetworkPolicy) {
			port := intstr.FromInt32(22)
			p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: &port}}})
		}),
	} {
		found := findings(change(built(t, "external-etcd")))
		if !slices.ContainsFunc(found, func(finding string) bool { return strings.Contains(finding, want) }) {
			t.Errorf("nothing is said of %q: %q", want, found)
		}
	}
}

func policies(change func(*networkingv1.NetworkPolicy)) func([]runtime.Object) []runtime.Object {
	return func(objects []runtime.Object) []runtime.Object {
		for _, o := range objects {
			if p, ok := o.(*networkingv1.NetworkPolicy); ok {
				change(p)
			}
		}
		return objects
	}
}

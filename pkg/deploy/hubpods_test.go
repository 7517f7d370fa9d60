// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// deployments returns the Deployments among the objects, decoded strictly.
func deployments(t *testing.T, objects []*unstructured.Unstructured) map[string]*appsv1.Deployment {
	t.Helper()
	all := map[string]*appsv1.Deployment{}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, d, true); err != nil {
			t.Fatalf("%s: %v", identity(o), err)
		}
		all[d.Name] = d
	}
	return all
}

// TestPods_ReachHubFromElsewhere: a pod that does not run on the hub has one credential, that of its own ServiceAccount of the hub.
func TestPods_ReachHubFromElsewhere(t *testing.T) {
	hub := Hub{Pods: Pods{Way: "w1"}, Address: ServiceAddress("elsewhere")}
	provider := ClusterProvider{Pods: Pods{Way: "w1"}}
	tried := 0
	for _, what := range []deployed{hub, provider} {
		_, management, err := what.Split("elsewhere")
		if err != nil {
			t.Fatal(err)
		}
		for name, d := range deployments(t, management) {
			pod := d.Spec.Template
			if pod.Annotations[annotationWay] != "w1" {
				t.Errorf("%s: the pods do not change with the way to the hub", name)
			}
			if m := pod.Spec.AutomountServiceAccountToken; m == nil || *m {
				t.Errorf("%s: the pods have a token of the management cluster", name)
			}
			if l := pod.Spec.EnableServiceLinks; l == nil || *l {
				t.Errorf("%s: the pods are told of other Services", name)
			}
			var secrets []string
			for _, v := range pod.Spec.Volumes {
				if v.Secret != nil {
					secrets = append(secrets, v.Secret.SecretName)
					if *v.Secret.DefaultMode != 0o440 || *pod.Spec.SecurityContext.FSGroup != *pod.Spec.SecurityContext.RunAsUser {
						t.Errorf("%s: the Secret has the mode %o, for the group %d", name, *v.Secret.DefaultMode, *pod.Spec.SecurityContext.FSGroup)
					}
				}
				if v.Projected != nil {
					t.Errorf("%s: a projected volume", name)
				}
			}
			if want := []string{KubeconfigSecret(pod.Spec.ServiceAccountName)}; !slices.Equal(secrets, want) {
				t.Errorf("%s has the Secrets %q, want %q", name, secrets, want)
			}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				tried++
				checkReaches(t, name, c)
			}
		}
		for _, o := range management {
			if mounted, ok := o.Object["automountServiceAccountToken"]; o.GetKind() == "ServiceAccount" && (!ok || mounted != false) {
				t.Errorf("%s gives tokens to pods", identity(o))
			}
		}
	}
	if tried != 5 {
		t.Errorf("%d containers, want those of the three servers and both of the provider", tried)
	}
}

func checkReaches(t *testing.T, deployment string, c corev1.Container) {
	t.Helper()
	want := []string{"--kubeconfig=/hub/config/kubeconfig"}
	if c.Name == APIServer {
		want = append(want, "--authentication-kubeconfig=/hub/config/kubeconfig", "--authorization-kubeconfig=/hub/config/kubeconfig")
	}
	for _, flag := range want {
		if !slices.Contains(c.Args, flag) {
			t.Errorf("%s: %s has no %s", deployment, c.Name, flag)
		}
	}
	if i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == KubeconfigFolder }); i < 0 || !c.VolumeMounts[i].ReadOnly {
		t.Errorf("%s: %s does not mount its kubeconfig, to read only", deployment, c.Name)
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil || e.Name == "POD_NAMESPACE" && e.Value != ProviderNamespace {
			t.Errorf("%s: %s is told %v, which is not about the hub", deployment, c.Name, e)
		}
	}
}

func TestPods_FollowOptions(t *testing.T) {
	selector := map[string]any{"a": "b"}
	common := Pods{
		Replicas: map[string]int64{Manager: 3}, Args: map[string][]string{Manager: {"--registration-drivers=csr"}},
		PullSecret: "pull", NodeSelector: selector, Tolerations: []any{map[string]any{"key": "k", "operator": "Exists"}},
	}
	external := common
	external.EtcdServers, external.EtcdSecret = []string{"https://a:2379", "https://b:2379"}, "my-etcd"
	embedded := common
	embedded.Volume, embedded.StorageClass = resource.MustParse("5Gi"), "fast"

	of := deployments(t, objectsOf(t, Hub{ExternalEtcd: true, Pods: external}))
	for name, d := range of {
		pod := d.Spec.Template.Spec
		if pod.NodeSelector["a"] != "b" || len(pod.Tolerations) != 1 || len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != "pull" {
			t.Errorf("%s is not where it was asked for, or without its secret for images", name)
		}
		if pod.AutomountServiceAccountToken != nil {
			t.Errorf("%s runs on the hub and has no token of it", name)
		}
		if got, want := slices.Contains(pod.Containers[0].Args, "--registration-drivers=csr"), name == Manager; got != want {
			t.Errorf("%s has the flag: %t", name, got)
		}
	}
	if got := *of[Manager].Spec.Replicas; got != 3 {
		t.Errorf("%d replicas", got)
	}
	server := of[APIServer].Spec.Template.Spec
	if !slices.Contains(server.Containers[0].Args, "--etcd-servers=https://a:2379,https://b:2379") || strings.Contains(strings.Join(server.Containers[0].Args, " "), "etcd.clusterhub-system") {
		t.Errorf("the flags are %q", server.Containers[0].Args)
	}
	if !slices.ContainsFunc(server.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "my-etcd" }) {
		t.Error("the etcd's secret is not the given one")
	}
	objects := objectsOf(t, Hub{Pods: embedded})
	if args := deployments(t, objects)[APIServer].Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--embedded-etcd-quota-backend-bytes=2147483648") {
		t.Errorf("the database may be larger than its volume has room for: %q", args)
	}
	for _, o := range objects {
		if o.GetKind() == "PersistentVolumeClaim" {
			class, _, _ := unstructured.NestedString(o.Object, "spec", "storageClassName")
			size, _, _ := unstructured.NestedString(o.Object, "spec", "resources", "requests", "storage")
			if class != "fast" || size != "5Gi" {
				t.Errorf("the volume is of %s, %s", class, size)
			}
		}
	}
	// The quota of the manifests is the one of their volume.
	if Quota(resource.MustParse("10Gi")) != 4294967296 || Quota(resource.MustParse("1Ti")) != maxQuota {
		t.Error("the quota is not two fifths of the volume, and 8 GiB at most")
	}
}

func TestAddress_OfServerForHub(t *testing.T) {
	for what, test := range map[string]struct {
		address Address
		kinds   []string
		port    int64
	}{
		"the Service":     {ServiceAddress("blue"), []string{"Service"}, 443},
		"a name":          {Address{"hub.example.com", 8443}, []string{"Service"}, 8443},
		"an IPv4 address": {Address{"192.0.2.1", 8443}, []string{"Service", "EndpointSlice"}, 443},
		"an IPv6 address": {Address{"2001:db8::1", 8443}, []string{"Service", "EndpointSlice"}, 443},
	} {
		hub, _, err := Hub{Address: test.address}.Split("blue")
		if err != nil {
			t.Fatal(err)
		}
		first := slices.IndexFunc(hub, func(o *unstructured.Unstructured) bool { return o.GetKind() == "APIService" })
		var kinds []string
		for _, o := range hub[first-len(test.kinds) : first] {
			kinds = append(kinds, o.GetKind())
			if o.GetNamespace() != ManagerNamespace || o.GetName() != APIServer {
				t.Errorf("%s: %s is not what APIServices name", what, identity(o))
			}
		}
		if !slices.Equal(kinds, test.kinds) {
			t.Errorf("%s: the hub has %q before the APIServices, want %q", what, kinds, test.kinds)
		}
		for _, o := range hub[first:] {
			if port, _, _ := unstructured.NestedInt64(o.Object, "spec", "service", "port"); port != test.port {
				t.Errorf("%s: %s has the port %d, want %d", what, identity(o), port, test.port)
			}
		}
	}
}

func TestAddress_RejectsInvalid(t *testing.T) {
	for want, address := range map[string]Address{
		"port must be from 1 to 65535, not 0":     {Host: "a.example.com"},
		"port must be from 1 to 65535, not 65536": {"a.example.com", 65536},
		"a DNS name or an IP address":             {"A_b", 443},
		"not \"a:443\"":                           {"a:443", 443},
		"not \"https://a\"":                       {"https://a", 443},
		"omit its zone":                           {"fe80::1%eth0", 443},
		"write an IPv4 address as IPv4":           {"::ffff:192.0.2.1", 443},
		"127.0.0.1 is not an address":             {"127.0.0.1", 443},
		"169.254.169.254 is not an address":       {"169.254.169.254", 443},
		"0.0.0.0 is not an address":               {"0.0.0.0", 443},
	} {
		if _, _, err := (Hub{Address: address}).Split("blue"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q, got %v", address, want, err)
		}
	}
}

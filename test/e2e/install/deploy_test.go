// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// manifests are the objects that kustomize renders from an overlay, as far as they concern kubelets.
type manifests struct {
	deployments      map[string]*appsv1.Deployment
	services         []*corev1.Service
	budgets          []*policyv1.PodDisruptionBudget
	claims, accounts map[string]bool
}

func rendered(t *testing.T, overlay string) (all manifests) {
	t.Helper()
	data := harness.Must(exec.CommandContext(t.Context(), harness.Binary(t, "kubectl"), "kustomize", harness.Overlay(overlay)).Output())(t)
	all = manifests{deployments: map[string]*appsv1.Deployment{}, claims: map[string]bool{}, accounts: map[string]bool{}}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Raw, nil, nil)
		switch o := object.(type) {
		case *appsv1.Deployment:
			all.deployments[o.Name] = o
		case *corev1.Service:
			all.services = append(all.services, o)
		case *policyv1.PodDisruptionBudget:
			all.budgets = append(all.budgets, o)
		case *corev1.PersistentVolumeClaim:
			all.claims[o.Name] = true
		case *corev1.ServiceAccount:
			all.accounts[o.Name] = true
		case nil:
			if !runtime.IsNotRegisteredError(err) { // such as APIServices
				t.Fatal(err)
			}
		}
	}
}

// flag returns the value of a container's flag.
func flag(c corev1.Container, name string) string {
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// portOf returns the number of the container's port that a probe or Service names.
func portOf(c corev1.Container, port intstr.IntOrString) string {
	for _, p := range c.Ports {
		if p.Name == port.StrVal || p.ContainerPort == port.IntVal {
			return fmt.Sprint(p.ContainerPort)
		}
	}
	return "none"
}

// probed returns the result of a kubelet's probe of the process that runs on the shared hub.
func probed(t *testing.T, component, path string) int {
	t.Helper()
	client, url := http.DefaultClient, ""
	if component == "hub-apiserver" {
		config := rest.AnonymousClientConfig(harness.Hub(t).HubAPIServerConfig(0))
		client, url = harness.Must(rest.HTTPClientFor(config))(t), config.Host
	} else {
		var ports map[string]int
		if err := json.Unmarshal(harness.Must(os.ReadFile(filepath.Join(harness.Hub(t).Dir(), "ports.json")))(t), &ports); err != nil {
			t.Fatal(err)
		}
		// hub-certificate-approver is the same binary, and does not run on a hub without registration.
		url = fmt.Sprintf("http://127.0.0.1:%d", ports["hub-controller-manager/health"])
	}
	response := harness.Must(client.Get(url + path))(t)
	_ = response.Body.Close()
	return response.StatusCode
}

// TestDeploy_PartsFitTogether verifies the consistency of the manifests that only a kubelet would check otherwise.
func TestDeploy_PartsFitTogether(t *testing.T) {
	t.Parallel()
	for _, overlay := range []string{"base", "external-etcd"} {
		all := rendered(t, overlay)
		for _, name := range []string{"hub-apiserver", "hub-controller-manager", "hub-certificate-approver"} {
			t.Run(overlay+", "+name, func(t *testing.T) {
				d := all.deployments[name]
				pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
				listens, scheme := flag(c, "secure-port"), corev1.URISchemeHTTPS
				if name != "hub-apiserver" {
					_, listens, _ = strings.Cut(flag(c, "health-probe-bind-address"), ":")
					scheme = corev1.URISchemeHTTP
				}
				for what, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
					if probe == nil && what == "startup" && name != "hub-apiserver" {
						continue // it loads nothing
					}
					if probe == nil {
						t.Errorf("there is no %s probe", what)
						continue
					}
					get := probe.HTTPGet
					// A kubelet retries, too: a new leader is not ready until its controllers run.
					harness.Eventually(t, "the "+what+" probe that asks for "+get.Path, func(context.Context) (bool, error) {
						code := probed(t, name, get.Path)
						return harness.Holds(code == http.StatusOK, code)
					})
					port, by := portOf(c, get.Port), cmp.Or(get.Scheme, corev1.URISchemeHTTP)
					if port != listens || by != scheme || get.Host != "" {
						t.Errorf("the %s probe asks port %s of %q by %s, the container listens on %s by %s", what, port, get.Host, by, listens, scheme)
					}
				}
				if !all.accounts[pod.ServiceAccountName] {
					t.Errorf("there is no ServiceAccount %s", pod.ServiceAccountName)
				}
				for _, v := range pod.Volumes {
					if claim := v.PersistentVolumeClaim; claim != nil && !all.claims[claim.ClaimName] {
						t.Errorf("there is no PersistentVolumeClaim %s", claim.ClaimName)
					}
				}
				if name == "hub-apiserver" {
					checkFiles(t, c)
				}
				if !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Error("the root file system can be written")
				}
				if names := all.selects(d.Spec.Selector.MatchLabels); !slices.Equal(names, []string{name}) {
					t.Errorf("the Deployment selects the pods of %v", names)
				}
			})
		}
		served := all.deployments["hub-apiserver"].Spec.Template.Spec.Containers[0]
		for _, s := range all.services {
			if names := all.selects(s.Spec.Selector); !slices.Equal(names, []string{"hub-apiserver"}) {
				t.Errorf("%s: the Service %s selects the pods of %v", overlay, s.Name, names)
			}
			for _, port := range s.Spec.Ports {
				if to := portOf(served, port.TargetPort); to != flag(served, "secure-port") {
					t.Errorf("%s: port %d of the Service %s leads to %s", overlay, port.Port, s.Name, to)
				}
			}
		}
		protected := map[string]bool{}
		for _, b := range all.budgets {
			names := all.selects(b.Spec.Selector.MatchLabels)
			if len(names) != 1 {
				t.Errorf("%s: the PodDisruptionBudget %s selects the pods of %v", overlay, b.Name, names)
			}
			for _, name := range names {
				protected[name] = true
			}
		}
		if len(all.services) == 0 || !protected["hub-apiserver"] || !protected["hub-certificate-approver"] {
			t.Errorf("%s: %d Services, PodDisruptionBudgets of %v", overlay, len(all.services), protected)
		}
	}
}

// selects returns the names of the Deployments whose pods a selector matches.
func (m manifests) selects(selector map[string]string) (names []string) {
	for name, d := range m.deployments {
		if len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(d.Spec.Template.Labels)) {
			names = append(names, name)
		}
	}
	return names
}

// checkFiles checks that the directory and the files in hub-apiserver's flags are in volumes: the data of the embedded etcd, or the credentials for
// an external one. The rest of the file system is read-only.
func checkFiles(t *testing.T, c corev1.Container) {
	t.Helper()
	on := func(file string) *corev1.VolumeMount {
		for _, m := range c.VolumeMounts {
			if strings.HasPrefix(path.Clean(file)+"/", path.Clean(m.MountPath)+"/") {
				return &m
			}
		}
		return nil
	}
	if flag(c, "etcd-servers") == "" {
		if m := on(flag(c, "data-dir")); m == nil || m.ReadOnly {
			t.Errorf("--data-dir is %q, the volumes are %v", flag(c, "data-dir"), c.VolumeMounts)
		}
		return
	}
	for _, name := range []string{"etcd-cafile", "etcd-certfile", "etcd-keyfile"} {
		if on(flag(c, name)) == nil {
			t.Errorf("--%s is %q, the volumes are %v", name, flag(c, name), c.VolumeMounts)
		}
	}
	if dir := flag(c, "data-dir"); dir != "" {
		t.Errorf("--data-dir is %q beside an external etcd", dir)
	}
}

// TestDeploy_PodsAreRestricted creates a pod of each Deployment, in dry run, in a namespace that admits only restricted pods.
func TestDeploy_PodsAreRestricted(t *testing.T) {
	namespace, client := harness.NewNamespace(t), harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1()
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	harness.Must(client.Namespaces().Patch(t.Context(), namespace, "application/merge-patch+json", label, metav1.PatchOptions{}))(t)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, overlay := range []string{"base", "external-etcd", "cluster-provider"} {
		for name, d := range rendered(t, overlay).deployments {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: d.Spec.Template.Spec.ServiceAccountName}}
			if overlay != "external-etcd" { // it has the Deployments of base
				harness.Must(client.ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}))(t)
			}
			pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
			pod.Name = name
			config, w := harness.Warned(harness.Hub(t).AdminConfig())
			if _, err := harness.Kube(t, config).CoreV1().Pods(namespace).Create(t.Context(), pod, dry); err != nil || len(w.All) > 0 {
				t.Errorf("%s, %s: %v %q", overlay, name, err, w.All)
			}
			// Other pods are rejected, so the namespace is restricted.
			pod.Spec.HostNetwork = true
			_, err := client.Pods(namespace).Create(t.Context(), pod, dry)
			harness.WantForbidden(t, err, "PodSecurity")
		}
	}
}

// TestDeploy_ManifestsAreAccepted applies the manifests to a real kube-apiserver, in dry run.
func TestDeploy_ManifestsAreAccepted(t *testing.T) {
	h := harness.Hub(t)
	for overlay, replicas := range map[string]int32{"base": 1, "external-etcd": 3} {
		cmd := h.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-o", "json", "-k", harness.Overlay(overlay))
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", overlay, err, &said)
		}
		var applied struct{ Items []json.RawMessage }
		if err := json.Unmarshal(out, &applied); err != nil {
			t.Fatalf("%s: %v: %s", overlay, err, out)
		}
		var d *appsv1.Deployment
		for _, item := range applied.Items {
			object, _, _ := scheme.Codecs.UniversalDeserializer().Decode(item, nil, nil) // nil for kinds that are not Kubernetes' own
			if found, ok := object.(*appsv1.Deployment); ok && found.Name == "hub-apiserver" {
				d = found
			}
		}
		if d == nil {
			t.Fatalf("%s: there is no Deployment hub-apiserver: %s", overlay, out)
		}
		if *d.Spec.Replicas != replicas {
			t.Errorf("%s: %d replicas, want %d", overlay, *d.Spec.Replicas, replicas)
		}
		if replicas > 1 && hasVolume(d, "data") {
			t.Errorf("%s: three replicas share a volume", overlay)
		}
	}
	// The flags in it exist.
	data := harness.Must(exec.CommandContext(t.Context(), harness.Binary(t, "kubectl"), "kustomize", harness.Overlay("external-etcd")).Output())(t)
	for _, line := range strings.Split(string(data), "\n") {
		if flag, ok := strings.CutPrefix(strings.TrimSpace(line), "- --"); ok {
			name, _, _ := strings.Cut(flag, "=")
			known := false
			for _, component := range []string{"hub-apiserver", "hub-controller-manager"} {
				help, _ := exec.CommandContext(t.Context(), harness.Binary(t, component), "--help").CombinedOutput()
				known = known || strings.Contains(string(help), "--"+name+" ")
			}
			if !known {
				t.Errorf("--%s is no flag of ours", name)
			}
		}
	}
}

func hasVolume(d *appsv1.Deployment, name string) bool {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name == name {
			return true
		}
	}
	return false
}

// TestDeploy_ComponentsAddAndRemoveRights renders the hub with each component.
func TestDeploy_ComponentsAddAndRemoveRights(t *testing.T) {
	t.Parallel()
	kustomize := func(components ...string) string {
		t.Helper()
		dir := harness.Must(os.MkdirTemp(harness.Overlay(""), ".test-"))(t) // kustomize supports relative paths only
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		file := "resources: [../base]\ncomponents: ["
		for _, c := range components {
			file += "../" + c + ","
		}
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(file+"]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return string(harness.Must(exec.CommandContext(t.Context(), harness.Binary(t, "kubectl"), "kustomize", dir).Output())(t))
	}
	all := kustomize()
	const approver, accept, remove = "\n  name: hub-certificate-approver\n", "  - managedclusters/accept\n", "name: clusterhub:hub-controller-manager:leftovers\n"
	if !strings.Contains(all, approver) || strings.Contains(all, accept) || strings.Contains(all, remove) {
		t.Error("base has not what it should have")
	}
	if got := kustomize("manual-certificates"); strings.Contains(got, approver) || strings.Contains(got, "\n  - certificatesigningrequests/approval\n") ||
		!strings.Contains(got, "name: hub-controller-manager\n") {
		t.Error("hub-certificate-approver is not left out")
	}
	if !strings.Contains(kustomize("auto-approval"), accept) || !strings.Contains(kustomize("leftovers"), remove) {
		t.Error("components do not add their rights")
	}
}

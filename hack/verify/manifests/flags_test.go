// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// TestDeployments_MatchSettingsTable compares each Deployment with the table, in both directions: a setting that is lost is named with
// what it is there for, and a new one needs a reason. What all pods have in common, TestManifests_FollowRules looks at.
func TestDeployments_MatchSettingsTable(t *testing.T) {
	table := map[string]map[string][]setting{
		"base":             {"hub-apiserver": embeddedEtcd, "hub-controller-manager": hubManager, "hub-certificate-approver": hubApprover},
		"external-etcd":    {"hub-apiserver": externalEtcd, "hub-controller-manager": hubManager, "hub-certificate-approver": hubApprover},
		"cluster-provider": {"cluster-provider-kubeconfig": slices.Concat(hubProvider, podNamespace)},
		"operator":         {"hub-operator": hubOperator},
		"agent":            {"hub-agent": registering},
		"kubectl hub join": {"hub-agent": registering},
		"klusterlet":       {"klusterlet-registration-agent": registering, "klusterlet-work-agent": working},
		"agent-namespace": {"hub-agent": slices.Concat(registering, []setting{
			{"--namespace-scoped", "it has rights in one namespace, and ends when it asks for more"},
			{"--works", "it brings the services of its edge node"},
			{"--edge", "it makes an edge node of the cluster"},
		})},
		"klusterlet-detached": {
			"klusterlet-registration-agent": slices.Concat(registering, detached, []setting{
				{"mount /spoke/config Secret external-managed-kubeconfig-registration read-only", "a kubeconfig with the rights of this part"}}),
			"klusterlet-work-agent": slices.Concat(working, detached, []setting{
				{"no token", "it has nothing to ask of the cluster that runs it"},
				{"mount /spoke/config Secret external-managed-kubeconfig-work read-only", "a kubeconfig with the rights of this part"}}),
		},
		"a hub elsewhere": {
			"hub-apiserver":            slices.Concat(embeddedEtcd, elsewhere, delegated, mounted("hub-apiserver")),
			"hub-controller-manager":   slices.Concat(hubManager, elsewhere, mounted("hub-controller-manager")),
			"hub-certificate-approver": slices.Concat(hubApprover, elsewhere, mounted("hub-certificate-approver")),
		},
		"a provider elsewhere": {"cluster-provider-kubeconfig": slices.Concat(hubProvider, elsewhere, mounted("cluster-provider-kubeconfig"), []setting{
			{"init: --kubeconfig=/hub/config/kubeconfig", "it acts on the hub, and not on the cluster that runs the pod"},
			{"init: mount /hub/config Secret cluster-provider-kubeconfig-kubeconfig read-only", "the only credential of the pod"},
			{"env POD_NAMESPACE=openmcp-system", "the namespace on the hub: that of the pod is another"},
			{"init: env POD_NAMESPACE=openmcp-system", "the same as for the container that stays"},
		})},
	}
	for set, objects := range workloads(t) {
		if strings.HasSuffix(set, " elsewhere") { // the others are held to the rules by TestManifests_FollowRules
			for _, finding := range findings(objects) {
				t.Errorf("%s: %s", set, finding)
			}
		}
		for _, o := range objects {
			switch o.(type) {
			case *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job, *batchv1.CronJob, *corev1.Pod:
				t.Errorf("%s has a %T, whose settings nothing looks at", set, o)
			}
			d, ok := o.(*appsv1.Deployment)
			if !ok {
				continue
			}
			want, ok := table[set][d.Name]
			if !ok {
				t.Errorf("%s: the table has no Deployment %s", set, d.Name)
				continue
			}
			delete(table[set], d.Name)
			for _, difference := range unlisted(d, objects, want) {
				t.Errorf("%s: Deployment %s %s", set, d.Name, difference)
			}
		}
	}
	for set, deployments := range table {
		for name := range deployments {
			t.Errorf("%s: there is no Deployment %s", set, name)
		}
	}
}

// workloads returns what each folder of artifacts/deploy has, and what pkg/deploy makes of them.
func workloads(t *testing.T) map[string][]runtime.Object {
	t.Helper()
	all := map[string][]runtime.Object{"kubectl hub join": agents(t)}
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		file, err := os.ReadFile(path.Join(root, folder.Name(), "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(file), "\nkind: Component\n") { // these add rights, and no pods
			all[folder.Name()] = built(t, folder.Name())
		}
	}
	pods := deploy.Pods{Way: "w"}
	for name, what := range map[string]interface {
		Split(namespace string) (hub, management []*unstructured.Unstructured, err error)
	}{
		"a hub elsewhere":      deploy.Hub{Pods: pods, Address: deploy.ServiceAddress("elsewhere")},
		"a provider elsewhere": deploy.ClusterProvider{Pods: pods},
	} {
		_, management, err := what.Split("elsewhere")
		if err != nil {
			t.Fatal(err)
		}
		all[name] = typed(t, management)
	}
	return all
}

// unlisted says what a Deployment lacks of the settings, and what it has besides.
func unlisted(d *appsv1.Deployment, objects []runtime.Object, want []setting) (found []string) {
	has, listed := settings(d, objects), sets.New[string]()
	for _, s := range want {
		if !has.Has(s.text) {
			found = append(found, fmt.Sprintf("lacks %q: %s", s.text, s.why))
		}
		listed.Insert(s.text)
	}
	for _, text := range sets.List(has.Difference(listed)) {
		name, _, _ := strings.Cut(text, "=")
		if why, ok := refused[name]; ok {
			found = append(found, fmt.Sprintf("must not have %q: %s", text, why))
			continue
		}
		found = append(found, fmt.Sprintf("has %q: list it with the reason for it", text))
	}
	return found
}

// settings returns what is set in a Deployment, except what all pods have in common and the size of containers.
func settings(d *appsv1.Deployment, objects []runtime.Object) sets.Set[string] {
	pod, all := d.Spec.Template.Spec, sets.New[string]()
	add := func(format string, args ...any) { all.Insert(fmt.Sprintf(format, args...)) }
	add("account %s", pod.ServiceAccountName)
	add("replicas %d", *d.Spec.Replicas)
	switch s := d.Spec.Strategy; {
	case s.RollingUpdate != nil:
		add("strategy %s surge %v unavailable %v after %ds", s.Type, s.RollingUpdate.MaxSurge, s.RollingUpdate.MaxUnavailable, d.Spec.MinReadySeconds)
	case s.Type != "":
		add("strategy %s", s.Type)
	default:
		add("strategy default")
	}
	if pod.PriorityClassName != "" {
		add("priority %s", pod.PriorityClassName)
	}
	if grace := pod.TerminationGracePeriodSeconds; grace != nil {
		add("grace %ds", *grace)
	}
	if mount := pod.AutomountServiceAccountToken; mount != nil && !*mount {
		add("no token")
	}
	if links := pod.EnableServiceLinks; links != nil && !*links {
		add("no service links")
	}
	if s := pod.SecurityContext; s != nil && s.RunAsUser != nil && s.RunAsGroup != nil {
		add("user %d:%d", *s.RunAsUser, *s.RunAsGroup)
	}
	if s := pod.SecurityContext; s != nil && s.FSGroup != nil {
		add("group of files %d", *s.FSGroup)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		add("namespaces of the host")
	}
	for _, o := range objects {
		if b, ok := o.(*policyv1.PodDisruptionBudget); ok && selects(b.Spec.Selector, d) {
			add("budget maxUnavailable %v %s", b.Spec.MaxUnavailable, *b.Spec.UnhealthyPodEvictionPolicy)
		}
	}
	for _, c := range pod.InitContainers {
		all = all.Union(ofSettings("init: ", c, pod.Volumes))
	}
	for _, c := range pod.Containers {
		all = all.Union(ofSettings("", c, pod.Volumes))
	}
	return all
}

// ofSettings returns what is set in a container.
func ofSettings(prefix string, c corev1.Container, volumes []corev1.Volume) sets.Set[string] {
	all := sets.New[string]()
	add := func(format string, args ...any) { all.Insert(prefix + fmt.Sprintf(format, args...)) }
	for _, arg := range slices.Concat(c.Command, c.Args) {
		add("%s", arg)
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			add("env %s %s", e.Name, e.ValueFrom.FieldRef.FieldPath)
		} else {
			add("env %s=%s", e.Name, e.Value)
		}
	}
	for _, p := range c.Ports {
		add("port %s %d", p.Name, p.ContainerPort)
	}
	for what, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe == nil {
			continue
		}
		scheme, tries := probe.HTTPGet.Scheme, ""
		if scheme == "" {
			scheme = corev1.URISchemeHTTP
		}
		if what == "startup" {
			tries = fmt.Sprintf(" %dx%ds", probe.FailureThreshold, probe.PeriodSeconds)
		}
		add("%s %s %s %v%s", what, scheme, probe.HTTPGet.Path, &probe.HTTPGet.Port, tries)
	}
	if c.TerminationMessagePolicy != "" {
		add("termination message %s", c.TerminationMessagePolicy)
	}
	for _, m := range c.VolumeMounts {
		of := ""
		for _, v := range volumes {
			switch {
			case v.Name != m.Name:
			case v.EmptyDir != nil:
				of = "emptyDir"
			case v.PersistentVolumeClaim != nil:
				of = "claim " + v.PersistentVolumeClaim.ClaimName
			case v.Secret != nil:
				of = "Secret " + v.Secret.SecretName
				if v.Secret.Optional != nil && *v.Secret.Optional {
					of += " optional"
				}
			default:
				of = "a volume of another kind"
			}
		}
		if m.ReadOnly {
			of += " read-only"
		}
		add("mount %s %s", m.MountPath, of)
	}
	return all
}

// TestDeployments_FlagsExist looks each flag up in the reference of the program, and the grace period up against the delay.
func TestDeployments_FlagsExist(t *testing.T) {
	for set, objects := range workloads(t) {
		for _, o := range objects {
			d, ok := o.(*appsv1.Deployment)
			if !ok {
				continue
			}
			pod := d.Spec.Template.Spec
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				program, _, _ := strings.Cut(path.Base(c.Image), ":")
				reference, err := os.ReadFile(path.Join("../../../docs/reference/cli", program+".md"))
				if err != nil {
					t.Fatal(err)
				}
				for _, arg := range c.Args {
					name, value, _ := strings.Cut(arg, "=")
					if strings.HasPrefix(name, "--") && !strings.Contains(string(reference), " "+name+" ") {
						t.Errorf("%s: Deployment %s: %s has no flag %s", set, d.Name, program, name)
					}
					if name != "--shutdown-delay-duration" {
						continue
					}
					// A request takes up to a minute, by --request-timeout.
					if delay, err := time.ParseDuration(value); err != nil || time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second < delay+time.Minute {
						t.Errorf("%s: Deployment %s is killed %ds after it is asked to end, in requests that began within the delay of %s", set, d.Name,
							*pod.TerminationGracePeriodSeconds, value)
					}
				}
			}
		}
	}
}

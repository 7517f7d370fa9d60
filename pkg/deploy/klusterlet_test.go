// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// klusterlets returns one Klusterlet of each mode.
func klusterlets() map[string]Klusterlet {
	return map[string]Klusterlet{
		"Default":         {Name: "k1", Namespace: "open-cluster-management-agent"},
		"Singleton":       {Name: "k1", Namespace: "open-cluster-management-x", Singleton: true},
		"Detached":        {Name: "k1", Namespace: "k1-open-cluster-management-agent", Detached: true, AgentNamespace: "k1-open-cluster-management-agent"},
		"Hosted":          {Name: "k1", Namespace: "open-cluster-management-x", Detached: true, AgentNamespace: "k1"},
		"SingletonHosted": {Name: "k1", Namespace: "open-cluster-management-x", Detached: true, AgentNamespace: "k1", Singleton: true},
	}
}

// namesOf returns the names of the objects of a kind, with their namespaces.
func namesOf(objects []*unstructured.Unstructured, kind string) (names []string) {
	for _, o := range objects {
		if o.GetKind() == kind {
			names = append(names, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
		}
	}
	slices.Sort(names)
	return names
}

// podOf returns the spec of the pods of a Deployment, and its flags.
func podOf(t *testing.T, objects []*unstructured.Unstructured, name string) (spec map[string]any, args []string) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == name {
			spec, _, _ = unstructured.NestedMap(o.Object, "spec", "template", "spec")
			args, _, _ = unstructured.NestedStringSlice(spec["containers"].([]any)[0].(map[string]any), "args")
			return spec, args
		}
	}
	t.Fatalf("there is no Deployment %s", name)
	return nil, nil
}

func TestKlusterlet_NamesByMode(t *testing.T) {
	for mode, test := range map[string]struct{ deployments, accounts, roles string }{
		"Default": {"open-cluster-management-agent/k1-registration-agent open-cluster-management-agent/k1-work-agent",
			"open-cluster-management-agent/k1-registration-sa open-cluster-management-agent/k1-work-sa", "open-cluster-management-agent"},
		"Singleton": {"open-cluster-management-x/k1-agent", "open-cluster-management-x/k1-agent-sa", "open-cluster-management-x"},
		"Detached": {"k1-open-cluster-management-agent/k1-registration-agent k1-open-cluster-management-agent/k1-work-agent",
			"k1-open-cluster-management-agent/k1-registration-sa k1-open-cluster-management-agent/k1-work-sa", "k1-open-cluster-management-agent"},
		"Hosted":          {"k1/k1-registration-agent k1/k1-work-agent", "k1/k1-registration-sa k1/k1-work-sa", "k1"},
		"SingletonHosted": {"k1/k1-agent", "k1/k1-agent-sa", "k1"},
	} {
		k := klusterlets()[mode]
		management := objectsOf(t, k)
		if k.Detached {
			var err error
			_, management, err = k.Split()
			if err != nil {
				t.Fatal(err)
			}
		}
		for kind, want := range map[string]string{"Deployment": test.deployments, "ServiceAccount": test.accounts,
			"Role": test.roles + "/clusterhub:hub-agent:k1", "RoleBinding": test.roles + "/clusterhub:hub-agent:k1"} {
			if got := strings.Join(namesOf(management, kind), " "); got != want {
				t.Errorf("%s: the %ss are %q, want %q", mode, kind, got, want)
			}
		}
	}
}

func TestKlusterlet_PodFlagsAndFiles(t *testing.T) {
	const health = "--health-probe-bind-address=:8082 "
	for name, test := range map[string]struct {
		mode, deployment, args, secrets string
		token                           bool
	}{
		"registration": {"Default", "k1-registration-agent", "--namespace=open-cluster-management-agent --cluster-name=c", "", true},
		"works": {"Default", "k1-work-agent", "--registration=false --works --hub-kubeconfig-dir=/spoke/hub-kubeconfig " +
			"--namespace=open-cluster-management-agent --agent-id=klusterlet-k1 --w", "/spoke/hub-kubeconfig=hub-kubeconfig-secret", true},
		"both": {"Singleton", "k1-agent", "--works --namespace=open-cluster-management-x --cluster-name=c --agent-id=klusterlet-k1 --w", "", true},
		"registration elsewhere": {"Hosted", "k1-registration-agent", "--detached --spoke-kubeconfig=/spoke/config/kubeconfig --namespace=k1 --spoke-namespace=open-cluster-management-x --cluster-name=c",
			"/spoke/config=external-managed-kubeconfig-registration", true},
		"works elsewhere": {"Hosted", "k1-work-agent", "--registration=false --works --hub-kubeconfig-dir=/spoke/hub-kubeconfig --detached " +
			"--spoke-kubeconfig=/spoke/config/kubeconfig --namespace=k1 --spoke-namespace=open-cluster-management-x --agent-id=klusterlet-k1 --w",
			"/spoke/config=external-managed-kubeconfig-work /spoke/hub-kubeconfig=hub-kubeconfig-secret", false},
		"both elsewhere": {"SingletonHosted", "k1-agent", "--detached --spoke-kubeconfig=/spoke/config/kubeconfig --works --namespace=k1 --spoke-namespace=open-cluster-management-x --cluster-name=c " +
			"--agent-id=klusterlet-k1 --w", "/spoke/config=external-managed-kubeconfig-agent", true},
	} {
		k := klusterlets()[test.mode]
		k.RegistrationArgs, k.WorkArgs = []string{"--cluster-name=c"}, []string{"--w"}
		spec, args := podOf(t, objectsOf(t, k), test.deployment)
		if got := strings.Join(args, " "); got != health+test.args {
			t.Errorf("%s: the flags are\n%s, want\n%s", name, got, health+test.args)
		}
		secrets := map[string]string{}
		volumes, _, _ := unstructured.NestedSlice(spec, "volumes")
		for _, v := range volumes {
			secrets[v.(map[string]any)["name"].(string)], _, _ = unstructured.NestedString(v.(map[string]any), "secret", "secretName")
		}
		var mounted []string
		mounts, _, _ := unstructured.NestedSlice(spec["containers"].([]any)[0].(map[string]any), "volumeMounts")
		for _, m := range mounts {
			m := m.(map[string]any)
			mounted = append(mounted, fmt.Sprintf("%s=%s", m["mountPath"], secrets[m["name"].(string)]))
		}
		slices.Sort(mounted)
		if got := strings.Join(mounted, " "); got != test.secrets || len(mounted) != len(volumes) {
			t.Errorf("%s: mounted is %q of %d volumes, want %q", name, got, len(volumes), test.secrets)
		}
		if token, said := spec["automountServiceAccountToken"]; (!said || token == true) != test.token {
			t.Errorf("%s: it has a token of its cluster: %v", name, token)
		}
	}
}

// TestKlusterlet_BothClustersAreOne: on one cluster no part copies anything of the hub into the namespace of the secrets.
func TestKlusterlet_BothClustersAreOne(t *testing.T) {
	for _, mode := range []string{"Detached", "Hosted", "SingletonHosted"} {
		for _, same := range []bool{false, true} {
			k := klusterlets()[mode]
			k.SameCluster = same
			for _, name := range namesOf(objectsOf(t, k), "Deployment") {
				_, name, _ = strings.Cut(name, "/")
				if _, args := podOf(t, objectsOf(t, k), name); slices.Contains(args, "--same-cluster") != same {
					t.Errorf("%s, %t: the flags of %s are %q", mode, same, name, args)
				}
			}
		}
	}
}

// TestKlusterlet_PreservesUserFlags: the name of the user's cluster may equal a name in the manifests.
func TestKlusterlet_PreservesUserFlags(t *testing.T) {
	k := klusterlets()["Hosted"]
	k.RegistrationArgs = []string{"--cluster-name=klusterlet-agents", "--cluster-annotations=a=$b $"}
	_, args := podOf(t, objectsOf(t, k), "k1-registration-agent")
	for _, arg := range k.RegistrationArgs {
		if !slices.Contains(args, arg) {
			t.Errorf("the flags are %q", args)
		}
	}
	// Nor what the kubelet would replace: variables of the pod must not be sent to the hub.
	k.RegistrationArgs, k.WorkArgs = []string{"--cluster-annotations=a=$(TOKEN)$b"}, []string{"--x=$$"}
	if _, args := podOf(t, objectsOf(t, k), "k1-registration-agent"); !slices.Contains(args, "--cluster-annotations=a=$$(TOKEN)$$b") {
		t.Errorf("the flags are %q", args)
	}
	if _, args := podOf(t, objectsOf(t, k), "k1-work-agent"); !slices.Contains(args, "--x=$$$$") {
		t.Errorf("the flags are %q", args)
	}
}

// TestKlusterlet_RightsOfEachPart: the rights of each part are those of ../agent and ../agent-works, and no part has those of the other.
func TestKlusterlet_RightsOfEachPart(t *testing.T) {
	for mode, k := range klusterlets() {
		registers, works := "k1-registration-sa", "k1-work-sa"
		if k.Singleton {
			registers, works = "k1-agent-sa", "k1-agent-sa"
		}
		managed, management := objectsOf(t, k), []*unstructured.Unstructured(nil)
		if k.Detached {
			var err error
			managed, management, err = k.Split()
			if err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]string{}
		for i, objects := range [][]*unstructured.Unstructured{managed, management} {
			side := []string{k.Namespace, k.AgentNamespace}[i]
			for _, o := range objects {
				subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
				for _, s := range subjects {
					s := s.(map[string]any)
					role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
					got[o.GetKind()+" "+role] = s["name"].(string)
					if s["namespace"] != side {
						t.Errorf("%s: %s is for %v", mode, identity(o), s)
					}
				}
			}
		}
		want := map[string]string{"RoleBinding clusterhub:hub-agent:k1": registers, "ClusterRoleBinding clusterhub:hub-agent:k1": registers,
			"ClusterRoleBinding clusterhub:hub-agent-works:k1": works, "ClusterRoleBinding admin": works,
			"ClusterRoleBinding clusterhub:hub-agent-works-namespaces:k1": works}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the rights are %v, want %v", mode, got, want)
		}
		// The rules are written once, in those two folders.
		rules := func(objects []*unstructured.Unstructured) map[string]string {
			all := map[string]string{}
			for _, o := range objects {
				if strings.HasSuffix(o.GetKind(), "Role") {
					all[o.GetKind()+" "+strings.TrimSuffix(o.GetName(), ":k1")] = fmt.Sprint(o.Object["rules"])
				}
			}
			return all
		}
		if got, want := fmt.Sprint(rules(objectsOf(t, k))), fmt.Sprint(rules(objectsOf(t, Agent{Works: Works{Role: "admin"}}))); got != want {
			t.Errorf("%s: the roles are %s, want %s", mode, got, want)
		}
	}
}

// TestKlusterlet_ManagedClusterHasNothingOfHub: a managed cluster whose agent runs elsewhere has no pod and nothing about the hub; the
// manifests have no credentials.
func TestKlusterlet_ManagedClusterHasNothingOfHub(t *testing.T) {
	for mode, k := range klusterlets() {
		if len(namesOf(objectsOf(t, k), "Secret")) > 0 {
			t.Errorf("%s: there is a Secret among the manifests", mode)
		}
		if !k.Detached {
			continue
		}
		managed, management, err := k.Split()
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"Deployment", "NetworkPolicy", "Role", "RoleBinding"} {
			if names := namesOf(managed, kind); len(names) > 0 {
				t.Errorf("%s: the managed cluster has %s %q", mode, kind, names)
			}
		}
		for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"} {
			if names := namesOf(management, kind); len(names) > 0 {
				t.Errorf("%s: the management cluster has %s %q", mode, kind, names)
			}
		}
		if names := namesOf(management, "Namespace"); !slices.Equal(names, []string{k.AgentNamespace}) {
			t.Errorf("%s: the namespaces of the pods are %q", mode, names)
		}
	}
}

func TestKlusterlets_ShareOnlyNamespacesAndDefinitions(t *testing.T) {
	first, second := klusterlets()["Default"], klusterlets()["Default"]
	second.Name = "k2"
	has := map[string]bool{}
	for _, o := range objectsOf(t, first) {
		has[identity(o)] = true
	}
	for _, o := range objectsOf(t, second) {
		if shared := o.GetKind() == "Namespace" || o.GetKind() == "CustomResourceDefinition"; has[identity(o)] != shared {
			t.Errorf("%s is of both: %t", identity(o), !shared)
		}
	}
	if !has["Namespace /"+registration.AgentNamespace] {
		t.Error("there is no namespace")
	}
}

func TestKlusterlet_Images(t *testing.T) {
	k := klusterlets()["Detached"]
	k.RegistrationImage, k.WorkImage = "r/a@sha256:1", "r:5000/b:2"
	k.Pod = func(spec map[string]any) { spec["priorityClassName"] = "high" }
	for deployment, want := range map[string]string{"k1-registration-agent": k.RegistrationImage, "k1-work-agent": k.WorkImage} {
		spec, _ := podOf(t, objectsOf(t, k), deployment)
		if got := spec["containers"].([]any)[0].(map[string]any)["image"]; got != want || spec["priorityClassName"] != "high" {
			t.Errorf("%s has the image %s, want %s, and %v", deployment, got, want, spec["priorityClassName"])
		}
	}
}

// TestKlusterlet_IAMRole: both parts assume the role, and the pods are recreated when it changes: EKS reads the account when a pod is created.
func TestKlusterlet_IAMRole(t *testing.T) {
	for mode, want := range map[string]int{"Default": 2, "Singleton": 1} {
		k := klusterlets()[mode]
		for _, o := range objectsOf(t, k) {
			if o.GetAnnotations()[annotationRole] != "" {
				t.Errorf("%s: without a role, %s has one", mode, identity(o))
			}
		}
		k.RoleARN = "arn:aws:iam::210987654321:role/r"
		accounts, pods := 0, 0
		for _, o := range objectsOf(t, k) {
			role, _, _ := unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", annotationRole)
			switch o.GetKind() {
			case "ServiceAccount":
				role = o.GetAnnotations()[annotationRole]
				accounts++
			case "Deployment":
				pods++
			default:
				continue
			}
			if role != k.RoleARN {
				t.Errorf("%s: %s has the role %q", mode, identity(o), role)
			}
		}
		if accounts != want || pods != want {
			t.Errorf("%s: there are %d accounts and %d Deployments, want %d of both", mode, accounts, pods, want)
		}
	}
}

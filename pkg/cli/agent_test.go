// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// newTeam returns a cluster with a namespace in which the user may do everything, and the required arguments of install.
func newTeam(t *testing.T) (cluster *fakeServer, config string, args []string) {
	t.Helper()
	hub := newServer(t)
	cluster = newServer(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}})
	hub.allow(true)
	cluster.allow(true)
	config = kubeconfig(t, map[string]*fakeServer{"c1": cluster})
	return cluster, config, []string{"agent", "install", "--namespace", "team-a", "--hub-token", bootstrapToken,
		"--hub-apiserver", hub.URL, "--ca-data", base64.StdEncoding.EncodeToString(hub.ca())}
}

const teamsDeployment = "/apis/apps/v1/namespaces/team-a/deployments/" + deploy.AgentName

func TestAgentInstall_PassesFlags(t *testing.T) {
	for name, test := range map[string]struct {
		change []string
		at     string
		want   string
	}{
		"of a namespace": {nil, teamsDeployment,
			"--namespace-scoped --works --edge --cluster-name=c1-team-a --registration-auth=csr --namespace=team-a --agent-id=team-a"},
		"of a namespace, said twice": {[]string{"--namespace-scoped"}, teamsDeployment,
			"--namespace-scoped --works --edge --cluster-name=c1-team-a --registration-auth=csr --namespace=team-a --agent-id=team-a"},
		"of a namespace, with a name": {[]string{"--cluster-name", "shop"}, teamsDeployment,
			"--namespace-scoped --works --edge --cluster-name=shop --registration-auth=csr --namespace=team-a --agent-id=team-a"},
	} {
		cluster, config, args := newTeam(t)
		if _, stderr, err := run(t, config, append(args, test.change...)...); err != nil {
			t.Fatalf("%s: %v: %s", name, err, stderr)
		}
		deployment := &appsv1.Deployment{}
		cluster.as(test.at, deployment)
		if got := strings.Join(deployment.Spec.Template.Spec.Containers[0].Args[1:], " "); got != test.want {
			t.Errorf("%s: the flags are %s, want %s", name, got, test.want)
		}
	}
	for name, test := range map[string]struct {
		change []string
		want   string
	}{
		"of the cluster": {nil, "--cluster-name=c1 --registration-auth=csr --edge --edge-namespace=openhorizon-agent --works --agent-id=" + registration.AgentNamespace},
		"with namespaces": {[]string{"--works=cluster-admin", "--edge-namespace", "services", "--cluster-name", "c2"},
			"--cluster-name=c2 --registration-auth=csr --edge --edge-namespace=services --works --agent-id=" + registration.AgentNamespace},
	} {
		cluster, config, args := newTeam(t)
		args = with(args, "--namespace", "-")
		stdout, stderr, err := run(t, config, append(args, test.change...)...)
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, stderr)
		}
		deployment := &appsv1.Deployment{}
		cluster.as(deploymentPath, deployment)
		if got := strings.Join(deployment.Spec.Template.Spec.Containers[0].Args[1:], " "); got != test.want {
			t.Errorf("%s: the flags are %s, want %s", name, got, test.want)
		}
		says(t, stdout, "in all namespaces.")
	}
}

// TestAgentInstall_FlagsAreValid verifies that the installed agent starts: hub-agent and the Job by which it leaves accept the flags.
func TestAgentInstall_FlagsAreValid(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	for _, scoped := range []bool{true, false} {
		cluster, config, args := newTeam(t)
		at := teamsDeployment
		if !scoped {
			at = deploymentPath
			args = with(args, "--namespace", "-")
		}
		if _, stderr, err := run(t, config, args...); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		deployment := &appsv1.Deployment{}
		cluster.as(at, deployment)
		o, flags := agent.NewOptions(), pflag.NewFlagSet("hub-agent", pflag.ContinueOnError)
		for _, set := range o.Flags().FlagSets {
			flags.AddFlagSet(set)
		}
		if err := errors.Join(flags.Parse(deployment.Spec.Template.Spec.Containers[0].Args), o.Validate()); err != nil {
			t.Errorf("one namespace is %t: %v", scoped, err)
		}
		if o.Spoke.NamespaceScoped != scoped || !o.Edge.Enabled || !o.Works.Enabled || o.Spoke.Namespace != deployment.Namespace || o.Works.AgentID != deployment.Namespace {
			t.Errorf("one namespace is %t: %+v", scoped, o)
		}
		job, err := unjoinJobOf(t.Context(), deployment, scoped)
		if err != nil {
			t.Fatal(err)
		}
		own := o.Spoke
		flags = pflag.NewFlagSet("unjoin", pflag.ContinueOnError)
		own.AddFlags(flags)
		if err := flags.Parse(job.Spec.Template.Spec.Containers[0].Args[1:]); err != nil {
			t.Errorf("one namespace is %t: the Job: %v", scoped, err)
		}
	}
}

func TestAgentInstall_InvalidArguments(t *testing.T) {
	for want, change := range map[string][]string{
		`--namespace: "A_B" is not the name of a namespace`:                                   {"--namespace", "A_B"},
		"--namespace must not be " + registration.AgentNamespace:                              {"--namespace", registration.AgentNamespace},
		"--namespace must not be kube-system for an agent of one namespace":                   {"--namespace", "kube-system"},
		"--namespace must be set with --namespace-scoped":                                     {"--namespace", "-", "--namespace-scoped=true", ""},
		"--cluster-scoped and --namespace-scoped exclude each other":                          {"--namespace-scoped=true", "", "--cluster-scoped=true", ""},
		"--cluster-scoped must be set with --namespace and --namespace-scoped=false":          {"--namespace-scoped=false", ""},
		"--works and --works-namespaces are for agents of a whole cluster (--cluster-scoped)": {"--works", "admin"},
		"--detect-cluster-labels is for agents of a whole cluster (--cluster-scoped)":         {"--detect-cluster-labels=true", ""},
		"--edge-namespace is for agents of a whole cluster (--cluster-scoped)":                {"--edge-namespace", "services"},
		"--registration-auth must be csr for an agent of one namespace, not awsirsa":          {"--registration-auth", "awsirsa"},
		"--hub-token must be set":                 {"--hub-token", "-"},
		`--cluster-name: "No" is not a DNS label`: {"--cluster-name", "No"},
		"--timeout must be above 0":               {"--timeout", "0s"},
	} {
		cluster, config, args := newTeam(t)
		args = slices.DeleteFunc(with(args, change...), func(arg string) bool { return arg == "" })
		_, _, err := run(t, config, args...)
		if err == nil || !strings.Contains(command.ErrorLine(err), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
		cluster.wantUnchanged()
	}
	for want, change := range map[string][]string{
		"--works must not be none":                                          {"--works", "none"},
		"--edge-namespace must not be agents, the agent's own":              {"--edge-namespace", "agents"},
		`--edge-namespace: "A" is not the name of a namespace`:              {"--edge-namespace", "A"},
		"--works-namespaces must not include agents: it is the agent's own": {"--works-namespaces", "agents"},
		"namespace elsewhere already has an agent of the whole cluster":     {"--cluster-name", "c1"},
	} {
		cluster, config, args := newTeam(t)
		cluster.put(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: deploy.AgentRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "elsewhere", Name: registration.AgentServiceAccount}}})
		args = with(append(args, "--cluster-scoped"), append([]string{"--namespace", "agents"}, change...)...)
		_, _, err := run(t, config, args...)
		if err == nil || !strings.Contains(command.ErrorLine(err), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
		cluster.wantUnchanged()
	}
	cluster, config, args := newTeam(t)
	now := metav1.Now()
	cluster.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", DeletionTimestamp: &now}})
	if _, _, err := run(t, config, args...); err == nil || !strings.Contains(err.Error(), "the namespace team-a is being deleted") {
		t.Errorf("it says %v", err)
	}
}

// TestAgentUninstall_UsesJobInNamespace verifies that an agent leaves by a Job in its own namespace, which needs no more permissions than it
// has. If the hub cannot be reached, the agent stays unless --force is set.
func TestAgentUninstall_UsesJobInNamespace(t *testing.T) {
	const jobs = "/apis/batch/v1/namespaces/team-a/jobs"
	for name, test := range map[string]struct {
		status batchv1.JobStatus
		args   []string
		want   string
		left   bool
	}{
		"the hub is told":     {batchv1.JobStatus{Succeeded: 1}, nil, "Cluster c1-team-a has left its hub.", false},
		"the hub is not told": {batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}, nil, "--force removes the agent anyway", true},
		"that is forced": {batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}, []string{"--force"},
			"The agent is removed. The hub was not notified", false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, config, args := newTeam(t)
			if _, _, err := run(t, config, args...); err != nil {
				t.Fatal(err)
			}
			secret := newIdentity(t, "c1-team-a", "https://hub")
			secret.Namespace = "team-a"
			cluster.put(secret)
			cluster.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "theirs"}})
			cluster.on["POST "+jobs] = func(http.ResponseWriter, []byte) bool {
				cluster.on["GET "+jobs+"/"+unjoinJob] = func(w http.ResponseWriter, _ []byte) bool {
					object, err := asMap(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: unjoinJob}, Status: test.status})
					if err == nil {
						writeJSON(w, http.StatusOK, object)
					}
					return err == nil
				}
				return false
			}
			stdout, _, err := run(t, config, append([]string{"agent", "uninstall", "--namespace", "team-a"}, test.args...)...)
			said := stdout
			if err != nil {
				said = command.ErrorLine(err)
			}
			says(t, said, test.want)
			job := &batchv1.Job{}
			if err := json.Unmarshal([]byte(cluster.bodies["POST "+jobs]), job); err != nil {
				t.Fatal(err)
			}
			if got := job.Spec.Template.Spec.Containers[0].Args; !slices.Equal(got[:3], []string{"unjoin", "--namespace=team-a", "--namespace-scoped"}) {
				t.Errorf("the Job runs %q", got)
			}
			want := []string{"/api/v1/namespaces/team-a", "/api/v1/namespaces/team-a/configmaps/theirs"}
			if left := cluster.paths(); slices.Equal(left, want) == test.left || test.left && cluster.get(teamsDeployment) == nil {
				t.Errorf("there are %q", left)
			}
		})
	}
}

// TestAgentUninstall_ResumesAfterInterruption verifies that an uninstall that was interrupted finds the remaining objects, and the cluster that they
// belong to.
func TestAgentUninstall_ResumesAfterInterruption(t *testing.T) {
	cluster, config, args := newTeam(t)
	if _, _, err := run(t, config, args...); err != nil {
		t.Fatal(err)
	}
	cluster.mu.Lock()
	delete(cluster.objects, teamsDeployment)
	cluster.mu.Unlock()
	// These objects remain of an uninstall that was interrupted after the hub had been notified.
	left := newIdentity(t, "c1-team-a", "")
	left.Namespace = "team-a"
	cluster.put(left)
	cluster.put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: unjoinJob, Labels: byUs.Labels}})
	// The agent of the whole cluster has the names that all agents have.
	cluster.put(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: deploy.AgentRole, Labels: byUs.Labels},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: registration.AgentNamespace, Name: registration.AgentServiceAccount}}})
	if stdout, stderr, err := run(t, config, "agent", "uninstall", "--namespace", "team-a"); err != nil {
		t.Fatalf("%v: %s %s", err, stdout, stderr)
	}
	if left, want := cluster.paths(), []string{"/api/v1/namespaces/team-a", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + deploy.AgentRole}; !slices.Equal(left, want) {
		t.Errorf("it has left %q, want %q", left, want)
	}
	if got := mustRun(t, config, "agent", "uninstall", "--namespace", "team-a", "-o", "json"); !strings.Contains(got, `"removed": false`) {
		t.Errorf("again it says %q", got)
	}
}

// TestAgentUninstall_RetainsObjectsOfOthers verifies that Deployments and Secrets of other owners in the namespace stay, and that a Job of another
// owner is a conflict.
func TestAgentUninstall_RetainsObjectsOfOthers(t *testing.T) {
	cluster, config, args := newTeam(t)
	if _, _, err := run(t, config, args...); err != nil {
		t.Fatal(err)
	}
	cluster.put(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: deploy.AgentName}})
	theirs := newIdentity(t, "another", "")
	theirs.Namespace = "team-a"
	cluster.put(theirs)
	const job = "/apis/batch/v1/namespaces/team-a/jobs/" + unjoinJob
	cluster.put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: unjoinJob}})
	before := cluster.paths()
	if _, _, err := run(t, config, "agent", "uninstall", "--namespace", "team-a"); err == nil || !strings.Contains(err.Error(), "the Job team-a/"+unjoinJob+" was not created by kubectl hub") {
		t.Errorf("it says %v", err)
	}
	if after := cluster.paths(); !slices.Equal(after, before) {
		t.Errorf("there are %q, and were %q", after, before)
	}
	cluster.mu.Lock()
	delete(cluster.objects, job)
	cluster.mu.Unlock()
	if _, stderr, err := run(t, config, "agent", "uninstall", "--namespace", "team-a"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	want := []string{"/api/v1/namespaces/team-a", "/api/v1/namespaces/team-a/secrets/" + registration.HubKubeconfigSecret, teamsDeployment}
	if left := cluster.paths(); !slices.Equal(left, want) {
		t.Errorf("it has left %q, want %q", left, want)
	}
}

// TestAgentUninstall_RetainsClusterAgentElsewhere verifies that uninstalling what remains of an agent of the whole cluster in one
// namespace deletes nothing of the agent in a different namespace.
func TestAgentUninstall_RetainsClusterAgentElsewhere(t *testing.T) {
	cluster, config, args := newTeam(t)
	if _, stderr, err := run(t, config, with(args, "--namespace", "-")...); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	before := cluster.paths()
	cluster.put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: registration.AgentServiceAccount, Labels: byUs.Labels}})
	if _, stderr, err := run(t, config, "agent", "uninstall", "--namespace", "team-a"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if after := cluster.paths(); !slices.Equal(after, before) {
		t.Errorf("there are %q, and were %q", after, before)
	}
}

// TestJoin_RefusesEdgeAgent: a join would remove the edge node without a warning.
func TestJoin_RefusesEdgeAgent(t *testing.T) {
	cluster, config, args := newTeam(t)
	args = with(args, "--namespace", "-")
	if _, stderr, err := run(t, config, args...); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	cluster.asked = nil
	_, _, err := run(t, config, append([]string{"join", "--cluster-name", "c1", "--works", "admin"}, args[2:]...)...)
	if err == nil || !strings.Contains(err.Error(), "the agent of this cluster makes it an edge node: run kubectl hub agent install") {
		t.Errorf("it says %v", err)
	}
	cluster.wantUnchanged()
}

func TestNameOfCluster(t *testing.T) {
	long := strings.Repeat("a", 70)
	for _, test := range []struct {
		cluster, namespace, want string
	}{
		{"prod", "", "prod"}, {"prod", "team-a", "prod-team-a"}, {"arn:aws:eks:eu-west-1:123456789012:cluster/Web_1", "shop", "web-1-shop"},
		{"gke_project_zone_web", "", "gke-project-zone-web"}, {"...", "team-a", ""}, {"", "team-a", ""}, {"https://", "", ""},
		{long, "", long[:54] + "-a8e63d9b"}, {strings.Repeat("a", 53) + "-b" + long, "", ""},
	} {
		config := clientcmdapi.NewConfig()
		config.Contexts["c"], config.CurrentContext = &clientcmdapi.Context{Cluster: test.cluster}, "c"
		file := t.TempDir() + "/kubeconfig"
		if err := clientcmd.WriteToFile(*config, file); err != nil {
			t.Fatal(err)
		}
		flags := genericclioptions.NewConfigFlags(true)
		flags.KubeConfig = &file
		o := &installOptions{joinOptions: &joinOptions{global: &global{flags: flags}, namespace: test.namespace, scoped: test.namespace != ""}}
		got := o.nameOfCluster()
		if len(test.cluster) > 60 {
			if len(got) > 63 || !strings.HasPrefix(got, "aaa") || strings.Contains(got, "--") || registration.CheckName(got) != nil {
				t.Errorf("%q gives %q", test.cluster, got)
			}
		} else if got != test.want {
			t.Errorf("%q and %q give %q, want %q", test.cluster, test.namespace, got, test.want)
		}
	}
}

// TestBindCommand verifies that the printed command can be pasted into a shell for any user name.
func TestBindCommand(t *testing.T) {
	for user, want := range map[string]string{
		"ann":                         "kubectl create rolebinding ann-admin --clusterrole=admin --user=ann --namespace=shop",
		"ann@example.com":             "kubectl create rolebinding ann-example-com-admin --clusterrole=admin --user=ann@example.com --namespace=shop",
		"system:serviceaccount:ci:me": "kubectl create rolebinding me-admin --clusterrole=admin --serviceaccount=ci:me --namespace=shop",
		"it's; rm -rf $HOME":          `kubectl create rolebinding it-s-rm-rf-home-admin --clusterrole=admin '--user=it'\''s; rm -rf $HOME' --namespace=shop`,
		"a\nb":                        `kubectl create rolebinding a-b-admin --clusterrole=admin '--user=a\nb' --namespace=shop`,
	} {
		if got := bindCommand(user, "shop"); got != want {
			t.Errorf("%q gives\n%s, want\n%s", user, got, want)
		}
	}
}

// TestAgentInstall_NamesRoleToRequest verifies that the error says whom to ask even if the cluster does not return the user's name.
func TestAgentInstall_NamesRoleToRequest(t *testing.T) {
	for name, want := range map[string]string{"ann": "--user=ann --namespace=team-a", "": "ask an admin of the cluster for the ClusterRole admin in the namespace team-a"} {
		cluster, config, args := newTeam(t)
		cluster.allow(false)
		if name == "" {
			cluster.refuse(whoAmI, forbidden("selfsubjectreviews", "create"))
		} else {
			cluster.answer(whoAmI, authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
				Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: name}}})
		}
		_, _, err := run(t, config, args...)
		if err == nil {
			t.Fatal("it goes on")
		}
		says(t, command.ErrorLine(err), "this user may not get, create, patch serviceaccounts in the namespace team-a; ", want)
		cluster.wantUnchanged()
	}
}

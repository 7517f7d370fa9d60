// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

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

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/join"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// newTeam returns a cluster with a namespace in which the user may do everything, and the required arguments of install.
func newTeam(t *testing.T) (cluster *clitest.Server, config string, args []string) {
	t.Helper()
	hub := clitest.NewServer(t)
	cluster = clitest.NewServer(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}})
	hub.Allow(true)
	cluster.Allow(true)
	config = clitest.Kubeconfig(t, map[string]*clitest.Server{"c1": cluster})
	return cluster, config, []string{"agent", "install", "--namespace", "team-a", "--hub-token", clitest.BootstrapToken,
		"--hub-apiserver", hub.URL, "--ca-data", base64.StdEncoding.EncodeToString(hub.CA())}
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
		if _, stderr, err := clitest.Run(t, config, append(args, test.change...)...); err != nil {
			t.Fatalf("%s: %v: %s", name, err, stderr)
		}
		deployment := &appsv1.Deployment{}
		cluster.As(test.at, deployment)
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
		args = clitest.With(args, "--namespace", "-")
		stdout, stderr, err := clitest.Run(t, config, append(args, test.change...)...)
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, stderr)
		}
		deployment := &appsv1.Deployment{}
		cluster.As(clitest.DeploymentPath, deployment)
		if got := strings.Join(deployment.Spec.Template.Spec.Containers[0].Args[1:], " "); got != test.want {
			t.Errorf("%s: the flags are %s, want %s", name, got, test.want)
		}
		clitest.Says(t, stdout, "in all namespaces.")
	}
}

// TestAgentInstall_FlagsAreValid verifies that the installed agent starts: hub-agent and the Job by which it leaves accept the flags.
func TestAgentInstall_FlagsAreValid(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	for _, scoped := range []bool{true, false} {
		cluster, config, args := newTeam(t)
		at := teamsDeployment
		if !scoped {
			at = clitest.DeploymentPath
			args = clitest.With(args, "--namespace", "-")
		}
		if _, stderr, err := clitest.Run(t, config, args...); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		deployment := &appsv1.Deployment{}
		cluster.As(at, deployment)
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
		job, err := join.UnjoinJobOf(t.Context(), deployment, scoped)
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
		args = slices.DeleteFunc(clitest.With(args, change...), func(arg string) bool { return arg == "" })
		_, _, err := clitest.Run(t, config, args...)
		if err == nil || !strings.Contains(command.ErrorLine(err), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
		cluster.WantUnchanged()
	}
	for want, change := range map[string][]string{
		"--works must not be none":                                          {"--works", "none"},
		"--edge-namespace must not be agents, the agent's own":              {"--edge-namespace", "agents"},
		`--edge-namespace: "A" is not the name of a namespace`:              {"--edge-namespace", "A"},
		"--works-namespaces must not include agents: it is the agent's own": {"--works-namespaces", "agents"},
		"namespace elsewhere already has an agent of the whole cluster":     {"--cluster-name", "c1"},
	} {
		cluster, config, args := newTeam(t)
		cluster.Put(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: deploy.AgentRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "elsewhere", Name: registration.AgentServiceAccount}}})
		args = clitest.With(append(args, "--cluster-scoped"), append([]string{"--namespace", "agents"}, change...)...)
		_, _, err := clitest.Run(t, config, args...)
		if err == nil || !strings.Contains(command.ErrorLine(err), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
		cluster.WantUnchanged()
	}
	cluster, config, args := newTeam(t)
	now := metav1.Now()
	cluster.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", DeletionTimestamp: &now}})
	if _, _, err := clitest.Run(t, config, args...); err == nil || !strings.Contains(err.Error(), "the namespace team-a is being deleted") {
		t.Errorf("it says %v", err)
	}
}

// TestAgentUninstall_UsesJobInNamespace verifies that an agent leaves by a Job in its own namespace, which needs no more permissions than it
// has. If the hub cannot be reached, the agent stays unless --force is set.
func TestAgentUninstall_UsesJobInNamespace(t *testing.T) {
	const jobs = "/apis/batch/v1/namespaces/team-a/jobs"
	for name, test := range map[string]struct {
		ConditionStatus batchv1.JobStatus
		args            []string
		want            string
		left            bool
	}{
		"the hub is told":     {batchv1.JobStatus{Succeeded: 1}, nil, "Cluster c1-team-a has left its hub.", false},
		"the hub is not told": {batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}, nil, "--force removes the agent anyway", true},
		"that is forced": {batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}, []string{"--force"},
			"The agent is removed. The hub was not notified", false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, config, args := newTeam(t)
			if _, _, err := clitest.Run(t, config, args...); err != nil {
				t.Fatal(err)
			}
			secret := clitest.NewIdentity(t, "c1-team-a", "https://hub")
			secret.Namespace = "team-a"
			cluster.Put(secret)
			cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "theirs"}})
			cluster.On["POST "+jobs] = func(http.ResponseWriter, []byte) bool {
				cluster.On["GET "+jobs+"/"+join.UnjoinJob] = func(w http.ResponseWriter, _ []byte) bool {
					object, err := clitest.AsMap(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: join.UnjoinJob}, Status: test.ConditionStatus})
					if err == nil {
						clitest.WriteJSON(w, http.StatusOK, object)
					}
					return err == nil
				}
				return false
			}
			stdout, _, err := clitest.Run(t, config, append([]string{"agent", "uninstall", "--namespace", "team-a"}, test.args...)...)
			said := stdout
			if err != nil {
				said = command.ErrorLine(err)
			}
			clitest.Says(t, said, test.want)
			job := &batchv1.Job{}
			if err := json.Unmarshal([]byte(cluster.Bodies["POST "+jobs]), job); err != nil {
				t.Fatal(err)
			}
			if got := job.Spec.Template.Spec.Containers[0].Args; !slices.Equal(got[:3], []string{"unjoin", "--namespace=team-a", "--namespace-scoped"}) {
				t.Errorf("the Job runs %q", got)
			}
			want := []string{"/api/v1/namespaces/team-a", "/api/v1/namespaces/team-a/configmaps/theirs"}
			if left := cluster.Paths(); slices.Equal(left, want) == test.left || test.left && cluster.Get(teamsDeployment) == nil {
				t.Errorf("there are %q", left)
			}
		})
	}
}

// TestAgentUninstall_ResumesAfterInterruption verifies that an uninstall that was interrupted finds the remaining objects, and the cluster that they
// belong to.
func TestAgentUninstall_ResumesAfterInterruption(t *testing.T) {
	cluster, config, args := newTeam(t)
	if _, _, err := clitest.Run(t, config, args...); err != nil {
		t.Fatal(err)
	}
	cluster.Mu.Lock()
	delete(cluster.Objects, teamsDeployment)
	cluster.Mu.Unlock()
	// These objects remain of an uninstall that was interrupted after the hub had been notified.
	left := clitest.NewIdentity(t, "c1-team-a", "")
	left.Namespace = "team-a"
	cluster.Put(left)
	cluster.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: join.UnjoinJob, Labels: kit.Owner.Labels}})
	// The agent of the whole cluster has the names that all agents have.
	cluster.Put(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: deploy.AgentRole, Labels: kit.Owner.Labels},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: registration.AgentNamespace, Name: registration.AgentServiceAccount}}})
	if stdout, stderr, err := clitest.Run(t, config, "agent", "uninstall", "--namespace", "team-a"); err != nil {
		t.Fatalf("%v: %s %s", err, stdout, stderr)
	}
	if left, want := cluster.Paths(), []string{"/api/v1/namespaces/team-a", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/" + deploy.AgentRole}; !slices.Equal(left, want) {
		t.Errorf("it has left %q, want %q", left, want)
	}
	if got := clitest.MustRun(t, config, "agent", "uninstall", "--namespace", "team-a", "-o", "json"); !strings.Contains(got, `"removed": false`) {
		t.Errorf("again it says %q", got)
	}
}

// TestAgentUninstall_RetainsObjectsOfOthers verifies that Deployments and Secrets of other owners in the namespace stay, and that a Job of another
// owner is a conflict.
func TestAgentUninstall_RetainsObjectsOfOthers(t *testing.T) {
	cluster, config, args := newTeam(t)
	if _, _, err := clitest.Run(t, config, args...); err != nil {
		t.Fatal(err)
	}
	cluster.Put(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: deploy.AgentName}})
	theirs := clitest.NewIdentity(t, "another", "")
	theirs.Namespace = "team-a"
	cluster.Put(theirs)
	const job = "/apis/batch/v1/namespaces/team-a/jobs/" + join.UnjoinJob
	cluster.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: join.UnjoinJob}})
	before := cluster.Paths()
	if _, _, err := clitest.Run(t, config, "agent", "uninstall", "--namespace", "team-a"); err == nil || !strings.Contains(err.Error(), "the Job team-a/"+join.UnjoinJob+" was not created by kubectl hub") {
		t.Errorf("it says %v", err)
	}
	if after := cluster.Paths(); !slices.Equal(after, before) {
		t.Errorf("there are %q, and were %q", after, before)
	}
	cluster.Mu.Lock()
	delete(cluster.Objects, job)
	cluster.Mu.Unlock()
	if _, stderr, err := clitest.Run(t, config, "agent", "uninstall", "--namespace", "team-a"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	want := []string{"/api/v1/namespaces/team-a", "/api/v1/namespaces/team-a/secrets/" + registration.HubKubeconfigSecret, teamsDeployment}
	if left := cluster.Paths(); !slices.Equal(left, want) {
		t.Errorf("it has left %q, want %q", left, want)
	}
}

// TestAgentUninstall_RetainsClusterAgentElsewhere verifies that uninstalling what remains of an agent of the whole cluster in one
// namespace deletes nothing of the agent in a different namespace.
func TestAgentUninstall_RetainsClusterAgentElsewhere(t *testing.T) {
	cluster, config, args := newTeam(t)
	if _, stderr, err := clitest.Run(t, config, clitest.With(args, "--namespace", "-")...); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	before := cluster.Paths()
	cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: registration.AgentServiceAccount, Labels: kit.Owner.Labels}})
	if _, stderr, err := clitest.Run(t, config, "agent", "uninstall", "--namespace", "team-a"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if after := cluster.Paths(); !slices.Equal(after, before) {
		t.Errorf("there are %q, and were %q", after, before)
	}
}

// TestJoin_RefusesEdgeAgent: a join would remove the edge node without a warning.
func TestJoin_RefusesEdgeAgent(t *testing.T) {
	cluster, config, args := newTeam(t)
	args = clitest.With(args, "--namespace", "-")
	if _, stderr, err := clitest.Run(t, config, args...); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	cluster.Asked = nil
	_, _, err := clitest.Run(t, config, append([]string{"join", "--cluster-name", "c1", "--works", "admin"}, args[2:]...)...)
	if err == nil || !strings.Contains(err.Error(), "the agent of this cluster makes it an edge node: run kubectl hub agent install") {
		t.Errorf("it says %v", err)
	}
	cluster.WantUnchanged()
}

// TestAgentInstall_NamesRoleToRequest verifies that the error says whom to ask even if the cluster does not return the user's name.
func TestAgentInstall_NamesRoleToRequest(t *testing.T) {
	for name, want := range map[string]string{"ann": "--user=ann --namespace=team-a", "": "ask an admin of the cluster for the ClusterRole admin in the namespace team-a"} {
		cluster, config, args := newTeam(t)
		cluster.Allow(false)
		if name == "" {
			cluster.Refuse(clitest.WhoAmI, clitest.Forbidden("selfsubjectreviews", "create"))
		} else {
			cluster.Answer(clitest.WhoAmI, authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
				Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: name}}})
		}
		_, _, err := clitest.Run(t, config, args...)
		if err == nil {
			t.Fatal("it goes on")
		}
		clitest.Says(t, command.ErrorLine(err), "this user may not get, create, patch serviceaccounts in the namespace team-a; ", want)
		cluster.WantUnchanged()
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TestLeaveJob_CopiesPodOfAgent verifies that the Job gets everything that an admin has added to the pod of the agent.
func TestLeaveJob_CopiesPodOfAgent(t *testing.T) {
	deployment := agentDeployment(t)
	spec := &deployment.Spec.Template.Spec
	spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "mine"}}
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}}
	spec.Containers = append([]corev1.Container{{Name: "sidecar"}}, spec.Containers...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job, err := (&managed{namespace: "n"}).unjoinJobFrom(ctx, deployment)
	if err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	c := pod.Containers[1]
	if pod.ServiceAccountName != "klusterlet-registration-sa" || pod.ImagePullSecrets[0].Name != "mine" || c.Env[0].Name != "HTTPS_PROXY" ||
		c.Image != "example.com/agent:1" || c.LivenessProbe != nil || !slices.Contains(c.Args, "--timeout=45s") {
		t.Errorf("the pod is %+v", pod)
	}
	if deployment.Spec.Template.Spec.Containers[1].LivenessProbe == nil {
		t.Error("the Deployment has changed")
	}
}

// unjoinJobOf returns the Job by which the agent of a Deployment unjoins.
func unjoinJobOf(ctx context.Context, deployment *appsv1.Deployment, scoped bool) (*batchv1.Job, error) {
	return (&managed{namespace: deployment.Namespace, scoped: scoped}).unjoinJobFrom(ctx, deployment)
}

func agentDeployment(t *testing.T, args ...string) *appsv1.Deployment {
	t.Helper()
	objects, err := deploy.Agent{Image: "example.com/agent:1", Args: args}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[len(objects)-1].Object, deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// TestAgent_FlagsAreValid verifies that the deployed agent starts: hub-agent accepts the flags.
func TestAgent_FlagsAreValid(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	for auth, more := range map[string][]string{
		kit.AuthCSR: nil,
		kit.AuthAWS: {"--hub-cluster-arn=arn:aws:eks:eu-west-1:123456789012:cluster/hub", "--managed-cluster-arn=arn:aws:eks:eu-west-1:123456789012:cluster/c1"},
	} {
		deployment := agentDeployment(t, append([]string{"--cluster-name=c1", "--registration-auth=" + auth}, more...)...)
		o := agent.NewOptions()
		flags := pflag.NewFlagSet("hub-agent", pflag.ContinueOnError)
		for _, set := range o.Flags().FlagSets {
			flags.AddFlagSet(set)
		}
		if err := errors.Join(flags.Parse(deployment.Spec.Template.Spec.Containers[0].Args), o.Validate()); err != nil {
			t.Errorf("%s: %v", auth, err)
		}
	}
}

func TestJoin_ReportsClusterURL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion": "v1", "kind": "Config", "contexts": [
		{"name": "far", "context": {"cluster": "far"}}, {"name": "near", "context": {"cluster": "near"}}], "clusters": [
		{"name": "far", "cluster": {"server": "https://c1.example.com"}}, {"name": "near", "cluster": {"server": "https://127.0.0.1:6443"}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ context, flag, want string }{
		{"far", "", "--cluster-server-url=https://c1.example.com"}, {"near", "", ""}, {"nowhere", "", ""},
		{"near", "https://other:6443", "--cluster-server-url=https://other:6443"},
	} {
		opts := &kit.Options{ConfigFlags: genericclioptions.NewConfigFlags(true)}
		*opts.ConfigFlags.KubeConfig, *opts.ConfigFlags.Context = file, c.context
		o := &joinOptions{Options: opts, serverURL: c.flag}
		if err := o.validateServerURL(); err != nil {
			t.Fatal(err)
		}
		deployed, err := o.agent()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, arg := range deployed.Args {
			if strings.HasPrefix(arg, "--cluster-server-url=") {
				got = arg
			}
		}
		if got != c.want || (got != "") != slices.Contains(deployed.Args, "--cluster-ca-file="+clusterCAFile) {
			t.Errorf("context %s, flag %q: %q", c.context, c.flag, deployed.Args)
		}
	}
	for _, wrong := range []string{"http://c1", "c1", "https://"} {
		if err := (&joinOptions{serverURL: wrong}).validateServerURL(); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func TestJoin_UpgradableIsForAgentsOnTheirCluster(t *testing.T) {
	o := newJoinOptions(&kit.Options{})
	o.upgradable, o.detached.Mode = true, management.ModeDetached
	if err := o.validateUpgradable(); err == nil || !strings.Contains(err.Error(), "--upgradable is for an agent that runs on its cluster") {
		t.Errorf("of a detached agent: %v", err)
	}
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
		o := &installOptions{joinOptions: &joinOptions{Options: &kit.Options{ConfigFlags: flags}, namespace: test.namespace, scoped: test.namespace != ""}}
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

// TestTakesOver verifies that impersonationRight returns the permissions by which others can act as a ServiceAccount of their namespace, and no others.
func TestTakesOver(t *testing.T) {
	for rule, want := range map[string]bool{
		"get,list,watch pods,configmaps,pods/log": false, "* events,leases": false, "create events": false, "get services": false,
		"get secrets": true, "list *": true, "watch pods,secrets": true, "create serviceaccounts/token": true, "impersonate serviceaccounts": true,
		"create pods": true, "patch pods": true, "get pods/exec": true, "get pods/*": true, "get */exec": true, "create deployments": true, "update jobs": true,
		"bind roles": true, "escalate roles": true, "create kafkas": true, "* configmaps": true, "get services/proxy": true,
	} {
		verbs, resources, _ := strings.Cut(rule, " ")
		got := impersonationRight(&rbacv1.PolicyRule{APIGroups: []string{"*"}, Verbs: strings.Split(verbs, ","), Resources: strings.Split(strings.TrimSpace(resources), ",")})
		if (got != "") != want {
			t.Errorf("%s: it says %q", rule, got)
		}
	}
}

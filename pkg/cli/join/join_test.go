// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// newJoining returns a hub, a cluster that joins it, and the required arguments of join.
func newJoining(t *testing.T) (hub, cluster *clitest.Server, config string, args []string) {
	t.Helper()
	hub, cluster = clitest.NewServer(t), clitest.NewServer(t)
	hub.Allow(true)
	config = clitest.Kubeconfig(t, map[string]*clitest.Server{"c1": cluster})
	return hub, cluster, config, []string{"join", "--hub-token", clitest.BootstrapToken, "--hub-apiserver", hub.URL,
		"--ca-data", base64.StdEncoding.EncodeToString(hub.CA()), "--cluster-name", "c1"}
}

func TestJoin_DeploysTheAgent(t *testing.T) {
	hub, cluster, config, args := newJoining(t)
	stdout, stderr, err := clitest.Run(t, config, args...)
	if err != nil || stdout != "The agent of cluster c1 is deployed.\nIt applies no works: join with --works to let it.\nOn the hub, accept it:\n\n    kubectl hub accept --clusters c1\n" {
		t.Fatalf("%v: %q", err, stdout)
	}
	objects, err := deploy.Agent{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		made := cluster.Get(clitest.PathOf(o.Object))
		if made == nil || made.GetLabels()[deploy.LabelManagedBy] != deploy.ManagedBy || !strings.Contains(stderr, kit.Created(o)+"\n") {
			t.Errorf("%s: %v, and it says %s", remote.IDOf(o), made, stderr)
		}
	}
	secret := &corev1.Secret{}
	cluster.As(clitest.AgentSecrets+registration.BootstrapSecret, secret)
	bootstrap, err := clientcmd.Load(secret.Data[registration.KeyKubeconfig])
	if err != nil || bootstrap.AuthInfos["hub"].Token != clitest.BootstrapToken || bootstrap.Clusters["hub"].Server != hub.URL ||
		string(bootstrap.Clusters["hub"].CertificateAuthorityData) != string(hub.CA()) {
		t.Errorf("the bootstrap kubeconfig is not what was given: %v", err)
	}
	deployment := &appsv1.Deployment{}
	cluster.As(clitest.DeploymentPath, deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	clitest.Says(t, strings.Join(container.Args, " "), "--cluster-name=c1", "--registration-auth=csr")
	if container.Image != "clusterhub/hub-agent:v1.2.3" {
		t.Errorf("the image is %s", container.Image)
	}
	// Each server gets its own credentials, and no others.
	if len(hub.Credentials) != 1 || !hub.Credentials["Bearer "+clitest.BootstrapToken] || len(cluster.Credentials) != 1 || !cluster.Credentials["Bearer "+clitest.UserToken] {
		t.Error("a server has seen the token of the other one")
	}
	hub.WantUnchanged()
	if got := hub.Asked[0]; !strings.HasPrefix(got, "POST "+clitest.ClustersPath+"?dryRun=All") {
		t.Errorf("the hub was asked for %s", got)
	}
	// Joining again without changes creates nothing.
	_, stderr, err = clitest.Run(t, config, args...)
	if err != nil || strings.Contains(stderr, " created\n") {
		t.Errorf("again: %v: %s", err, stderr)
	}
}

func TestJoin_PrintsManifests(t *testing.T) {
	_, cluster, config, args := newJoining(t)
	got := clitest.MustRun(t, config, append(args, "-o", "yaml", "--registration-auth", "awsirsa", "--hub-cluster-arn", clitest.HubARN, "--managed-cluster-arn", clitest.ManagedARN,
		"--image", "example.com/agent:1", "--cluster-server-url", "https://c1.example.com", "--hub-role-path", "/clusterhub/")...)
	clitest.Says(t, got, "kind: Deployment\n", "image: example.com/agent:1\n", "--managed-cluster-arn="+clitest.ManagedARN, "--hub-role-path=/clusterhub/\n", "--cluster-server-url=https://c1.example.com",
		"eks.amazonaws.com/role-arn: arn:aws:iam::210987654321:role/ocm-managed-cluster-")
	var kinds []string
	for _, document := range strings.Split(got, "---\n") {
		object, kind, err := kubescheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%v: %s", err, document)
		}
		kinds = append(kinds, kind.Kind)
		if role, ok := object.(*rbacv1.ClusterRole); ok && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, "*") || slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, "secrets")
		}) {
			t.Errorf("the agent may in every namespace what %+v says", role.Rules)
		}
	}
	want := []string{"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Secret", "NetworkPolicy", "Deployment"}
	if !slices.Equal(kinds, want) {
		t.Errorf("it prints %v, want %v", kinds, want)
	}
	cluster.WantAsked()
	// No kubeconfig is needed if the cluster cannot be reached from here.
	clitest.MustRun(t, filepath.Join(t.TempDir(), "none"), append(args, "-o", "yaml")...)
}

func TestJoin_JSONOutput(t *testing.T) {
	_, _, config, args := newJoining(t)
	stdout, _, err := clitest.Run(t, config, append(args, "-o", "json", "--registration-auth", "aws-irsa", "--hub-cluster-arn", clitest.HubARN, "--managed-cluster-arn", clitest.ManagedARN)...)
	var result struct {
		Name, Registration, RoleARN, Next string
		Hub                               string `json:"hub-apiserver"`
		Joined                            bool
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatal(err)
	}
	if err != nil || result.Name != "c1" || result.Registration != "awsirsa" || result.Joined || result.Next != "kubectl hub accept --clusters c1" ||
		!strings.HasPrefix(result.RoleARN, "arn:aws:iam::210987654321:role/ocm-managed-cluster-") {
		t.Errorf("%v: %+v", err, result)
	}
}

// TestJoin_InvalidArguments verifies that errors are reported before anything is deployed.
func TestJoin_InvalidArguments(t *testing.T) {
	otherCA := base64.StdEncoding.EncodeToString(newOtherCA(t))
	foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: registration.AgentServiceAccount}}
	noAWS := []string{"--registration-auth", "awsirsa", "--hub-cluster-arn", clitest.HubARN}
	for name, test := range map[string]struct {
		change  []string
		servers func(hub, cluster *clitest.Server)
		want    []string
	}{
		"no token":               {change: []string{"--hub-token", "-"}, want: []string{"--hub-token must be set: kubectl hub get token, on the hub, prints one"}},
		"half a token":           {change: []string{"--hub-token", "a b"}, want: []string{"--hub-token must not have white space"}},
		"no hub":                 {change: []string{"--hub-apiserver", "-"}, want: []string{"--hub-apiserver must be set"}},
		"a hub in the clear":     {change: []string{"--hub-apiserver", "http://h"}, want: []string{`--hub-apiserver must be an https URL, not "http://h"`}},
		"no name":                {change: []string{"--cluster-name", "-"}, want: []string{"--cluster-name must be set"}},
		"no DNS label":           {change: []string{"--cluster-name", "C_1"}, want: []string{`--cluster-name: "C_1" is not a DNS label`}},
		"a reserved name":        {change: []string{"--cluster-name", "work"}, want: []string{`--cluster-name: `, `"work"`}},
		"an image with a space":  {change: []string{"--image", "a b"}, want: []string{`--image must be the name of an image, not "a b"`}},
		"no image":               {change: []string{"--image", ""}, want: []string{"--image must be set to an image of hub-agent: there is no default for version v1.2.3"}},
		"two authorities":        {change: []string{"--ca-file", "x"}, want: []string{"--ca-file and --ca-data cannot be used together: set only one of them"}},
		"a broken authority":     {change: []string{"--ca-data", "%"}, want: []string{"--ca-data is not base64: copy the whole value"}},
		"no authority in it":     {change: []string{"--ca-data", "eHg="}, want: []string{"--ca-data has no PEM certificate"}},
		"no such file":           {change: []string{"--ca-data", "-", "--ca-file", "/nonexistent"}, want: []string{"--ca-file: open /nonexistent"}},
		"a proxy of no URL":      {change: []string{"--proxy-url", "user:secret-password@proxy"}, want: []string{"--proxy-url must be a URL with a host", "such as http://egress"}},
		"a cluster in the clear": {change: []string{"--cluster-server-url", "http://c1"}, want: []string{`--cluster-server-url must be an https URL, not "http://c1"`}},
		"no label":               {change: []string{"--cluster-labels", "a b=x,c=" + strings.Repeat("x", 64)}, want: []string{`--cluster-labels: "a b" is not a label key`, "the value of c"}},
		"an unknown driver":      {change: []string{"--registration-auth", "grpc"}, want: []string{`must be csr or awsirsa, not "grpc"`}},
		"ARNs for nothing":       {change: []string{"--hub-cluster-arn", clitest.HubARN}, want: []string{"are for --registration-auth=awsirsa"}},
		"a path for nothing":     {change: []string{"--hub-role-path", "/a/"}, want: []string{"--hub-role-path are for --registration-auth=awsirsa"}},
		"no path":                {change: append(noAWS, "--managed-cluster-arn", clitest.ManagedARN, "--hub-role-path", "a"), want: []string{`--hub-role-path: "a" is not the path of an IAM role`}},
		"no ARN of the hub":      {change: []string{"--registration-auth", "awsirsa"}, want: []string{"--eks-hub-cluster-arn must be set"}},
		"no ARN of the cluster":  {change: noAWS, want: []string{"--managed-cluster-arn must be set"}},
		"an ARN of a role":       {change: append(noAWS, "--managed-cluster-arn", "arn:aws:iam::123456789012:role/x"), want: []string{"--managed-cluster-arn", `its service is "iam"`}},
		"another partition":      {change: append(noAWS, "--managed-cluster-arn", "arn:aws-cn:eks:cn-north-1:123456789012:cluster/c"), want: []string{"--managed-cluster-arn", "partition"}},

		"another authority": {change: []string{"--ca-data", otherCA}, want: []string{"is not trusted", "check --hub-apiserver, --ca-data and --ca-file (kubectl hub get token"}},
		"no authority":      {change: []string{"--ca-data", "-"}, want: []string{"is not trusted", "pass the --ca-data or --ca-file of the hub"}},
		"nothing there":     {change: []string{"--hub-apiserver", "https://127.0.0.1:1"}, want: []string{"https://127.0.0.1:1 cannot be reached"}},
		"the wrong token": {servers: func(hub, _ *clitest.Server) {
			hub.Refuse("GET /apis/cluster.open-cluster-management.io/v1", apierrors.NewUnauthorized("no"))
		}, want: []string{"does not accept the credentials (401): get a new --hub-token by kubectl hub get token"}},
		"a token of no rights": {servers: func(hub, _ *clitest.Server) {
			hub.Refuse("POST "+clitest.ClustersPath, clitest.Forbidden("managedclusters", "create"))
		}, want: []string{"the token may not make managed cluster c1 on the hub", "cannot create"}},
		"no right to ask":     {servers: func(hub, _ *clitest.Server) { hub.Allow(false) }, want: []string{"the token may not create certificatesigningrequests on the hub: run kubectl hub init there"}},
		"who cannot be asked": {servers: func(hub, _ *clitest.Server) { hub.Refuse(clitest.MayI, apierrors.NewInternalError(os.ErrClosed)) }, want: []string{"checking on the hub what the token may do"}},

		"registered as another": {servers: func(_, cluster *clitest.Server) { cluster.Put(clitest.NewIdentity(t, "c9", "https://hub9")) },
			want: []string{"this cluster is already registered, as c9 with https://hub9: run kubectl hub unjoin --cluster-name c9 first, or join with that name"}},
		"in the way": {servers: func(_, cluster *clitest.Server) { cluster.Put(foreign) }, want: []string{"ServiceAccount " + foreign.Namespace + "/" + foreign.Name +
			" already exists and was not created by kubectl hub", deploy.LabelManagedBy + "=" + deploy.ManagedBy}},
		"no right to look": {servers: func(_, cluster *clitest.Server) {
			cluster.Refuse("GET "+clitest.IdentitySecret, clitest.Forbidden("secrets", "get"))
		}, want: []string{"cannot get"}},
		"a cluster's 401": {servers: func(_, cluster *clitest.Server) {
			cluster.Refuse("GET "+clitest.IdentitySecret, apierrors.NewUnauthorized("no"))
		}, want: []string{"the managed cluster https://", "does not accept the credentials (401): check --context"}},
		"no right to deploy": {servers: func(_, cluster *clitest.Server) {
			cluster.Refuse("PATCH /api/v1/namespaces/"+registration.AgentNamespace, clitest.Forbidden("namespaces", "patch"))
		}, want: []string{"creating Namespace " + registration.AgentNamespace, "cannot patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, cluster, config, args := newJoining(t)
			if test.servers != nil {
				test.servers(hub, cluster)
			}
			before := cluster.Paths()
			stdout, stderr, err := clitest.Run(t, config, clitest.With(args, test.change...)...)
			if err == nil || stdout+stderr != "" {
				t.Fatalf("it goes on: %v, %q, %q", err, stdout, stderr)
			}
			clitest.Says(t, command.ErrorLine(err), test.want...)
			if text := err.Error(); strings.Contains(text, clitest.BootstrapToken) || strings.Contains(text, "secret-password") {
				t.Errorf("it prints a secret: %s", text)
			}
			hub.WantUnchanged()
			if after := cluster.Paths(); !slices.Equal(after, before) {
				t.Errorf("it has deployed something: %q", after)
			}
		})
	}
}

func TestJoin_ManagedClusterUnreachable(t *testing.T) {
	_, cluster, config, args := newJoining(t)
	file := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": cluster, "c1": cluster})
	clitest.AddBroken(t, file, cluster)
	_, _, err := clitest.Run(t, file, append(args, "--context", "dead")...)
	if err == nil {
		t.Fatal("it goes on")
	}
	clitest.Says(t, command.ErrorLine(err), "the managed cluster https://127.0.0.1:1 cannot be reached", "check --context and --kubeconfig")
	if _, _, err := clitest.Run(t, config, append(args, "--context", "nowhere")...); err == nil || !strings.Contains(err.Error(), `context "nowhere" does not exist`) {
		t.Errorf("got %v", err)
	}
}

// newOtherCA returns an authority that has not signed the certificates of the servers here.
func newOtherCA(t *testing.T) []byte {
	t.Helper()
	ca, _, err := cert.GenerateSelfSignedCertKey("other", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// TestJoin_Warns verifies that join warns about what may be a mistake, and continues.
func TestJoin_Warns(t *testing.T) {
	for name, test := range map[string]struct {
		servers func(hub, cluster *clitest.Server)
		want    string
	}{
		"of a cluster of that name": {func(hub, _ *clitest.Server) { hub.Put(clitest.NewCluster("c1", nil)) },
			"Warning: the hub already has a cluster c1: if it is another cluster, join with another name; if it is this cluster, from an earlier join, delete it"},
		"of another hub": {func(_, cluster *clitest.Server) { cluster.Put(clitest.NewIdentity(t, "c1", "https://hub9")) },
			"Warning: this cluster has joined the hub https://hub9, and now joins https://"},
	} {
		t.Run(name, func(t *testing.T) {
			hub, cluster, config, args := newJoining(t)
			test.servers(hub, cluster)
			_, stderr, err := clitest.Run(t, config, args...)
			if err != nil || strings.Count(stderr, "Warning: ") != 1 {
				t.Errorf("%v: %s", err, stderr)
			}
			clitest.Says(t, stderr, test.want)
		})
	}
	// An existing namespace is not changed.
	_, cluster, config, args := newJoining(t)
	cluster.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.AgentNamespace, Labels: map[string]string{"team": "a"}}})
	if _, stderr, err := clitest.Run(t, config, args...); err != nil || strings.Contains(stderr, "Namespace") {
		t.Errorf("%v: %s", err, stderr)
	}
	if got := cluster.Get("/api/v1/namespaces/" + registration.AgentNamespace).GetLabels(); len(got) != 1 {
		t.Errorf("the namespace has the labels %v", got)
	}
}

// TestJoin_Waits verifies that join --wait prints what the agent waits for, and ends when its pod is ready.
func TestJoin_Waits(t *testing.T) {
	pod := func(status corev1.PodStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: "p",
			Labels: map[string]string{deploy.AgentLabel: deploy.AgentName}}, Status: status}
	}
	container := func(state corev1.ContainerState, last ...corev1.ContainerState) corev1.PodStatus {
		s := corev1.ContainerStatus{State: state}
		if len(last) > 0 {
			s.LastTerminationState = last[0]
		}
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}}
	}
	running := container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "I1 started\nF2 no route\x1b[2J\n"}}
	for name, test := range map[string]struct {
		there []runtime.Object
		want  string
	}{
		"no pod":           {want: "its pod does not exist yet"},
		"not scheduled":    {[]runtime.Object{pod(corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node\x1b[2J"}}})}, `its pod is not scheduled: no node\x1b[2J`},
		"not started":      {[]runtime.Object{pod(corev1.PodStatus{})}, "its pod has not started yet"},
		"no image":         {[]runtime.Object{pod(container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "a\x1b[1A"}}, ended))}, `its container is waiting: ImagePullBackOff: a\x1b[1A: F2 no route\x1b[2J`},
		"it has ended":     {[]runtime.Object{pod(container(ended))}, `its container has terminated: F2 no route\x1b[2J`},
		"it is not in":     {[]runtime.Object{pod(running)}, "the hub must accept it: kubectl hub accept --clusters c1"},
		"it has come in":   {[]runtime.Object{pod(running), clitest.NewIdentity(t, "c1", "https://hub")}, "the agent has its identity"},
		"a pod on its way": {[]runtime.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: "p", DeletionTimestamp: &metav1.Time{Time: clitest.Expiry}, Labels: map[string]string{deploy.AgentLabel: deploy.AgentName}}}}, "its pod does not exist yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, cluster, config, args := newJoining(t)
			for _, o := range test.there {
				cluster.Put(o)
			}
			_, _, err := clitest.RunIn(cluster.InterruptedAt("GET "+clitest.DeploymentPath, 5), t, config, append(args, "--wait")...)
			if err == nil {
				t.Fatal("it goes on")
			}
			clitest.Says(t, err.Error(), "waiting for cluster c1 to join: interrupted: "+test.want)
		})
	}

	hub, cluster, config, args := newJoining(t)
	looks := 0
	cluster.On["GET "+clitest.DeploymentPath] = func(w http.ResponseWriter, _ []byte) bool {
		looks++
		if d := cluster.Get(clitest.DeploymentPath); d != nil && looks > 1 {
			// The pod of an earlier template is the available one at first.
			d.Object["status"] = map[string]any{"observedGeneration": int64(0), "replicas": int64(2), "updatedReplicas": int64(1), "availableReplicas": int64(1)}
			if looks > 3 {
				d.Object["status"].(map[string]any)["replicas"] = int64(1)
			}
			cluster.PutRaw(d)
		}
		return false
	}
	stdout, _, err := clitest.Run(t, config, append(args, "--wait")...)
	if err != nil || stdout != "Cluster c1 has joined the hub "+hub.URL+".\nIt applies no works: join with --works to let it.\n" || looks < 4 {
		t.Errorf("%v: %q after %d looks", err, stdout, looks)
	}
	clitest.Says(t, clitest.MustRun(t, config, append(args, "--wait", "-o", "json")...), `"joined": true`)
}

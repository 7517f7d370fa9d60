// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/irsa"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

const (
	stsAudience = "sts.amazonaws.com"
	// nodesOnly is the content of aws-auth before a cluster has joined.
	nodesOnly = `# The nodes of the hub.
- rolearn: arn:aws:iam::111111111111:role/nodes
  username: system:node:{{EC2PrivateDNSName}}
  groups: [system:bootstrappers, system:nodes]
`
)

// eksHub is a fake AWS and a hub in it, whose kube-apiserver authenticates users as one of EKS does.
type eksHub struct {
	hubs *harness.Pool
	aws  *fakeaws.Server
	// env is the environment that directs a process to the fake AWS.
	env []string
	// account is the hub's account, members that of the clusters, and other that of a stranger.
	account, members, other *fakeaws.Account
	self                    irsa.ClusterARN
	creator                 string
	// tokenFile has the token with which hub-controller-manager authenticates to AWS.
	tokenFile string
}

// sharedEKS returns the eksHub of the folder.
var sharedEKS = sync.OnceValues(newEKSHub)

func newEKSHub() (_ *eksHub, err error) {
	e := &eksHub{self: irsa.ClusterARN{Partition: "aws", Region: "us-west-2", Account: "111111111111", Name: "hub"}}
	e.aws, err = fakeaws.Start(1)
	if err != nil {
		return nil, err
	}
	harness.Lasting().Cleanup(e.aws.Close)
	for _, a := range []struct {
		account    **fakeaws.Account
		id, region string
	}{{&e.account, e.self.Account, e.self.Region}, {&e.members, "222222222222", "eu-west-1"}, {&e.other, "333333333333", "eu-west-1"}} {
		*a.account, err = e.aws.AddAccount(a.id, a.region)
		if err != nil {
			return nil, err
		}
	}
	e.account.AddCluster(fakeaws.Cluster{Name: e.self.Name}) // in the mode API_AND_CONFIG_MAP
	dir := harness.Lasting().TempDir()
	ca := filepath.Join(dir, "aws.crt")
	if err := os.WriteFile(ca, e.aws.CA(), 0o600); err != nil {
		return nil, err
	}
	// The authenticator calls no host with a different name than STS. Loopback needs no proxy. The AWS CLI stores credentials in HOME.
	e.env = []string{"HTTPS_PROXY=" + e.aws.URL(), "AWS_CA_BUNDLE=" + ca, "AWS_EC2_METADATA_DISABLED=true", "HOME=" + dir,
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"}

	e.tokenFile, e.creator = filepath.Join(dir, "hub-controller-manager.token"), irsa.CreatorRoleARN(e.self)
	e.hubs = harness.NewPool(1, func(c *localhub.Options) {
		c.Dir = dir // the only folder of this machine that hub-controller-manager sees if it runs in its image
		c.WithoutHubControllerManager, c.Issuer = true, "https://oidc.eks.us-west-2.amazonaws.com/id/HUB"
		c.EKS = &localhub.EKS{ClusterName: e.self.Name, Env: append([]string{"SSL_CERT_FILE=" + ca}, e.env...),
			TokenWebhook: e.aws.TokenWebhookURL(e.self.String())}
		c.FrontArgs = []string{"--authentication-token-webhook-cache-ttl=1s"}
		c.HubControllerManagerEnv = append([]string{"AWS_ROLE_ARN=" + e.creator, "AWS_WEB_IDENTITY_TOKEN_FILE=" + e.tokenFile}, e.env...)
	})
	return e, nil
}

// eks is the hub in AWS with the settings of one test.
type eks struct {
	*localhub.Instance
	*eksHub
	// roles is how the hub creates roles, and authorizes them.
	roles irsa.HubRoles
}

// newEKS lends the hub in AWS to a test, with controllers that create roles as given. A boundary must be an existing policy of the hub's account.
func newEKS(t *testing.T, roles irsa.HubRoles, change ...func(*localhub.Options)) *eks {
	t.Helper()
	e := &eks{eksHub: harness.Must(sharedEKS())(t), roles: roles}
	h := e.hubs.Lend(t, 1)[0]
	e.begin(t, h)
	e.relaunch(t, h, change...)
	return e
}

// relaunch starts the controllers of the hub, with the changes of their flags. When the test ends, they delete the objects in AWS that they created
// for clusters.
func (e *eks) relaunch(t *testing.T, h *localhub.Instance, change ...func(*localhub.Options)) {
	t.Helper()
	e.Instance = e.hubs.Relaunch(t, h, func(c *localhub.Options) {
		e.flags(c)
		for _, do := range change {
			do(c)
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if out, err := h.Kubectl(context.WithoutCancel(t.Context()), "delete", "managedclusters", "--all", "--timeout="+harness.Timeout.String()).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// flags sets the flags of the controllers.
func (e *eks) flags(c *localhub.Options) {
	c.WithoutHubControllerManager = false
	c.HubControllerManagerArgs = []string{"--registration-drivers=csr,awsirsa", "--hub-cluster-arn=" + e.self.String(),
		"--hub-role-path=" + e.roles.Path.String(), "--hub-role-permissions-boundary=" + e.roles.Boundary}
	if !e.roles.AccessEntries {
		c.HubControllerManagerArgs = append(c.HubControllerManagerArgs, "--eks-access=aws-auth")
	}
}

// begin prepares AWS and aws-auth for a test. AWS must know the hub's keys before its controllers start.
func (e *eks) begin(t *testing.T, h *localhub.Instance) {
	t.Helper()
	e.aws.ResetCalls()
	if e.roles.Boundary != "" {
		_, name, _ := strings.Cut(e.roles.Boundary, ":policy/")
		if arn := harness.Must(e.account.AddPolicy(name, seesTheHub))(t); arn != e.roles.Boundary {
			t.Fatalf("the boundary is %s, not %s", arn, e.roles.Boundary)
		}
	}
	if err := e.account.SetAWSAuth(e.self.String(), harness.Must(h.Authenticator())(t)); err != nil {
		t.Fatal(err)
	}
	provider := trustTokensOf(t, e.account, h, issuer(t, h))
	e.addRole(t, e.account, fakeaws.Role{
		Name:     roleName(e.creator),
		Trust:    irsa.WebIdentityTrustPolicy(e.self, provider, "system:serviceaccount:clusterhub-system:hub-controller-manager").JSON(),
		Policies: map[string]string{"creator": irsa.CreatorPolicy(e.self, e.roles).JSON()},
	})
	writeToken(t, h, "clusterhub-system", "hub-controller-manager", e.tokenFile)
	awsAuth := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "aws-auth"}, Data: map[string]string{"mapRoles": nodesOnly}}
	configMaps := harness.Kube(t, h.AdminConfig()).CoreV1().ConfigMaps("kube-system")
	if _, err := configMaps.Create(t.Context(), awsAuth, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		harness.Must(configMaps.Update(t.Context(), awsAuth, metav1.UpdateOptions{}))(t)
	} else if err != nil {
		t.Fatal(err)
	}
}

// seesTheHub is a policy that a platform team may attach to all roles that the hub creates.
const seesTheHub = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"eks:Describe*","Resource":"*"}]}`

func roleName(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

func (e *eks) addRole(t *testing.T, account *fakeaws.Account, role fakeaws.Role) (arn string) {
	t.Helper()
	return harness.Must(account.AddRole(role))(t)
}

// trustTokensOf makes an account trust the tokens of a cluster's ServiceAccounts, and returns the name of the provider in policies.
func trustTokensOf(t *testing.T, account *fakeaws.Account, h *localhub.Instance, issuer string) (provider string) {
	t.Helper()
	keys := harness.Must(harness.Get(t, h.AdminConfig(), "/openid/v1/jwks"))(t)
	harness.Must(account.AddOIDCProviderJWKS(issuer, []byte(keys)))(t)
	return strings.TrimPrefix(issuer, "https://")
}

// requestToken requests a token of a ServiceAccount, which it creates if it does not exist.
func requestToken(t *testing.T, h *localhub.Instance, namespace, account, audience string) string {
	t.Helper()
	accounts := harness.Kube(t, h.AdminConfig()).CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	tolerate(t, err)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	return harness.Must(accounts.CreateToken(t.Context(), account, request, metav1.CreateOptions{}))(t).Status.Token
}

// writeToken writes the token of a ServiceAccount for AWS to a file, as EKS does for a pod.
func writeToken(t *testing.T, h *localhub.Instance, namespace, account, file string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(requestToken(t, h, namespace, account, stsAudience)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eksManaged is a managed cluster in EKS.
type eksManaged struct {
	*managed
	eks   *eks
	roles irsa.Identity
	// tokenFile has the token with which its agent authenticates to AWS.
	tokenFile string
	stop      func()
	whole     *testing.T // the agent outlives subtests
}

// newManaged makes a plain cluster a cluster in EKS, with the IAM role of its agent.
func (e *eks) newManaged(t *testing.T, plain *localhub.Instance) *eksManaged {
	t.Helper()
	m := &eksManaged{managed: managedOn(t, e.Instance, plain), eks: e, whole: t}
	self := irsa.ClusterARN{Partition: "aws", Region: e.members.Region, Account: e.members.ID, Name: "eks-" + m.name}
	m.roles = harness.Must(irsa.NewIdentity(e.self, self))(t)
	m.roles.HubPath = e.roles.Path
	provider := trustTokensOf(t, e.members, m.Instance, issuer(t, m.Instance))
	subject := "system:serviceaccount:" + registration.AgentNamespace + ":" + registration.AgentServiceAccount
	e.addRole(t, e.members, fakeaws.Role{
		Name: m.roles.ManagedRole(), Tags: m.roles.Tags(),
		Trust:    irsa.WebIdentityTrustPolicy(self, provider, subject).JSON(),
		Policies: map[string]string{"become-hub-role": m.roles.ManagedAccessPolicy().JSON()},
	})
	token := filepath.Join(t.TempDir(), "token")
	writeToken(t, m.Instance, registration.AgentNamespace, registration.AgentServiceAccount, token)
	m.tokenFile = token
	m.env = append([]string{"AWS_ROLE_ARN=" + m.roles.ManagedRoleARN(), "AWS_WEB_IDENTITY_TOKEN_FILE=" + token}, e.env...)
	return m
}

// start starts the agent, and stops a running one first.
func (m *eksManaged) start(args ...string) {
	m.whole.Helper()
	if m.stop != nil {
		m.stop()
	}
	m.stop = m.agent(m.whole, append([]string{"--registration-auth=awsirsa", "--eks-hub-cluster-arn=" + m.roles.Hub.String(),
		"--managed-cluster-arn=" + m.roles.Managed.String(), "--hub-role-path=" + m.roles.HubPath.String()}, args...)...)
}

// run runs a command of hub-agent with the agent's environment, and returns its output.
func (m *eksManaged) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Binary(t, "hub-agent"), args...)
	cmd.Env = append(os.Environ(), m.env...)
	complaints := &strings.Builder{}
	cmd.Stderr = complaints
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("hub-agent %s: %w: %s", args[0], err, strings.TrimSpace(complaints.String()))
	}
	return string(out), err
}

// credential returns the credential that hub-agent eks-token prints for kubectl.
func (m *eksManaged) credential(t *testing.T, args ...string) *clientauthv1.ExecCredentialStatus {
	t.Helper()
	out := harness.Must(m.run(t, append([]string{"eks-token", "--region=" + m.roles.Hub.Region}, args...)...))(t)
	var credential clientauthv1.ExecCredential
	if err := json.Unmarshal([]byte(out), &credential); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return credential.Status
}

// token returns a token that the hub accepts.
func (m *eksManaged) token(t *testing.T) string {
	t.Helper()
	return m.credential(t, "--cluster-name="+m.roles.Hub.Name, "--role-arn="+m.roles.HubRoleARN()).Token
}

// withToken returns a client configuration for the hub with a token only.
func (e *eks) withToken(token string) *rest.Config {
	config := rest.AnonymousClientConfig(e.AdminConfig())
	config.BearerToken = token
	return config
}

// identity returns a client configuration for the hub from the kubeconfig in the agent's Secret, as kubectl would use it in the agent's pod.
func (m *eksManaged) identity(t *testing.T) *rest.Config {
	t.Helper()
	file := harness.Must(clientcmd.Load(m.secret(t).Data[registration.KeyKubeconfig]))(t)
	for _, auth := range file.AuthInfos {
		if auth.Exec.Command == "hub-agent" {
			auth.Exec.Command = harness.Binary(t, "hub-agent")
		}
		for _, variable := range m.env {
			name, value, _ := strings.Cut(variable, "=")
			auth.Exec.Env = append(auth.Exec.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
		}
	}
	return harness.Must(clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig())(t)
}

// leaseVersion returns the resource version of the agent's Lease, which changes on each renewal, or "" if the Lease does not exist.
func (m *eksManaged) leaseVersion(ctx context.Context, t *testing.T) string {
	t.Helper()
	lease, err := harness.Kube(t, m.eks.AdminConfig()).CoordinationV1().Leases(m.name).Get(ctx, registration.LeaseName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return lease.ResourceVersion
}

// awaitRenewal waits until the agent renews its lease.
func (m *eksManaged) awaitRenewal(t *testing.T) {
	t.Helper()
	before := ""
	harness.Eventually(t, "the agent renews its lease", func(ctx context.Context) (bool, error) {
		now := m.leaseVersion(ctx, t)
		renewed := before != "" && now != "" && now != before
		before = now
		return renewed, nil
	})
}

// mapRoles returns the field mapRoles of aws-auth.
func (e *eks) mapRoles(t *testing.T) string {
	t.Helper()
	return harness.Must(harness.Kube(t, e.AdminConfig()).CoreV1().ConfigMaps("kube-system").Get(t.Context(), "aws-auth", metav1.GetOptions{}))(t).Data["mapRoles"]
}

// sts returns a client of the fake STS with the credentials, which may be empty.
func (e *eks) sts(c fakeaws.Credentials) *sts.Client {
	if c.AccessKeyID == "" {
		return sts.New(sts.Options{Region: e.members.Region, BaseEndpoint: aws.String(e.aws.URL())})
	}
	return sts.NewFromConfig(e.members.Config(c))
}

func credentialsOf(c *types.Credentials) fakeaws.Credentials {
	return fakeaws.Credentials{AccessKeyID: *c.AccessKeyId, SecretAccessKey: *c.SecretAccessKey, SessionToken: *c.SessionToken}
}

// byToken assumes a role with a token of a ServiceAccount.
func (e *eks) byToken(ctx context.Context, role, token string) (fakeaws.Credentials, error) {
	out, err := e.sts(fakeaws.Credentials{}).AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{
		RoleArn: &role, RoleSessionName: aws.String("test"), WebIdentityToken: &token})
	if err != nil {
		return fakeaws.Credentials{}, err
	}
	return credentialsOf(out.Credentials), nil
}

// byRole assumes a role with the credentials of a different role.
func (e *eks) byRole(ctx context.Context, role string, c fakeaws.Credentials) (fakeaws.Credentials, error) {
	out, err := e.sts(c).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: &role, RoleSessionName: aws.String("test")})
	if err != nil {
		return fakeaws.Credentials{}, err
	}
	return credentialsOf(out.Credentials), nil
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/localhub"
)

// TestKubectlHub_SaysWhatIsWrong makes each mistake, and wants one line that names it and what to do.
func TestKubectlHub_SaysWhatIsWrong(t *testing.T) {
	cluster := ownHub(t, func(c *localhub.Config) { c.Plain = true })
	p := plugin{withContexts(t, map[string]*localhub.Hub{"hub": hub, "c1": cluster})}
	config := must(clientcmd.LoadFromFile(p.kubeconfig))(t)
	config.Clusters["dead"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["dead"] = &clientcmdapi.Context{Cluster: "dead", AuthInfo: "hub"}
	config.Clusters["noca"] = &clientcmdapi.Cluster{Server: config.Clusters["hub"].Server}
	config.Contexts["noca"] = &clientcmdapi.Context{Cluster: "noca", AuthInfo: "hub"}
	config.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{Token: "secret-token"}
	config.Contexts["nobody"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "nobody"}
	if err := clientcmd.WriteToFile(*config, p.kubeconfig); err != nil {
		t.Fatal(err)
	}
	j := p.joining(t, "init", "--context", "hub")
	weak := must(kube(t, hub.AdminConfig()).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t).Status.Token
	otherCA := base64.StdEncoding.EncodeToString(cluster.AdminConfig().CAData)
	stranger := unique("asked-by-a-stranger")
	newCluster(t, stranger, nil)
	askFor(t, stranger)

	good := j.args(t, "c1")
	join := func(replace ...string) []string {
		args := append(slices.Clone(good), "--context", "c1")
		for i := 0; i < len(replace); i += 2 {
			if at := slices.Index(args, replace[i]); at >= 0 {
				args[at+1] = replace[i+1]
				continue
			}
			args = append(args, replace[i], replace[i+1])
		}
		return args
	}
	drop := func(args []string, flag string) []string {
		at := slices.Index(args, flag)
		return slices.Delete(args, at, at+2)
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"unknown flag":     {[]string{"join", "--nonsense"}, []string{"unknown flag: --nonsense", "kubectl hub join --help"}},
		"unknown command":  {[]string{"jion"}, []string{`unknown command "jion"`}},
		"unknown resource": {[]string{"get", "pods"}, []string{`no "pods" to get`}},
		"unknown format":   {[]string{"get", "clusters", "-o", "xml", "--context", "hub"}, []string{"xml"}},
		"other format":     {[]string{"accept", "--clusters", "c", "-o", "yaml", "--context", "hub"}, []string{"must be text or json"}},
		"unknown context":  {[]string{"get", "clusters", "--context", "nowhere"}, []string{`context "nowhere" does not exist`}},
		"no timeout":       {[]string{"accept", "--clusters", "c", "--timeout", "0s", "--context", "hub"}, []string{"--timeout must be above 0"}},

		"not a hub":       {[]string{"get", "clusters", "--context", "c1"}, []string{"is not a hub", "--context"}},
		"init of no hub":  {[]string{"init", "--context", "c1"}, []string{"is not a hub"}},
		"hub unreachable": {[]string{"get", "clusters", "--context", "dead"}, []string{"https://127.0.0.1:1 cannot be reached", "connection refused", "--context"}},
		"hub without CA":  {[]string{"get", "clusters", "--context", "noca"}, []string{"is not trusted", "--context"}},
		"no credentials":  {[]string{"get", "clusters", "--context", "nobody"}, []string{"does not accept the credentials (401)"}},
		"no rights":       {[]string{"get", "clusters", "--as", "eve", "--context", "hub"}, []string{`User "eve" cannot list resource "managedclusters"`}},
		"wait for no hub": {[]string{"init", "--wait", "--timeout", "3s", "--context", "c1"}, []string{"not within --timeout=3s", "is not a hub"}},

		"init without ARN":    {[]string{"init", "--registration-auth", "awsirsa", "--context", "hub"}, []string{"--hub-cluster-arn", "ARN of an EKS cluster"}},
		"init by nothing":     {[]string{"init", "--registration-drivers", "csr,grpc", "--context", "hub"}, []string{`must be csr or awsirsa, not "grpc"`}},
		"a token for a blink": {[]string{"get", "token", "--token-ttl", "1s", "--context", "hub"}, []string{"--token-ttl must be from 10m"}},

		"join without token":       {drop(join(), "--hub-token"), []string{"--hub-token must be set", "kubectl hub get token"}},
		"join without hub":         {drop(join(), "--hub-apiserver"), []string{"--hub-apiserver must be set"}},
		"join without name":        {drop(join(), "--cluster-name"), []string{"--cluster-name must be set"}},
		"a wrong token":            {join("--hub-token", "secret-token"), []string{"does not accept the credentials (401)", "kubectl hub get token"}},
		"half a token":             {join("--hub-token", "secret token"), []string{"white space"}},
		"a token without rights":   {join("--hub-token", weak), []string{"the token may not make managed cluster c1 on the hub", "cannot create"}},
		"another CA":               {join("--ca-data", otherCA), []string{"is not trusted", "--ca-data"}},
		"without CA":               {drop(join(), "--ca-data"), []string{"is not trusted", "pass the --ca-data"}},
		"a broken CA":              {join("--ca-data", "%"), []string{"--ca-data is not base64"}},
		"a CA that is none":        {join("--ca-data", "eHg="), []string{"--ca-data has no PEM certificate"}},
		"two CAs":                  {join("--ca-file", "x"), []string{"set only one of them"}},
		"a CA file that is absent": {append(drop(join(), "--ca-data"), "--ca-file", "/nonexistent"), []string{"--ca-file: open /nonexistent"}},
		"a hub in the clear":       {join("--hub-apiserver", strings.Replace(j.Server, "https", "http", 1)), []string{"--hub-apiserver must be an https URL"}},
		"a hub that is not there":  {join("--hub-apiserver", "https://127.0.0.1:1"), []string{"https://127.0.0.1:1 cannot be reached", "connection refused"}},
		"a hub of no such name":    {join("--hub-apiserver", "https://hub.invalid"), []string{"https://hub.invalid cannot be reached"}},
		"a name that is none":      {join("--cluster-name", "C_1"), []string{`"C_1" is not a DNS label`}},
		"a reserved name":          {join("--cluster-name", "work"), []string{`under the name "work"`}},
		"an unknown driver":        {join("--registration-auth", "grpc"), []string{`must be csr or awsirsa, not "grpc"`}},
		"awsirsa without hub":      {join("--registration-auth", "awsirsa"), []string{"--eks-hub-cluster-arn must be set"}},
		"awsirsa without cluster":  {join("--registration-auth", "aws-irsa", "--eks-hub-cluster-arn", hubARN), []string{"--managed-cluster-arn must be set"}},
		"a wrong ARN":              {join("--registration-auth", "awsirsa", "--eks-hub-cluster-arn", "arn:aws:eks:x"), []string{"--eks-hub-cluster-arn", "is not the ARN of an EKS cluster"}},
		"an ARN of a role":         {join("--registration-auth", "awsirsa", "--hub-cluster-arn", hubARN, "--managed-cluster-arn", "arn:aws:iam::123456789012:role/x"), []string{"--managed-cluster-arn", "its service is \"iam\""}},
		"another partition":        {join("--registration-auth", "awsirsa", "--hub-cluster-arn", hubARN, "--managed-cluster-arn", "arn:aws-cn:eks:cn-north-1:123456789012:cluster/c"), []string{"partition"}},
		"an ARN for nothing":       {join("--eks-hub-cluster-arn", hubARN), []string{"are for --registration-auth=awsirsa"}},
		"no managed cluster":       {join("--context", "dead"), []string{"the managed cluster https://127.0.0.1:1 cannot be reached"}},

		"accept nobody":           {[]string{"accept", "--context", "hub"}, []string{"--clusters has to name", "kubectl hub get clusters"}},
		"accept who is not there": {[]string{"accept", "--clusters", "ghost", "--context", "hub"}, []string{"there is no managed cluster ghost", "kubectl hub join"}},
		"accept a stranger's":     {[]string{"accept", "--clusters", stranger, "--context", "hub"}, []string{`comes from "eve"`, "--requesters=eve"}},
		"unjoin nobody":           {[]string{"unjoin", "--context", "c1"}, []string{"--cluster-name must be set"}},
		"label nothing":           {[]string{"label", "c1", "--context", "hub"}, []string{"KEY=VALUE or KEY-"}},
		"label wrongly":           {[]string{"label", "c1", "a b=c", "--context", "hub"}, []string{`"a b" cannot be the key of a label`}},
		"label nobody":            {[]string{"label", "ghost", "a=b", "--context", "hub"}, []string{`"ghost" not found`}},
		"members of no set":       {[]string{"members", "ghost", "--context", "hub"}, []string{`"ghost" not found`}},
		"members of what":         {[]string{"members", "--context", "hub"}, []string{"takes the name of a cluster set"}},
		"clusters of no set":      {[]string{"get", "clusters", "--clusterset", "ghost", "--context", "hub"}, []string{`"ghost" not found`}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := p.run(t, test.args...)
			if err == nil {
				t.Fatalf("it did it: %s%s", stdout, stderr)
			}
			lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
			lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Waiting for ") })
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "Error: ") || stdout != "" {
				t.Errorf("not one line:\n%s%s", stdout, stderr)
			}
			contains(t, stderr, test.want...)
			for _, secret := range []string{j.Token, weak, "secret-token", "secret token"} {
				if strings.Contains(stderr, secret) {
					t.Error("a token is printed")
				}
			}
		})
	}
	if left := inventory(t, cluster); slices.Contains(left, "Namespace "+registration.AgentNamespace) {
		t.Errorf("something was deployed: %v", left)
	}
	// The same user, when that is expected.
	out, stderr, err := p.run(t, "accept", "--clusters", stranger, "--requesters", "eve", "--context", "hub", "-o", "json")
	if err != nil || !strings.Contains(stderr, "comes from eve, so the hub leaves it to you") || !strings.Contains(out, `"eve"`) {
		t.Errorf("accept --requesters: %v: %s%s", err, out, stderr)
	}
}

// askFor has eve ask for the certificate of a cluster.
func askFor(t *testing.T, cluster string) {
	t.Helper()
	eve := kube(t, hub.UserConfig("eve", "system:masters"))
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	csr := must(cert.MakeCSRFromTemplate(key, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   registration.ClusterUser(cluster, "eve"),
		Organization: []string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup},
	}}))(t)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: cluster + "-", Labels: map[string]string{registration.ClusterNameLabel: cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: csr, SignerName: registration.SignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}},
	}
	must(eve.CertificatesV1().CertificateSigningRequests().Create(t.Context(), request, metav1.CreateOptions{}))(t)
}

// TestKubectlHub_InitTriesACertificate has a hub that issues none, as EKS does.
func TestKubectlHub_InitTriesACertificate(t *testing.T) {
	t.Parallel()
	h := ownHub(t, func(c *localhub.Config) { c.WithoutKubeControllerManager, c.WithoutHubControllerManager = true, true })
	p := plugin{h.AdminKubeconfig()}
	out, stderr, err := p.run(t, "init")
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	contains(t, stderr, "Warning: the hub issues no client certificates, and no cluster can join by csr")
	contains(t, out, "kubectl hub join --hub-token ")
	requests := must(kube(t, h.AdminConfig()).CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{}))(t)
	if len(requests.Items) > 0 {
		t.Errorf("init leaves %s", requests.Items[0].Name)
	}
	// By AWS IAM no certificate is needed.
	if _, stderr, err = p.run(t, "init", "--registration-auth=awsirsa", "--hub-cluster-arn", hubARN); err != nil ||
		strings.Contains(stderr, "certificates") {
		t.Errorf("init for AWS IAM: %v: %s", err, stderr)
	}
}

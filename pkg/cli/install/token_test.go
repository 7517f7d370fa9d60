// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/install"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

func TestGetToken_PrintsTheJoinCommand(t *testing.T) {
	s, config := clitest.NewPrepared(t)
	ca := base64.StdEncoding.EncodeToString(s.CA())
	command := "kubectl hub join --hub-token " + clitest.BootstrapToken + " --hub-apiserver " + s.URL + " --ca-data " + ca
	const loopback = "is this machine: clusters on other machines need another address of the hub (--hub-apiserver)"
	for name, test := range map[string]struct {
		args          string
		command, warn string
		byAWS         string
	}{
		"as it is":        {command: command + " --wait --cluster-name <cluster_name>", warn: loopback},
		"another address": {args: "--hub-apiserver https://hub.example.com", command: "--hub-apiserver https://hub.example.com --ca-data " + ca + " --wait"},
		"by AWS IAM": {args: "--registration-auth aws-irsa --hub-cluster-arn " + clitest.HubARN,
			command: " --registration-auth awsirsa --eks-hub-cluster-arn " + clitest.HubARN + " --wait --cluster-name <cluster_name>", warn: loopback},
		"by either": {args: "--registration-drivers csr,awsirsa,csr --eks-hub-cluster-arn " + clitest.HubARN, command: command + " --wait --cluster-name <cluster_name>", warn: loopback,
			byAWS: command + " --registration-auth awsirsa --eks-hub-cluster-arn " + clitest.HubARN + " --wait --cluster-name <cluster_name>"},
		"by AWS IAM, with a path": {args: "--registration-auth awsirsa --hub-role-path /a/b/ --hub-cluster-arn " + clitest.HubARN, warn: loopback,
			command: " --eks-hub-cluster-arn " + clitest.HubARN + " --hub-role-path /a/b/ --wait --cluster-name <cluster_name>"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "command")
			args := append([]string{"get", "token", "--output-join-command-file", file}, strings.Fields(test.args)...)
			stdout, stderr, err := clitest.Run(t, config, args...)
			if err != nil || strings.Contains(stderr, loopback) != (test.warn != "") || strings.Count(stderr, "\n") > 1 {
				t.Errorf("%v: %q", err, stderr)
			}
			clitest.Says(t, stdout, "Run this on each cluster that should join the hub", test.command, test.byAWS, "The token is valid until 2030-01-02T03:04:05Z.")
			var j install.Joining
			stdout, _, err = clitest.Run(t, config, append(args, "-o", "json")...)
			if err := json.Unmarshal([]byte(stdout), &j); err != nil {
				t.Fatal(err)
			}
			if err != nil || j.Token != clitest.BootstrapToken || j.CA != ca || !j.Expires.Time.Equal(clitest.Expiry) || !strings.Contains(j.Command, test.command) || j.ByAWS != test.byAWS {
				t.Errorf("-o json: %v: %+v", err, j)
			}
			written, err := os.ReadFile(file)
			if err != nil || string(written) != strings.TrimSpace(j.Command+"\n"+test.byAWS)+"\n" {
				t.Errorf("the file has %q, %v", written, err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
				t.Errorf("the file with the token: %v, %v", info.Mode(), err)
			}
		})
	}
	s.Asked = nil
	if _, _, err := clitest.Run(t, config, "get", "token", "--token-ttl", "1h"); err != nil {
		t.Fatal(err)
	}
	s.WantAsked(clitest.TokenRequest)
	clitest.Says(t, s.Bodies[clitest.TokenRequest], `"expirationSeconds":3600`)
	if _, _, err := clitest.Run(t, config, "get", "token", "--output-join-command-file", "/nonexistent/x"); err == nil ||
		!strings.Contains(err.Error(), "--output-join-command-file: open /nonexistent/x") {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

// TestGetToken_WarnsOfUnverifiedKubeconfig: such a kubeconfig has no certificate authority for clusters to trust the hub by.
func TestGetToken_WarnsOfUnverifiedKubeconfig(t *testing.T) {
	_, file := clitest.NewPrepared(t)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["hub"].CertificateAuthorityData, config.Clusters["hub"].InsecureSkipTLSVerify = nil, true
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := clitest.Run(t, file, "get", "token")
	if err != nil || strings.Contains(stdout, "--ca-data") {
		t.Errorf("%v: %q", err, stdout)
	}
	clitest.Says(t, stderr, "Warning: the kubeconfig does not verify the certificate of the hub: the clusters need --ca-file")
}

func TestGetToken_CreatesTokenAndDeletesExpired(t *testing.T) {
	old := func(name, expiration string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name,
			Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}},
			Type: corev1.SecretTypeBootstrapToken, Data: map[string][]byte{"expiration": []byte(expiration)}}
	}
	others := old("others", "2020-01-01T00:00:00Z")
	others.Labels = nil
	s := clitest.NewServer(t, old("expired", "2020-01-01T00:00:00Z"), old("valid", "2099-01-01T00:00:00Z"), old("unreadable", "soon"), others)
	stdout, _, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s}), "get", "token", "--use-bootstrap-token", "--token-ttl", "1h", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var j install.Joining
	if err := json.Unmarshal([]byte(stdout), &j); err != nil {
		t.Fatal(err)
	}
	id, secret, _ := strings.Cut(j.Token, ".")
	if !regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(j.Token) {
		t.Errorf("the token is %q", j.Token)
	}
	if left := time.Until(j.Expires.Time); left < 59*time.Minute || left > time.Hour {
		t.Errorf("it is valid for %s", left)
	}
	body := s.Bodies["POST /api/v1/namespaces/kube-system/secrets"]
	clitest.Says(t, body, `"name":"bootstrap-token-`+id+`"`, `"type":"bootstrap.kubernetes.io/token"`, `"token-secret":"`+secret+`"`,
		`"usage-bootstrap-authentication":"true"`, `"auth-extra-groups":"system:bootstrappers:managedcluster"`,
		`"app":"cluster-manager"`) // clusteradm finds it by this
	if got, want := s.Paths(), []string{"bootstrap-token-" + id, "others", "unreadable", "valid"}; !slices.EqualFunc(got, want,
		func(path, name string) bool { return clitest.NameOf(path) == name }) {
		t.Errorf("there are %q, want %q", got, want)
	}
}

func TestInit_PreparesTheHub(t *testing.T) {
	s, config := clitest.NewPrepared(t)
	for range 2 { // also the second time
		stdout, stderr, err := clitest.Run(t, config, "init")
		if err != nil || strings.Contains(stderr, "certificate") {
			t.Fatalf("%v: %s", err, stderr)
		}
		clitest.Says(t, stdout, "The hub is prepared for clusters to join.\n\nRun this on each cluster", "kubectl hub join --hub-token "+clitest.BootstrapToken)
	}
	for _, object := range deploy.Bootstrap(false) {
		if s.Get(clitest.PathOf(object.Object)) == nil {
			t.Errorf("there is no %s %s", object.GetKind(), object.GetName())
		}
	}
	if s.Get(clitest.Trial) != nil {
		t.Error("the certificate request of the test is left")
	}
	clitest.Says(t, s.Bodies["PUT "+clitest.Trial+"/approval"], `"type":"Approved"`, `"reason":"Trial"`)
}

// TestInit_RetainsUpstreamRole: earlier versions used upstream's name for the role of bootstrap tokens. Init deletes a role that only kubectl
// hub manages, and keeps one that upstream's operator manages.
func TestInit_RetainsUpstreamRole(t *testing.T) {
	for name, test := range map[string]struct {
		managers   []string
		left, warn bool
	}{
		"of an earlier version":   {managers: []string{deploy.ManagedBy}},
		"upstream's":              {managers: []string{"registration-operator"}, left: true},
		"upstream's, overwritten": {managers: []string{"registration-operator", deploy.ManagedBy}, left: true, warn: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := clitest.NewPrepared(t)
			meta := metav1.ObjectMeta{Name: install.Upstreams}
			for _, manager := range test.managers {
				meta.ManagedFields = append(meta.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply})
			}
			const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/" + install.Upstreams
			s.Put(&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: meta})
			before := s.Get(path)
			_, stderr, err := clitest.Run(t, config, "init", "--upstream-agents")
			if err != nil {
				t.Fatal(err)
			}
			after := s.Get(path)
			if left := after != nil; left != test.left || left && !reflect.DeepEqual(before, after) {
				t.Errorf("the role is left: %v, want %v: %v", left, test.left, after)
			}
			if strings.Contains(stderr, "let the operator create it again") != test.warn || strings.Contains(stderr, "clusterrole/"+install.Upstreams+" deleted") == test.left {
				t.Errorf("it says %s", stderr)
			}
			for _, object := range deploy.Bootstrap(true) {
				if s.Get(clitest.PathOf(object.Object)) == nil {
					t.Errorf("there is no %s %s", object.GetKind(), object.GetName())
				}
			}
		})
	}
}

// TestInit_RevokesUpstreamAgentRights: the permissions of upstream's agents are wider than those of ours.
func TestInit_RevokesUpstreamAgentRights(t *testing.T) {
	s, config := clitest.NewPrepared(t)
	if _, _, err := clitest.Run(t, config, "init", "--upstream-agents"); err != nil {
		t.Fatal(err)
	}
	wide := deploy.Bootstrap(true)
	for _, o := range wide {
		object := s.Get(clitest.PathOf(o.Object))
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: deploy.ManagedBy, Operation: metav1.ManagedFieldsOperationApply}})
		s.Put(object)
	}
	mine := wide[len(wide)-1] // another user has written the last one
	object := s.Get(clitest.PathOf(mine.Object))
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate}))
	s.Put(object)
	_, stderr, err := clitest.Run(t, config, "init")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stderr, "clusterrole/clusterhub:bootstrap:upstream-agents deleted: of an earlier kubectl hub init, which --upstream-agents keeps",
		mine.GetKind()+" clusterhub:bootstrap:upstream-agents has rules of an earlier kubectl hub init, and of others")
	narrow := len(deploy.Bootstrap(false))
	for i, o := range wide {
		there := s.Get(clitest.PathOf(o.Object)) != nil
		if want := i < narrow || o == mine; there != want {
			t.Errorf("%s %s is there: %v, want %v", o.GetKind(), o.GetName(), there, want)
		}
	}
}

func TestInit_CertificateSigningFails(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*clitest.Server)
		want   string
	}{
		"it fails": {func(s *clitest.Server) {
			s.Issue(certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateFailed, Message: "no signer\x1b[2J"}}})
		}, `so no cluster can join by csr: the request is Failed: no signer\x1b[2J`},
		"it may not be asked for": {func(s *clitest.Server) {
			s.Refuse("POST "+clitest.CSRsPath, clitest.Forbidden("certificatesigningrequests", "create"))
		}, "so no cluster can join by csr: testing it: "},
		"it may not be approved": {func(s *clitest.Server) {
			s.Refuse("PUT "+clitest.Trial+"/approval", clitest.Forbidden("certificatesigningrequests/approval", "update"))
		}, "so no cluster can join by csr: testing it: "},
		"it may not be removed": {func(s *clitest.Server) {
			s.Refuse("DELETE "+clitest.Trial, clitest.Forbidden("certificatesigningrequests", "delete"))
		}, "certificate request " + clitest.NameOf(clitest.Trial) + " was not deleted"},
		"it vanishes": {func(s *clitest.Server) {
			s.Refuse("GET "+clitest.Trial, apierrors.NewNotFound(certificatesv1.Resource("certificatesigningrequests"), "x"))
			delete(s.On, "PUT "+clitest.Trial+"/approval")
		}, "so no cluster can join by csr"},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := clitest.NewPrepared(t)
			test.change(s)
			stdout, stderr, err := clitest.Run(t, config, "init", "--hub-apiserver", "https://hub.example.com")
			if err != nil || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%v: %q", err, stderr)
			}
			clitest.Says(t, stderr, "Warning: ", test.want)
			// Clusters can still join by AWS IAM.
			clitest.Says(t, stdout, "kubectl hub join")
		})
	}
	// EKS accepts the request, and never decides it.
	silent, config := clitest.NewPrepared(t)
	delete(silent.On, "PUT "+clitest.Trial+"/approval")
	_, stderr, err := clitest.RunWith(t.Context(), t, &kit.Options{PollInterval: time.Millisecond, TrialTimeout: 100 * time.Millisecond}, config, "init")
	if err != nil || silent.Get(clitest.Trial) != nil {
		t.Errorf("%v: there are %q", err, silent.Paths())
	}
	clitest.Says(t, stderr, "so no cluster can join by csr: waiting for a client certificate: none was issued within 100ms")

	s, config := clitest.NewPrepared(t)
	_, _, err = clitest.Run(t, config, "init", "--registration-auth", "awsirsa", "--hub-cluster-arn", clitest.HubARN)
	if err != nil || s.Bodies["POST "+clitest.CSRsPath] != "" {
		t.Errorf("init for AWS IAM: %v", err)
	}
}

// TestInit_Waits verifies that init --wait ends when the hub and its controllers are running.
func TestInit_Waits(t *testing.T) {
	s, config := clitest.NewPrepared(t)
	const discovery, set = "GET /apis/cluster.open-cluster-management.io/v1", "GET " + clitest.SetsPath + "/default"
	looks := 0
	s.On[discovery] = func(w http.ResponseWriter, _ []byte) bool {
		looks++
		if looks > 2 {
			return false
		}
		clitest.WriteJSON(w, http.StatusServiceUnavailable, apierrors.NewServiceUnavailable("no endpoints").ErrStatus)
		return true
	}
	sets := 0
	s.On[set] = func(w http.ResponseWriter, _ []byte) bool {
		sets++
		if sets > 2 {
			return false
		}
		clitest.WriteJSON(w, http.StatusNotFound, apierrors.NewNotFound(certificatesv1.Resource("x"), "default").ErrStatus)
		return true
	}
	stdout, _, err := clitest.Run(t, config, "init", "--wait")
	if err != nil || looks < 3 || sets != 3 {
		t.Errorf("%v after %d and %d looks", err, looks, sets)
	}
	clitest.Says(t, stdout, "The hub is prepared")
	for name, test := range map[string]struct {
		request string
		err     *apierrors.StatusError
		want    string
	}{
		"no hub":         {discovery, apierrors.NewNotFound(certificatesv1.Resource("x"), ""), "is not a hub"},
		"no controllers": {set, apierrors.NewNotFound(certificatesv1.Resource("x"), "default"), "hub-controller-manager has not created the set default yet"},
	} {
		s.Refuse(test.request, test.err)
		_, _, err := clitest.RunIn(s.InterruptedAt(test.request, 3), t, config, "init", "--wait")
		if err == nil {
			t.Fatalf("%s: it goes on", name)
		}
		clitest.Says(t, err.Error(), "waiting for the hub "+s.URL+": interrupted: ", test.want)
		delete(s.On, test.request)
	}
	s.Refuse(set, clitest.Forbidden("managedclustersets", "get"))
	if _, _, err := clitest.Run(t, config, "init", "--wait"); !apierrors.IsForbidden(err) {
		t.Errorf("what does not pass is waited for: %v", err)
	}
}

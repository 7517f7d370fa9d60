// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/deploy"
)

const (
	bootstrapToken = "the-bootstrap-token"
	csrsPath       = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	trial          = csrsPath + "/kubectl-hub-trial-x"
)

var expiry = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// newPrepared returns a hub that accepts bootstrap tokens and issues certificates.
func newPrepared(t *testing.T) (*fakeServer, string) {
	t.Helper()
	s := newServer(t, newSet("default"))
	s.answer(tokenRequest, authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Status:   authenticationv1.TokenRequestStatus{Token: bootstrapToken, ExpirationTimestamp: metav1.NewTime(expiry)}})
	s.issue(certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("certificate")})
	return s, kubeconfig(t, map[string]*fakeServer{"hub": s})
}

// issue sets the status of certificate requests when they are approved.
func (s *fakeServer) issue(status certificatesv1.CertificateSigningRequestStatus) {
	s.on["PUT "+trial+"/approval"] = func(http.ResponseWriter, []byte) bool {
		answered := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: nameOf(trial)}, Status: status}
		s.on["GET "+trial] = func(w http.ResponseWriter, _ []byte) bool {
			object, err := asMap(answered)
			if err == nil {
				writeJSON(w, http.StatusOK, object)
			}
			return err == nil
		}
		return false
	}
}

func TestGetToken_PrintsTheJoinCommand(t *testing.T) {
	s, config := newPrepared(t)
	ca := base64.StdEncoding.EncodeToString(s.ca())
	command := "kubectl hub join --hub-token " + bootstrapToken + " --hub-apiserver " + s.URL + " --ca-data " + ca
	const loopback = "is this machine: clusters on other machines need another address of the hub (--hub-apiserver)"
	for name, test := range map[string]struct {
		args          string
		command, warn string
		byAWS         string
	}{
		"as it is":        {command: command + " --wait --cluster-name <cluster_name>", warn: loopback},
		"another address": {args: "--hub-apiserver https://hub.example.com", command: "--hub-apiserver https://hub.example.com --ca-data " + ca + " --wait"},
		"by AWS IAM": {args: "--registration-auth aws-irsa --hub-cluster-arn " + hubARN,
			command: " --registration-auth awsirsa --eks-hub-cluster-arn " + hubARN + " --wait --cluster-name <cluster_name>", warn: loopback},
		"by either": {args: "--registration-drivers csr,awsirsa,csr --eks-hub-cluster-arn " + hubARN, command: command + " --wait --cluster-name <cluster_name>", warn: loopback,
			byAWS: command + " --registration-auth awsirsa --eks-hub-cluster-arn " + hubARN + " --wait --cluster-name <cluster_name>"},
		"by AWS IAM, with a path": {args: "--registration-auth awsirsa --hub-role-path /a/b/ --hub-cluster-arn " + hubARN, warn: loopback,
			command: " --eks-hub-cluster-arn " + hubARN + " --hub-role-path /a/b/ --wait --cluster-name <cluster_name>"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "command")
			args := append([]string{"get", "token", "--output-join-command-file", file}, strings.Fields(test.args)...)
			stdout, stderr, err := run(t, config, args...)
			if err != nil || strings.Contains(stderr, loopback) != (test.warn != "") || strings.Count(stderr, "\n") > 1 {
				t.Errorf("%v: %q", err, stderr)
			}
			says(t, stdout, "Run this on each cluster that should join the hub", test.command, test.byAWS, "The token is valid until 2030-01-02T03:04:05Z.")
			var j joining
			stdout, _, err = run(t, config, append(args, "-o", "json")...)
			if err := json.Unmarshal([]byte(stdout), &j); err != nil {
				t.Fatal(err)
			}
			if err != nil || j.Token != bootstrapToken || j.CA != ca || !j.Expires.Time.Equal(expiry) || !strings.Contains(j.Command, test.command) || j.ByAWS != test.byAWS {
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
	s.asked = nil
	if _, _, err := run(t, config, "get", "token", "--token-ttl", "1h"); err != nil {
		t.Fatal(err)
	}
	s.wantAsked(tokenRequest)
	says(t, s.bodies[tokenRequest], `"expirationSeconds":3600`)
	if _, _, err := run(t, config, "get", "token", "--output-join-command-file", "/nonexistent/x"); err == nil ||
		!strings.Contains(err.Error(), "--output-join-command-file: open /nonexistent/x") {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

// TestGetToken_WarnsOfUnverifiedKubeconfig: such a kubeconfig has no certificate authority for clusters to trust the hub by.
func TestGetToken_WarnsOfUnverifiedKubeconfig(t *testing.T) {
	_, file := newPrepared(t)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["hub"].CertificateAuthorityData, config.Clusters["hub"].InsecureSkipTLSVerify = nil, true
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := run(t, file, "get", "token")
	if err != nil || strings.Contains(stdout, "--ca-data") {
		t.Errorf("%v: %q", err, stdout)
	}
	says(t, stderr, "Warning: the kubeconfig does not verify the certificate of the hub: the clusters need --ca-file")
}

func TestGetToken_CreatesTokenAndDeletesExpired(t *testing.T) {
	old := func(name, expiration string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name,
			Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}},
			Type: corev1.SecretTypeBootstrapToken, Data: map[string][]byte{"expiration": []byte(expiration)}}
	}
	others := old("others", "2020-01-01T00:00:00Z")
	others.Labels = nil
	s := newServer(t, old("expired", "2020-01-01T00:00:00Z"), old("valid", "2099-01-01T00:00:00Z"), old("unreadable", "soon"), others)
	stdout, _, err := run(t, kubeconfig(t, map[string]*fakeServer{"hub": s}), "get", "token", "--use-bootstrap-token", "--token-ttl", "1h", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var j joining
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
	body := s.bodies["POST /api/v1/namespaces/kube-system/secrets"]
	says(t, body, `"name":"bootstrap-token-`+id+`"`, `"type":"bootstrap.kubernetes.io/token"`, `"token-secret":"`+secret+`"`,
		`"usage-bootstrap-authentication":"true"`, `"auth-extra-groups":"system:bootstrappers:managedcluster"`,
		`"app":"cluster-manager"`) // clusteradm finds it by this
	if got, want := s.paths(), []string{"bootstrap-token-" + id, "others", "unreadable", "valid"}; !slices.EqualFunc(got, want,
		func(path, name string) bool { return nameOf(path) == name }) {
		t.Errorf("there are %q, want %q", got, want)
	}
}

func TestInit_PreparesTheHub(t *testing.T) {
	s, config := newPrepared(t)
	for range 2 { // also the second time
		stdout, stderr, err := run(t, config, "init")
		if err != nil || strings.Contains(stderr, "certificate") {
			t.Fatalf("%v: %s", err, stderr)
		}
		says(t, stdout, "The hub is prepared for clusters to join.\n\nRun this on each cluster", "kubectl hub join --hub-token "+bootstrapToken)
	}
	for _, object := range deploy.Bootstrap(false) {
		if s.get(pathOf(object.Object)) == nil {
			t.Errorf("there is no %s %s", object.GetKind(), object.GetName())
		}
	}
	if s.get(trial) != nil {
		t.Error("the certificate request of the test is left")
	}
	says(t, s.bodies["PUT "+trial+"/approval"], `"type":"Approved"`, `"reason":"Trial"`)
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
			s, config := newPrepared(t)
			meta := metav1.ObjectMeta{Name: upstreams}
			for _, manager := range test.managers {
				meta.ManagedFields = append(meta.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply})
			}
			const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/" + upstreams
			s.put(&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: meta})
			before := s.get(path)
			_, stderr, err := run(t, config, "init", "--upstream-agents")
			if err != nil {
				t.Fatal(err)
			}
			after := s.get(path)
			if left := after != nil; left != test.left || left && !reflect.DeepEqual(before, after) {
				t.Errorf("the role is left: %v, want %v: %v", left, test.left, after)
			}
			if strings.Contains(stderr, "let the operator create it again") != test.warn || strings.Contains(stderr, "clusterrole/"+upstreams+" deleted") == test.left {
				t.Errorf("it says %s", stderr)
			}
			for _, object := range deploy.Bootstrap(true) {
				if s.get(pathOf(object.Object)) == nil {
					t.Errorf("there is no %s %s", object.GetKind(), object.GetName())
				}
			}
		})
	}
}

// TestInit_RevokesUpstreamAgentRights: the permissions of upstream's agents are wider than those of ours.
func TestInit_RevokesUpstreamAgentRights(t *testing.T) {
	s, config := newPrepared(t)
	if _, _, err := run(t, config, "init", "--upstream-agents"); err != nil {
		t.Fatal(err)
	}
	wide := deploy.Bootstrap(true)
	for _, o := range wide {
		object := s.get(pathOf(o.Object))
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: deploy.ManagedBy, Operation: metav1.ManagedFieldsOperationApply}})
		s.put(object)
	}
	mine := wide[len(wide)-1] // another user has written the last one
	object := s.get(pathOf(mine.Object))
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate}))
	s.put(object)
	_, stderr, err := run(t, config, "init")
	if err != nil {
		t.Fatal(err)
	}
	says(t, stderr, "clusterrole/clusterhub:bootstrap:upstream-agents deleted: of an earlier kubectl hub init, which --upstream-agents keeps",
		mine.GetKind()+" clusterhub:bootstrap:upstream-agents has rules of an earlier kubectl hub init, and of others")
	narrow := len(deploy.Bootstrap(false))
	for i, o := range wide {
		there := s.get(pathOf(o.Object)) != nil
		if want := i < narrow || o == mine; there != want {
			t.Errorf("%s %s is there: %v, want %v", o.GetKind(), o.GetName(), there, want)
		}
	}
}

func TestInit_CertificateSigningFails(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fakeServer)
		want   string
	}{
		"it fails": {func(s *fakeServer) {
			s.issue(certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateFailed, Message: "no signer\x1b[2J"}}})
		}, `so no cluster can join by csr: the request is Failed: no signer\x1b[2J`},
		"it may not be asked for": {func(s *fakeServer) { s.refuse("POST "+csrsPath, forbidden("certificatesigningrequests", "create")) }, "so no cluster can join by csr: testing it: "},
		"it may not be approved": {func(s *fakeServer) {
			s.refuse("PUT "+trial+"/approval", forbidden("certificatesigningrequests/approval", "update"))
		}, "so no cluster can join by csr: testing it: "},
		"it may not be removed": {func(s *fakeServer) { s.refuse("DELETE "+trial, forbidden("certificatesigningrequests", "delete")) }, "certificate request " + nameOf(trial) + " was not deleted"},
		"it vanishes": {func(s *fakeServer) {
			s.refuse("GET "+trial, apierrors.NewNotFound(certificatesv1.Resource("certificatesigningrequests"), "x"))
			delete(s.on, "PUT "+trial+"/approval")
		}, "so no cluster can join by csr"},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := newPrepared(t)
			test.change(s)
			stdout, stderr, err := run(t, config, "init", "--hub-apiserver", "https://hub.example.com")
			if err != nil || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%v: %q", err, stderr)
			}
			says(t, stderr, "Warning: ", test.want)
			// Clusters can still join by AWS IAM.
			says(t, stdout, "kubectl hub join")
		})
	}
	// EKS accepts the request, and never decides it.
	silent, config := newPrepared(t)
	delete(silent.on, "PUT "+trial+"/approval")
	_, stderr, err := runWith(t.Context(), t, &global{poll: time.Millisecond, trial: 100 * time.Millisecond}, config, "init")
	if err != nil || silent.get(trial) != nil {
		t.Errorf("%v: there are %q", err, silent.paths())
	}
	says(t, stderr, "so no cluster can join by csr: waiting for a client certificate: none was issued within 100ms")

	s, config := newPrepared(t)
	_, _, err = run(t, config, "init", "--registration-auth", "awsirsa", "--hub-cluster-arn", hubARN)
	if err != nil || s.bodies["POST "+csrsPath] != "" {
		t.Errorf("init for AWS IAM: %v", err)
	}
}

// TestInit_Waits verifies that init --wait ends when the hub and its controllers are running.
func TestInit_Waits(t *testing.T) {
	s, config := newPrepared(t)
	const discovery, set = "GET /apis/cluster.open-cluster-management.io/v1", "GET " + setsPath + "/default"
	looks := 0
	s.on[discovery] = func(w http.ResponseWriter, _ []byte) bool {
		looks++
		if looks > 2 {
			return false
		}
		writeJSON(w, http.StatusServiceUnavailable, apierrors.NewServiceUnavailable("no endpoints").ErrStatus)
		return true
	}
	sets := 0
	s.on[set] = func(w http.ResponseWriter, _ []byte) bool {
		sets++
		if sets > 2 {
			return false
		}
		writeJSON(w, http.StatusNotFound, apierrors.NewNotFound(certificatesv1.Resource("x"), "default").ErrStatus)
		return true
	}
	stdout, _, err := run(t, config, "init", "--wait")
	if err != nil || looks < 3 || sets != 3 {
		t.Errorf("%v after %d and %d looks", err, looks, sets)
	}
	says(t, stdout, "The hub is prepared")
	for name, test := range map[string]struct {
		request string
		err     *apierrors.StatusError
		want    string
	}{
		"no hub":         {discovery, apierrors.NewNotFound(certificatesv1.Resource("x"), ""), "is not a hub"},
		"no controllers": {set, apierrors.NewNotFound(certificatesv1.Resource("x"), "default"), "hub-controller-manager has not created the set default yet"},
	} {
		s.refuse(test.request, test.err)
		_, _, err := runIn(s.interruptedAt(test.request, 3), t, config, "init", "--wait")
		if err == nil {
			t.Fatalf("%s: it goes on", name)
		}
		says(t, err.Error(), "waiting for the hub "+s.URL+": interrupted: ", test.want)
		delete(s.on, test.request)
	}
	s.refuse(set, forbidden("managedclustersets", "get"))
	if _, _, err := run(t, config, "init", "--wait"); !apierrors.IsForbidden(err) {
		t.Errorf("what does not pass is waited for: %v", err)
	}
}

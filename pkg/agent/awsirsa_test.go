// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	hubARN     = "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1"
	managedARN = "arn:aws:eks:eu-west-1:123456789012:cluster/managed-cluster1"
	// The suffix is upstream's for these two.
	hubRole = "arn:aws:iam::123456789012:role/ocm-hub-7f8141296c75f2871e3d030f85c35692"
)

// newAWSAgent comes to the hub with a token that connect does not look at.
func (w *world) newAWSAgent(command string, refused func() error) *agent {
	w.t.Helper()
	roles, err := (&Options{HubARN: hubARN, ManagedARN: managedARN}).roles()
	if err != nil {
		w.t.Fatal(err)
	}
	a := w.newAgent()
	w.set(func() {
		w.refuse = func(user, _, _ string) error {
			if user == "" {
				return refused()
			}
			return nil
		}
	})
	a.connect = func(config *rest.Config) (*hub, error) {
		if config.BearerToken != "" {
			return w.connect(config)
		}
		return w.connectAs("")
	}
	a.identity = &awsIdentity{store: a.store, roles: roles, command: command, connect: a.connect,
		tokens: &eksTokens{cluster: roles.Hub.Name, region: roles.Hub.Region, roleARN: roles.HubRoleARN()}}
	return a
}

func TestAWS_JoinsOnceTheHubLetsTheRoleIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var refusal error = &url.Error{Op: "Get", URL: "x", Err: &smithy.GenericAPIError{Code: "AccessDenied"}}
		a := w.newAWSAgent(tokenCommandOwn, func() error { return refusal })
		stop := start(t, a)
		pass(time.Minute)
		annotations := w.cluster().Annotations
		if annotations[registration.AnnotationManagedClusterARN] != managedARN || annotations[registration.AnnotationManagedClusterARNOfSeed] != managedARN ||
			annotations[registration.AnnotationAgentKey] != "" {
			t.Errorf("the cluster has the annotations %v", annotations)
		}
		if s := w.secret(); len(s.kubeconfig) > 0 || s.clusterName != clusterName {
			t.Error("the kubeconfig was written before the hub has let it in")
		}
		if err := a.health.ready(); err == nil || !strings.Contains(err.Error(), "accept") {
			t.Errorf("its readiness is %v", err)
		}
		w.set(func() { refusal = apierrors.NewUnauthorized("not mapped yet") })
		pass(time.Minute)
		w.set(func() { refusal = nil })
		w.accept()
		pass(time.Minute)
		s := w.secret()
		if len(s.kubeconfig) == 0 || len(s.key) > 0 || len(w.listCSRs()) > 0 || len(w.events()) > 0 {
			t.Error("it has not joined, or with a certificate")
		}
		if condition(w.cluster(), registration.ConditionJoined).Status != "True" {
			t.Errorf("the status is %+v", w.cluster().Status)
		}
		stop()

		stop = start(t, w.newAWSAgent(tokenCommandOwn, func() error { return nil }))
		pass(time.Minute)
		stop()
		if n := w.asked("bootstrap create managedclusters"); n != 1 {
			t.Errorf("the cluster was made %d times", n)
		}
	})
}

func TestAWS_TheKubeconfigGetsItsTokensByAPlugin(t *testing.T) {
	for command, want := range map[string]string{
		tokenCommandOwn: "client.authentication.k8s.io/v1 hub-agent eks-token --cluster-name hub-cluster1 --region us-west-2 --role-arn " + hubRole,
		tokenCommandAWS: "client.authentication.k8s.io/v1beta1 aws --region us-west-2 eks get-token --cluster-name hub-cluster1 --output json --role-arn " + hubRole,
	} {
		identity := newWorld(t).newAWSAgent(command, nil).identity
		made, err := hubKubeconfig(bootstrapKubeconfig(), "c1", identity.user())
		if err != nil {
			t.Fatal(err)
		}
		config := loadKubeconfig(t, made)
		exec := config.AuthInfos[kubeconfigUser].Exec
		if got := strings.Join(append([]string{exec.APIVersion, exec.Command}, exec.Args...), " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if config.Clusters[kubeconfigCluster].ProxyURL == "" || exec.InteractiveMode != "Never" {
			t.Errorf("the kubeconfig is %s", made)
		}
	}
}

// fakeSTS answers AssumeRole, and counts.
func fakeSTS(t *testing.T) (asked *[]url.Values) {
	t.Helper()
	asked = &[]url.Values{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		*asked = append(*asked, r.Form)
		_, _ = w.Write([]byte(`<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>` +
			`<AccessKeyId>ASSUMED</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>` +
			`<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`))
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_STS": server.URL, "AWS_ACCESS_KEY_ID": "OWN", "AWS_SECRET_ACCESS_KEY": "s",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PROFILE": ""} {
		t.Setenv(name, value)
	}
	return asked
}

func TestEKSToken_IsAPresignedQuestionWhoTheAssumedRoleIs(t *testing.T) {
	asked := fakeSTS(t)
	out := &bytes.Buffer{}
	cmd := NewCommand(t.Context())
	cmd.SetArgs([]string{"eks-token", "--cluster-name", "hub", "--region", "us-west-2", "--role-arn", hubRole})
	cmd.SetOut(out)
	began := time.Now()
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	var credential clientauthv1.ExecCredential
	if err := json.Unmarshal(out.Bytes(), &credential); err != nil {
		t.Fatal(err)
	}
	if credential.APIVersion != "client.authentication.k8s.io/v1" || credential.Kind != "ExecCredential" {
		t.Errorf("it is a %s %s", credential.APIVersion, credential.Kind)
	}
	if life := credential.Status.ExpirationTimestamp.Sub(began); life < 14*time.Minute-2*time.Second || life > 14*time.Minute+2*time.Second {
		t.Errorf("it lives %s", life)
	}
	encoded, found := strings.CutPrefix(credential.Status.Token, "k8s-aws-v1.")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if !found || err != nil {
		t.Fatalf("the token is %q: %v", credential.Status.Token, err)
	}
	signed, err := url.Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	q := signed.Query()
	if q.Get("Action") != "GetCallerIdentity" || q.Get("X-Amz-Expires") != "60" || q.Get("X-Amz-Security-Token") != "t" ||
		!strings.HasPrefix(q.Get("X-Amz-Credential"), "ASSUMED/") || !strings.Contains(q.Get("X-Amz-Credential"), "/us-west-2/sts/") {
		t.Errorf("the request is %s", signed)
	}
	headers := strings.Split(q.Get("X-Amz-SignedHeaders"), ";")
	slices.Sort(headers)
	if !slices.Equal(headers, []string{"host", "x-k8s-aws-id"}) {
		t.Errorf("the signed headers are %v", headers)
	}
	if len(*asked) != 1 || (*asked)[0].Get("Action") != "AssumeRole" || (*asked)[0].Get("RoleArn") != hubRole {
		t.Errorf("STS was asked %v", *asked)
	}
}

func TestEKSToken_IsKeptUntilItEndsOrIsRefused(t *testing.T) {
	asked := fakeSTS(t)
	status := http.StatusOK
	var tokens []string
	tokensOf := &eksTokens{cluster: "hub", region: "us-west-2", roleARN: hubRole}
	transport := tokensOf.wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	}))
	ask := func() {
		t.Helper()
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://hub", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if request.Header.Get("Authorization") != "" {
			t.Error("the caller's request was changed")
		}
	}
	ask()
	ask()
	if tokens[0] != tokens[1] || !strings.HasPrefix(tokens[0], "Bearer k8s-aws-v1.") {
		t.Error("the token was not kept")
	}
	status = http.StatusUnauthorized
	ask()
	if tokensOf.token != "" {
		t.Error("a refused token was kept")
	}
	if len(*asked) != 1 {
		t.Errorf("the role was assumed %d times", len(*asked))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestEKSToken_AMistakeIsOneLine(t *testing.T) {
	cmd := NewCommand(t.Context())
	cmd.SetArgs([]string{"eks-token"})
	cmd.SetErr(&bytes.Buffer{})
	if err := cmd.Execute(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if !roleRefused(errors.Join(&smithy.GenericAPIError{Code: "AccessDenied"})) || roleRefused(errors.New("AccessDenied")) {
		t.Error("a refusal is told by its code")
	}
}

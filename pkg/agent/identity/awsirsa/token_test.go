// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go/logging"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/identity"
)

const (
	hubARN     = "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1"
	managedARN = "arn:aws:eks:eu-west-1:123456789012:cluster/managed-cluster1"
	// The suffix is upstream's for these two.
	hubRole = "arn:aws:iam::123456789012:role/ocm-hub-7f8141296c75f2871e3d030f85c35692"
)

// fakeSTS is an STS that allows any client to assume any role.
type fakeSTS struct {
	mu      sync.Mutex
	asked   []url.Values
	regions []string // the regions that requests were signed for
	refuse  string   // the code of the error to respond with
	clock   time.Duration
	expires time.Time
}

func newFakeSTS(t *testing.T) *fakeSTS {
	t.Helper()
	f := &fakeSTS{expires: time.Now().AddDate(70, 0, 0)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_STS": server.URL, "AWS_ACCESS_KEY_ID": "OWN", "AWS_SECRET_ACCESS_KEY": "s",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PROFILE": "",
		"AWS_ROLE_ARN": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_MAX_ATTEMPTS": "1"} {
		t.Setenv(name, value)
	}
	return f
}

func (f *fakeSTS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = r.ParseForm() // the test detects missing values
	f.asked = append(f.asked, r.Form)
	f.regions = append(f.regions, regionIn(r.Header.Get("Authorization")))
	w.Header().Set("Date", time.Now().Add(f.clock).UTC().Format(http.TimeFormat))
	if f.refuse != "" {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>User x is not\nauthorized</Message></Error><RequestId>42</RequestId></ErrorResponse>", f.refuse)
		return
	}
	_, _ = fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>`+
		`<AccessKeyId>ASSUMED</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>`+
		`<Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`, f.expires.UTC().Format(time.RFC3339))
}

// eksToken runs the command.
func eksToken(t *testing.T, args ...string) (credential clientauthv1.ExecCredential, err error) {
	t.Helper()
	out := &bytes.Buffer{}
	cmd := NewTokenCommand()
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(&bytes.Buffer{})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return credential, err
	}
	return credential, json.Unmarshal(out.Bytes(), &credential)
}

func TestEKSToken_IsPresignedGetCallerIdentity(t *testing.T) {
	sts := newFakeSTS(t)
	began := time.Now()
	credential, err := eksToken(t, "--cluster-name", "hub", "--region", "us-west-2", "--role-arn", hubRole)
	if err != nil {
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
	if len(sts.asked) != 1 || sts.asked[0].Get("Action") != "AssumeRole" || sts.asked[0].Get("RoleArn") != hubRole ||
		sts.asked[0].Get("DurationSeconds") != "3600" {
		t.Errorf("STS was asked %v", sts.asked)
	}
}

func TestEKSToken_ExpiresWithCredentials(t *testing.T) {
	sts := newFakeSTS(t)
	sts.expires = time.Now().Add(5 * time.Minute).Truncate(time.Second)
	credential, err := eksToken(t, "--cluster-name", "hub", "--region", "us-west-2", "--role-arn", hubRole)
	if err != nil {
		t.Fatal(err)
	}
	if until := credential.Status.ExpirationTimestamp.Time; !until.Equal(sts.expires.Add(-tokenMargin)) {
		t.Errorf("it is used until %s, the credentials are until %s", until, sts.expires)
	}
}

func TestEKSToken_IsCachedUntilExpiryOrRefusal(t *testing.T) {
	sts := newFakeSTS(t)
	status := http.StatusOK
	var sent []string
	tokens := &Tokens{Cluster: "hub", Region: "us-west-2", RoleARN: hubRole}
	transport := tokens.wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header.Get("Authorization"))
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
	if sent[0] != sent[1] || !strings.HasPrefix(sent[0], "Bearer k8s-aws-v1.") {
		t.Error("the token was not kept")
	}
	if len(sts.asked) != 1 {
		t.Errorf("the role was assumed %d times", len(sts.asked))
	}
	// The role may have been created again: then the credentials of the previous one are invalid.
	status = http.StatusUnauthorized
	ask()
	status = http.StatusOK
	ask()
	if len(sts.asked) != 2 {
		t.Errorf("after a refusal the role was assumed %d times", len(sts.asked))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestEKSToken_ErrorsAreOneLine(t *testing.T) {
	right := []string{"--cluster-name", "hub", "--region", "us-west-2", "--role-arn", hubRole}
	for name, c := range map[string]struct {
		args []string
		do   func(*testing.T, *fakeSTS)
		want []string
	}{
		"no flags":           {nil, nil, []string{"--cluster-name and --region must be set"}},
		"an ARN as the name": {[]string{"--cluster-name", hubARN, "--region", "us-west-2"}, nil, []string{"--cluster-name", hubARN}},
		"a name as the role": {[]string{"--cluster-name", "hub", "--region", "us-west-2", "--role-arn", "ocm-hub"}, nil, []string{"--role-arn", `"ocm-hub"`}},
		"no credentials": {right, func(t *testing.T, _ *fakeSTS) { t.Setenv("AWS_ACCESS_KEY_ID", "") },
			[]string{"no AWS credentials", `AWS_ROLE_ARN is ""`}},
		"no token file": {right, func(t *testing.T, _ *fakeSTS) {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/own")
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token")
		}, []string{"no AWS credentials", "role/own", "open /nowhere/token: no such file"}},
		"a role for others' tokens": {right, func(t *testing.T, f *fakeSTS) {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/own")
			token := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
			f.refuse = "AccessDenied"
		}, []string{"no AWS credentials", "role/own", "AccessDenied: User x is not authorized"}},
		"a role that is refused": {right, func(_ *testing.T, f *fakeSTS) { f.refuse = "AccessDenied" },
			[]string{"assuming the role " + hubRole + ": AccessDenied: User x is not authorized"}},
		"a wrong key":  {right, func(_ *testing.T, f *fakeSTS) { f.refuse = "InvalidClientTokenId" }, []string{hubRole, "InvalidClientTokenId"}},
		"a slow clock": {right, func(_ *testing.T, f *fakeSTS) { f.clock = 20 * time.Minute }, []string{"clock", "20m0s"}},
		"a fast clock": {right, func(_ *testing.T, f *fakeSTS) { f.clock = -time.Hour }, []string{"clock", "1h0m0s"}},
		"AWS is away": {right, func(t *testing.T, _ *fakeSTS) { t.Setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1") },
			[]string{hubRole, "127.0.0.1:1: connect: connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			sts := newFakeSTS(t)
			if c.do != nil {
				c.do(t, sts)
			}
			_, err := eksToken(t, c.args...)
			if err == nil || strings.ContainsAny(err.Error(), "\n\t") || strings.Contains(err.Error(), "RequestID") || strings.Contains(err.Error(), "secret") {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			var refused *identity.RefusedError
			if is := name == "a role that is refused"; errors.As(err, &refused) != is || apierrors.IsForbidden(err) != is {
				t.Errorf("%v is taken for a refusal of the hub: %t", err, !is)
			}
		})
	}
}

// The SDK writes no lines of its own beside the one that names the reason why there is no token.
func TestLoadConfig_LogsNothing(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	c, err := loadConfig(t.Context(), "us-west-2")
	if _, off := c.Logger.(logging.Nop); err != nil || !off || c.Region != "us-west-2" {
		t.Errorf("the logger is %T in %q, %v", c.Logger, c.Region, err)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
)

// answers is AWS over HTTP, with one response for each action.
type answers struct {
	mu     sync.Mutex
	byName map[string]string
	status map[string]int
	calls  []string
	tokens []string
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = r.ParseForm()
	name := r.Form.Get("Action")
	if name == "" {
		name = r.Method + " " + r.URL.Path
	}
	a.calls = append(a.calls, name)
	if token := r.Form.Get("WebIdentityToken"); token != "" {
		a.tokens = append(a.tokens, token)
	}
	if status := a.status[name]; status != 0 {
		w.WriteHeader(status)
	}
	_, _ = fmt.Fprint(w, a.byName[name])
}

const assumed = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<AssumedRoleUser><Arn>arn:aws:sts::%s:assumed-role/creator/x</Arn><AssumedRoleId>A:x</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>AKIAKEY</AccessKeyId><SecretAccessKey>secretsecret</SecretAccessKey><SessionToken>sessionsession</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`

func iamFailure(code, message string) string {
	return `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>` + code +
		`</Code><Message>` + message + `</Message></Error><RequestId>00000000-request-id</RequestId></ErrorResponse>`
}

// newRealDriver returns a driver with the real SDK, in a pod of EKS.
func newRealDriver(t *testing.T, a *answers) *Driver {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("the token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"AWS_ROLE_ARN":                "arn:aws:iam::123456789012:role/hub-cluster1_managed-cluster-identity-creator",
		"AWS_WEB_IDENTITY_TOKEN_FILE": token,
		"AWS_ENDPOINT_URL_STS":        server.URL, // the default chain's STS ignores AWS_ENDPOINT_URL
		"AWS_ENDPOINT_URL":            server.URL,
		"AWS_EC2_METADATA_DISABLED":   "true",
		"AWS_CONFIG_FILE":             filepath.Join(dir, "none"),
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "none"),
		"AWS_ACCESS_KEY_ID":           "",
		"AWS_SECRET_ACCESS_KEY":       "",
		"AWS_PROFILE":                 "",
		"AWS_REGION":                  "",
		"AWS_CA_BUNDLE":               "",
	} {
		t.Setenv(key, value)
	}
	c, err := LoadConfig(t.Context(), "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(Options{HubClusterARN: hubARN, AWS: c})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSDK_RetriesOnceAndLogsOneLine(t *testing.T) {
	a := &answers{
		byName: map[string]string{"AssumeRoleWithWebIdentity": fmt.Sprintf(assumed, "123456789012"), "GetRole": iamFailure("Throttling", "Rate exceeded")},
		status: map[string]int{"GetRole": 400},
	}
	d := newRealDriver(t, a)
	err := d.Grant(t.Context(), "c", plan(t, d, "c", arn1))
	if err == nil || errors.Is(err, driver.ErrTerminal) {
		t.Fatal(err)
	}
	mustEqual(t, "text", err.Error(), "IAM GetRole "+role1+": Throttling: Rate exceeded")
	mustEqual(t, "calls", a.calls, []string{"AssumeRoleWithWebIdentity", "GetRole", "GetRole"})
	mustEqual(t, "tokens", a.tokens, []string{"the token"})
}

func TestSDK_ReportsRejectedCredentials(t *testing.T) {
	a := &answers{
		byName: map[string]string{"AssumeRoleWithWebIdentity": iamFailure("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")},
		status: map[string]int{"AssumeRoleWithWebIdentity": 403},
	}
	d := newRealDriver(t, a)
	err := d.Grant(t.Context(), "c", plan(t, d, "c", arn1))
	if !errors.Is(err, driver.ErrTerminal) {
		t.Fatal(err)
	}
	mustEqual(t, "text", err.Error(), "IAM GetRole "+role1+": STS AssumeRoleWithWebIdentity: AccessDenied: "+
		"Not authorized to perform sts:AssumeRoleWithWebIdentity")
}

func TestSDK_ReportsAccountOfCredentials(t *testing.T) {
	a := &answers{
		byName: map[string]string{"AssumeRoleWithWebIdentity": fmt.Sprintf(assumed, "999999999999"), "GetRole": iamFailure("NoSuchEntity", "none")},
		status: map[string]int{"GetRole": 404},
	}
	d := newRealDriver(t, a)
	err := d.Grant(t.Context(), "c", plan(t, d, "c", arn1))
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "999999999999") {
		t.Error(err)
	}
	mustEqual(t, "calls", a.calls, []string{"AssumeRoleWithWebIdentity", "GetRole"})
}

func TestSDK_ReportsMissingAWS(t *testing.T) {
	a := &answers{byName: map[string]string{}}
	d := newRealDriver(t, a)
	gone := httptest.NewServer(a)
	gone.Close()
	t.Setenv("AWS_ENDPOINT_URL_STS", gone.URL)
	c, err := LoadConfig(t.Context(), "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	d.roles.iam, d.entries.eks, d.roles.account = newClients(c, "us-west-2")
	err = d.Grant(t.Context(), "c", plan(t, d, "c", arn1))
	if err == nil || errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "connection refused") ||
		strings.Contains(err.Error(), "RequestID") || strings.Contains(err.Error(), "the token") {
		t.Errorf("got %v", err)
	}
}

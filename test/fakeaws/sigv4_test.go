// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
)

// TestSignature_AWSExample is the example of AWS's documentation on Signature Version 4.
func TestSignature_AWSExample(t *testing.T) {
	const (
		secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
		value  = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
	)
	r := httptest.NewRequest(http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("X-Amz-Date", "20150830T123600Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "+
		"SignedHeaders=content-type;host;x-amz-date, Signature="+value)
	sig, err := api.ParseSignature(r)
	if err != nil {
		t.Fatal(err)
	}
	if !sig.Matches(r, nil, secret) {
		t.Error("the signature of the example is refused")
	}
	if sig.Matches(r, nil, secret+"x") || sig.Matches(r, []byte("x"), secret) {
		t.Error("another secret or another body is taken for signed")
	}
}

func TestSignature_WrongCredentials(t *testing.T) {
	w := newWorld(t)
	good := w.hub.Root()
	user := must(w.hub.AddUser("u", AllowAll))(t)
	role := must(w.hub.AddRole(Role{Name: "r", Trust: trust(hubID)}))(t)
	session := must(clientsOf(w.hub.Config(user)).sts.AssumeRole(t.Context(), assume(role, "s1")))(t).Credentials
	temporary := Credentials{*session.AccessKeyId, *session.SecretAccessKey, *session.SessionToken}
	for name, tc := range map[string]struct {
		credentials   Credentials
		code, eksCode string
	}{
		"wrong secret":   {Credentials{good.AccessKeyID, "wrong", ""}, "SignatureDoesNotMatch", "InvalidSignatureException"},
		"unknown key":    {Credentials{"AKIAUNKNOWN", good.SecretAccessKey, ""}, "InvalidClientTokenId", "UnrecognizedClientException"},
		"token missing":  {Credentials{temporary.AccessKeyID, temporary.SecretAccessKey, ""}, "InvalidClientTokenId", "UnrecognizedClientException"},
		"token changed":  {Credentials{temporary.AccessKeyID, temporary.SecretAccessKey, "x" + temporary.SessionToken}, "InvalidClientTokenId", "UnrecognizedClientException"},
		"token too much": {Credentials{good.AccessKeyID, good.SecretAccessKey, temporary.SessionToken}, "InvalidClientTokenId", "UnrecognizedClientException"},
	} {
		t.Run(name, func(t *testing.T) {
			c := clientsOf(w.hub.Config(tc.credentials))
			_, err := c.sts.GetCallerIdentity(t.Context(), nil)
			wantCode(t, err, tc.code, "")
			_, err = c.iam.ListRoles(t.Context(), nil)
			wantCode(t, err, tc.code, "")
			_, err = c.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("hub")})
			wantCode(t, err, tc.eksCode, "")
		})
	}
	t.Run("expired session", func(t *testing.T) {
		c := clientsOf(w.hub.Config(temporary))
		_, err := c.sts.GetCallerIdentity(t.Context(), nil)
		noError(t, nil, err)
		w.ExpireSessions()
		_, err = c.sts.GetCallerIdentity(t.Context(), nil)
		wantCode(t, err, "ExpiredToken", "expired")
		_, err = c.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("hub")})
		wantCode(t, err, "ExpiredTokenException", "expired")
		_, err = clientsOf(w.hub.Config(user)).sts.GetCallerIdentity(t.Context(), nil)
		noError(t, nil, err)
	})
	t.Run("none", func(t *testing.T) {
		resp, err := http.Get(w.URL() + "/?Action=GetCallerIdentity&Version=2011-06-15")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(body), "<Code>MissingAuthenticationToken</Code>") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	})
}

// TestSignature_CoversWholeRequest changes each part of a signed request.
func TestSignature_CoversWholeRequest(t *testing.T) {
	w := newWorld(t)
	root := w.hub.Root()
	sign := func(t *testing.T) *http.Request {
		t.Helper()
		body := "Action=ListRoles&Version=2010-05-08"
		r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL()+"/", strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Amz-Meta", "signed")
		err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: root.AccessKeyID, SecretAccessKey: root.SecretAccessKey},
			r, api.HexHash([]byte(body)), "iam", region, time.Now())
		noError(t, nil, err)
		return r
	}
	for name, tc := range map[string]struct {
		change func(*http.Request)
		answer string
	}{
		"nothing": {func(*http.Request) {}, "<ListRolesResult>"},
		"body": {func(r *http.Request) {
			body := "Action=ListRoles&Version=2010-05-08&MaxItems=1"
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		}, "SignatureDoesNotMatch"},
		"query":         {func(r *http.Request) { r.URL.RawQuery = "MaxItems=1" }, "SignatureDoesNotMatch"},
		"path":          {func(r *http.Request) { r.URL.Path = "/x" }, "SignatureDoesNotMatch"},
		"header":        {func(r *http.Request) { r.Header.Set("X-Amz-Meta", "changed") }, "SignatureDoesNotMatch"},
		"host":          {func(r *http.Request) { r.Host = "iam.amazonaws.com" }, "SignatureDoesNotMatch"},
		"header beside": {func(r *http.Request) { r.Header.Set("X-Amz-Extra", "unsigned") }, "IncompleteSignature"},
		"date":          {func(r *http.Request) { r.Header.Set("X-Amz-Date", "20200101T000000Z") }, "IncompleteSignature"},
		"region": {func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), region, "us-east-1", 1))
		}, "SignatureDoesNotMatch"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sign(t)
			tc.change(r)
			resp := must(http.DefaultClient.Do(r))(t)
			defer resp.Body.Close()
			body := must(io.ReadAll(resp.Body))(t)
			if !bytes.Contains(body, []byte(tc.answer)) {
				t.Errorf("%d %s, want %s", resp.StatusCode, body, tc.answer)
			}
		})
	}
}

func TestSignature_ExpiresAfterFifteenMinutes(t *testing.T) {
	w := newWorld(t)
	for offset, good := range map[time.Duration]bool{0: true, 14 * time.Minute: true, -14 * time.Minute: true, 16 * time.Minute: false, -16 * time.Minute: false} {
		w.SetClock(func() time.Time { return time.Now().Add(offset) })
		c := clientsOf(w.hub.Config(w.hub.Root())) // the SDK's clients learn the server's time
		_, err := c.sts.GetCallerIdentity(t.Context(), nil)
		if good {
			noError(t, nil, err)
		} else {
			wantCode(t, err, "SignatureDoesNotMatch", "Signature")
		}
	}
}

func TestServer_ClockSkewIsCorrectedBySDK(t *testing.T) {
	w := newWorld(t)
	w.SetClock(func() time.Time { return time.Now().Add(3 * time.Hour) })
	config := w.hub.Config(w.hub.Root())
	config.Retryer = nil // the SDK's own
	_, err := sts.NewFromConfig(config).GetCallerIdentity(t.Context(), nil)
	noError(t, nil, err)
}

// presign returns the URL in a token of EKS. It is not signed for a cluster if cluster is empty.
func presign(ctx context.Context, c *sts.Client, cluster string) (string, error) {
	out, err := sts.NewPresignClient(c).PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(smithyhttp.SetHeaderValue("X-Amz-Expires", "60")))
		if cluster != "" {
			o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(smithyhttp.SetHeaderValue("x-k8s-aws-id", cluster)))
		}
	})
	if err != nil {
		return "", err
	}
	return out.URL, nil
}

func TestSignature_PresignedGetCallerIdentity(t *testing.T) {
	w := newWorld(t)
	role := must(w.hub.AddRole(Role{Name: "r", Trust: trust(hubID)}))(t)
	out, err := w.user(t, w.hub, "u", AllowAll).sts.AssumeRole(t.Context(), assume(role, "s1"))
	c := as(t, w.hub, out, err)
	signed := must(presign(t.Context(), c.sts, "hub"))(t)
	get := func(url, cluster string) string {
		r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
		if cluster != "" {
			r.Header.Set("X-K8s-Aws-Id", cluster)
		}
		resp := must(http.DefaultClient.Do(r))(t)
		defer resp.Body.Close()
		return string(must(io.ReadAll(resp.Body))(t))
	}
	if !strings.Contains(signed, "X-Amz-Expires=60") || !strings.Contains(signed, "X-Amz-Security-Token=") {
		t.Errorf("URL %s", signed)
	}
	if got := get(signed, "hub"); !strings.Contains(got, "<Arn>arn:aws:sts::"+hubID+":assumed-role/r/s1</Arn>") {
		t.Errorf("answer %s", got)
	}
	r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, signed, nil))(t)
	r.Header.Set("X-K8s-Aws-Id", "hub")
	r.Header.Set("Accept", "application/json") // as EKS's authenticator does
	resp := must(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	if got := string(must(io.ReadAll(resp.Body))(t)); !strings.Contains(got, `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Arn":"arn:aws:sts::`) {
		t.Errorf("answer in JSON %s", got)
	}
	for name, got := range map[string]string{
		"other cluster": get(signed, "other"), "no cluster": get(signed, ""), "other action": get(strings.Replace(signed, "GetCallerIdentity", "AssumeRole", 1), "hub"),
	} {
		if !strings.Contains(got, "<Code>SignatureDoesNotMatch</Code>") {
			t.Errorf("%s: answer %s", name, got)
		}
	}
	w.SetClock(func() time.Time { return time.Now().Add(14 * time.Minute) })
	if got := get(signed, "hub"); !strings.Contains(got, "<Arn>") {
		t.Errorf("after 14 minutes: %s", got)
	}
	w.SetClock(func() time.Time { return time.Now().Add(16 * time.Minute) })
	if got := get(signed, "hub"); !strings.Contains(got, "Signature expired") {
		t.Errorf("after 16 minutes: %s", got)
	}
}

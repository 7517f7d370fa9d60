// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// eksToken returns a token like `aws eks get-token`.
func eksToken(t *testing.T, c *sts.Client, cluster string) string {
	t.Helper()
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(must(presign(t.Context(), c, cluster))(t)))
}

// withAgentEntry creates the access entry of the managed cluster on the hub.
func (s *seed) withAgentEntry(t *testing.T) {
	t.Helper()
	noError(t, nil, second(s.entry(t, s.root, s.hubARN, func(in *eks.CreateAccessEntryInput) {
		in.Username, in.KubernetesGroups = aws.String("managed1"), []string{"open-cluster-management:managed1"}
	})))
}

// withAccess creates the entry and returns clients of the managed cluster's role on the hub.
func (s *seed) withAccess(t *testing.T) clients {
	t.Helper()
	s.withAgentEntry(t)
	out, err := s.managedCluster.sts.AssumeRole(t.Context(), assume(s.hubARN, "agent"))
	return as(t, s.world.hub, out, err)
}

func TestAuthenticate_RoleWithEntry(t *testing.T) {
	s := newSeed(t)
	c := s.withAccess(t)
	user := must(s.Authenticate(s.clusterARN, eksToken(t, c.sts, "hub")))(t)
	if user.Username != "managed1" || !reflect.DeepEqual(user.Groups, []string{"open-cluster-management:managed1"}) {
		t.Errorf("user %+v", user)
	}
	other := s.world.hub.AddCluster(Cluster{Name: "other"})
	for name, token := range map[string]string{
		"for another cluster": eksToken(t, c.sts, "other"),
		"of another role":     eksToken(t, s.managedCluster.sts, "hub"),
		"of a wrong secret":   eksToken(t, clientsOf(s.world.hub.Config(Credentials{"AKIAX", "x", ""})).sts, "hub"),
		"for no cluster":      eksToken(t, c.sts, ""),
		"not a token":         "k8s-aws-v1.abc",
		"empty":               "",
		"for another host":    tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte("https://sts.example.com/?Action=GetCallerIdentity")),
	} {
		if user, err := s.Authenticate(s.clusterARN, token); err == nil {
			t.Errorf("token %s: %+v", name, user)
		}
	}
	if _, err := s.Authenticate(other, eksToken(t, c.sts, "other")); err == nil || !strings.Contains(err.Error(), "no access entry") {
		t.Errorf("cluster without the entry: %v", err)
	}
	s.SetClock(func() time.Time { return time.Now().Add(-20 * time.Minute) })
	if _, err := s.Authenticate(s.clusterARN, eksToken(t, c.sts, "hub")); err == nil {
		t.Error("token of another time is good")
	}
}

func TestAuthenticate_EntryIsForRoleID(t *testing.T) {
	s := newSeed(t)
	c := s.withAccess(t)
	token := eksToken(t, c.sts, "hub")
	text := s.world.hub.Roles()["ocm-hub-"+s.hash].Trust
	s.world.hub.RemoveRole("ocm-hub-" + s.hash)
	if _, err := s.Authenticate(s.clusterARN, token); err == nil {
		t.Error("the token outlives its role")
	}
	must(s.world.hub.AddRole(Role{Name: "ocm-hub-" + s.hash, Trust: text}))(t)
	out, err := s.managedCluster.sts.AssumeRole(t.Context(), assume(s.hubARN, "agent"))
	again := as(t, s.world.hub, out, err)
	if _, err := s.Authenticate(s.clusterARN, eksToken(t, again.sts, "hub")); err == nil {
		t.Error("the entry serves another role of the same name")
	}
}

// TestAuthenticate_DefaultUsernameHasSession verifies that the default username has the session: STS returns the session's ARN without the path of
// its role, while the entry has the role's ARN with it. The username that EKS derives has no path.
func TestAuthenticate_DefaultUsernameHasSession(t *testing.T) {
	w := newWorld(t)
	arn := must(w.hub.AddRole(Role{Name: "r", Path: "/team/a/", Trust: trust(hubID)}))(t)
	noError(t, nil, second(w.entry(t, w.root, arn, nil)))
	out, err := w.user(t, w.hub, "u", AllowAll).sts.AssumeRole(t.Context(), assume(arn, "me@example.com"))
	user := must(w.Authenticate(w.clusterARN, eksToken(t, as(t, w.hub, out, err).sts, "hub")))(t)
	if want := "arn:aws:sts::" + hubID + ":assumed-role/r/me-example.com"; user.Username != want {
		t.Errorf("username %s, want %s", user.Username, want)
	}
}

// tokenReview is the response of the webhook.
type tokenReview struct {
	APIVersion, Kind string
	Status           struct {
		Authenticated bool
		User          UserInfo
		Error         string
	}
}

// review sends a token to the webhook of a cluster.
func (w *world) review(t *testing.T, clusterARN, token string) (review tokenReview) {
	t.Helper()
	body := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"` + token + `"}}`
	resp := must(http.Post(w.TokenWebhookURL(clusterARN), "application/json", bytes.NewReader([]byte(body))))(t)
	defer func() { _ = resp.Body.Close() }()
	noError(t, nil, json.NewDecoder(resp.Body).Decode(&review))
	return review
}

func TestTokenWebhook_ServesKubeAPIServer(t *testing.T) {
	s := newSeed(t)
	c := s.withAccess(t)
	for token, want := range map[string]bool{eksToken(t, c.sts, "hub"): true, "k8s-aws-v1.abc": false} {
		review := s.review(t, s.clusterARN, token)
		if review.APIVersion != "authentication.k8s.io/v1" || review.Kind != "TokenReview" || review.Status.Authenticated != want ||
			(review.Status.User.Username == "managed1") != want || (review.Status.Error == "") != want {
			t.Errorf("review %+v, want authenticated %v", review, want)
		}
	}
}

// TestTokenWebhook_AuthenticationModes verifies that a caller with an access entry is authenticated by it, and that aws-auth is used for
// other callers depending on the mode of the cluster.
func TestTokenWebhook_AuthenticationModes(t *testing.T) {
	for mode, want := range map[string]map[string]string{
		"API":                {"without": "", "with an entry": "by its entry"},
		"API_AND_CONFIG_MAP": {"without": "by aws-auth", "with an entry": "by its entry"},
		"CONFIG_MAP":         {"without": "by aws-auth"},
	} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			arn := w.createRole(t, "r")
			cluster := w.hub.AddCluster(Cluster{Name: "hub", AuthenticationMode: mode})
			asked := ""
			noError(t, nil, w.hub.SetAWSAuth(cluster, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				asked = string(must(io.ReadAll(r.Body))(t))
				_, _ = rw.Write([]byte(`{"status":{"authenticated":true,"user":{"username":"by aws-auth"}}}`))
			})))
			out, err := w.user(t, w.hub, "u", AllowAll).sts.AssumeRole(t.Context(), assume(arn, "me"))
			token := eksToken(t, as(t, w.hub, out, err).sts, "hub")
			if got := w.review(t, cluster, token).Status.User.Username; got != want["without"] {
				t.Errorf("the user is %q, want %q", got, want["without"])
			}
			if (asked != "") != (want["without"] != "") || asked != "" && !strings.Contains(asked, token) {
				t.Errorf("aws-auth was asked %q", asked)
			}
			if mode == modeConfigMap {
				return
			}
			noError(t, nil, second(w.entry(t, w.root, arn, func(in *eks.CreateAccessEntryInput) { in.Username = aws.String("by its entry") })))
			if got := w.review(t, cluster, token).Status.User.Username; got != want["with an entry"] {
				t.Errorf("with an entry the user is %q", got)
			}
		})
	}
	w := newWorld(t)
	if err := w.hub.SetAWSAuth(w.clusterARN+"x", http.NotFoundHandler()); err == nil {
		t.Error("a cluster that is not there has an authenticator")
	}
}

// TestProxy_AWSHostNames uses AWS's own host names, like clients that support no other endpoint.
func TestProxy_AWSHostNames(t *testing.T) {
	s := newSeed(t)
	s.withAccess(t)
	config := s.managed.Config(must(s.managed.AddUser("u", AllowAll))(t))
	config.BaseEndpoint, config.HTTPClient = nil, s.HTTPClient()
	byName := clientsOf(config)
	if got := must(byName.sts.GetCallerIdentity(t.Context(), nil))(t); *got.Arn != "arn:aws:iam::"+managedID+":user/u" {
		t.Errorf("caller %s", *got.Arn)
	}
	noError(t, nil, second(byName.iam.ListRoles(t.Context(), nil)))

	out, err := byName.sts.AssumeRole(t.Context(), assume(s.managedARN, "agent"))
	noError(t, nil, err)
	key := out.Credentials
	config.Credentials = s.managed.Config(Credentials{*key.AccessKeyId, *key.SecretAccessKey, *key.SessionToken}).Credentials
	out, err = sts.NewFromConfig(config).AssumeRole(t.Context(), assume(s.hubARN, "agent"))
	noError(t, nil, err)
	key = out.Credentials
	config.Credentials = s.world.hub.Config(Credentials{*key.AccessKeyId, *key.SecretAccessKey, *key.SessionToken}).Credentials
	hub := clientsOf(config)
	noError(t, nil, second(hub.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("hub")})))
	token := eksToken(t, hub.sts, "hub")
	if url := must(base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, tokenPrefix)))(t); !bytes.HasPrefix(url, []byte("https://sts."+region+".amazonaws.com/?")) {
		t.Errorf("token for %s", url)
	}
	if user := must(s.Authenticate(s.clusterARN, token))(t); user.Username != "managed1" {
		t.Errorf("user %+v", user)
	}
	if _, err := config.HTTPClient.(*http.Client).Get("https://example.com/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("another host: %v", err)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// UserInfo is the user of a token in a cluster.
type UserInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

const (
	webhookPath = "/fakeaws/token-webhook/"
	tokenPrefix = "k8s-aws-v1."
)

// TokenWebhookURL returns the URL of the authenticator for the kube-apiserver of a cluster, for its --authentication-token-webhook-config-file. It
// uses access entries and SetAWSAuth, depending on the authentication mode of the cluster. The response has the version of the request.
func (s *Server) TokenWebhookURL(clusterARN string) string {
	return s.url + webhookPath + url.PathEscape(clusterARN)
}

// awsAuthOf returns the authenticator for tokens for which a cluster has no access entry, or nil.
func (s *Server) awsAuthOf(clusterARN string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		if c := a.clusters[clusterARN]; c != nil && c.AuthenticationMode != modeAPI {
			return c.awsAuth
		}
	}
	return nil
}

func (s *Server) tokenWebhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			Token string `json:"token"`
		} `json:"spec"`
		Status struct {
			Authenticated bool      `json:"authenticated"`
			User          *UserInfo `json:"user,omitempty"`
			Error         string    `json:"error,omitempty"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	cluster := strings.TrimPrefix(r.URL.Path, webhookPath)
	user, err := s.Authenticate(cluster, review.Spec.Token)
	if awsAuth := s.awsAuthOf(cluster); err != nil && awsAuth != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		awsAuth.ServeHTTP(w, r)
		return
	}
	review.Spec.Token = ""
	if err != nil {
		review.Status.Error = err.Error()
	} else {
		review.Status.Authenticated, review.Status.User = true, &user
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

var stsHost = regexp.MustCompile(`^sts(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?$`)

// Authenticate authenticates a token like EKS, by the cluster's access entries: the token is a presigned GetCallerIdentity for that cluster, and the
// caller is a principal with an entry.
func (s *Server) Authenticate(clusterARN, token string) (UserInfo, error) {
	encoded, ok := strings.CutPrefix(token, tokenPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return UserInfo{}, errors.New("not a token of EKS")
	}
	r, err := http.NewRequest(http.MethodGet, string(raw), nil)
	if err != nil {
		return UserInfo{}, errors.New("the token is not a URL")
	}
	if "http://"+r.URL.Host != s.url && (r.URL.Scheme != "https" || !stsHost.MatchString(r.URL.Host)) {
		return UserInfo{}, errors.New("the token is for another host than STS")
	}
	name := clusterARN[strings.LastIndex(clusterARN, "/")+1:]
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("X-K8s-Aws-Id", name)
	sig, err := api.ParseSignature(r)
	if err != nil || sig == nil || !strings.Contains(";"+strings.Join(sig.Headers, ";")+";", ";x-k8s-aws-id;") {
		return UserInfo{}, errors.New("the token is not signed for a cluster")
	}
	req := &request{Server: s, http: r}
	if err := req.identify(sig, nil); err != nil || req.op.action() != "sts:GetCallerIdentity" || len(req.params) > 0 {
		return UserInfo{}, errors.New("the token is not for GetCallerIdentity")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	who, err := req.authenticate(sig, nil)
	if err != nil {
		return UserInfo{}, err
	}
	for _, a := range s.accounts {
		c := a.clusters[clusterARN]
		if c == nil {
			continue
		}
		if e := seenEntry(s, c, who.principal()); e != nil && strings.HasPrefix(who.userID()+":", e.PrincipalID+":") {
			return UserInfo{
				Username: strings.NewReplacer("{{SessionName}}", strings.ReplaceAll(who.session, "@", "-"), "{{SessionNameRaw}}", who.session).Replace(e.Username),
				UID:      "aws-iam-authenticator:" + who.account.ID + ":" + e.PrincipalID,
				Groups:   append([]string{}, e.KubernetesGroups...),
				Extra:    map[string][]string{"arn": {who.principal()}, "canonicalArn": {who.principal()}, "sessionName": {who.session}},
			}, nil
		}
	}
	return UserInfo{}, errors.New("no access entry for " + who.principal())
}

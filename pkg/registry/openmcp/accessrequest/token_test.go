// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

const secretToken = "s3cr3t-minter"

// getter returns one object, or an error.
type getter struct {
	object runtime.Object
	err    error
}

func (g getter) Get(context.Context, string, *metav1.GetOptions) (runtime.Object, error) {
	if g.object == nil {
		return nil, g.err
	}
	return g.object.DeepCopyObject(), g.err // like a storage
}

type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

// minting is a hub with one granted request and its cluster, which a test can change.
type minting struct {
	*TokenREST
	request *openmcp.AccessRequest
	secret  *corev1.Secret
	cluster *httptest.Server
	answer  http.HandlerFunc
	minted  atomic.Int32
	asked   authenticationv1.TokenRequest
	warned  warnings
}

func newMinting(t *testing.T) *minting {
	t.Helper()
	m := &minting{request: &openmcp.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "a", UID: "uid-1", Generation: 2, CreationTimestamp: metav1.Now()},
		Spec: openmcp.AccessRequestSpec{
			Token: &openmcp.TokenConfig{}, ClusterRef: &openmcp.ObjectReference{Namespace: "b", Name: "c"},
		},
		Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Granted", ObservedGeneration: 2}},
	}}
	m.answer = func(w http.ResponseWriter, _ *http.Request) {
		m.asked.Status = authenticationv1.TokenRequestStatus{
			Token: "minted", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Duration(*m.asked.Spec.ExpirationSeconds) * time.Second)),
		}
		_ = json.NewEncoder(w).Encode(m.asked)
	}
	m.cluster = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.minted.Add(1)
		_ = json.NewDecoder(r.Body).Decode(&m.asked)
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/accessrequests/serviceaccounts/sa/token" ||
			r.Header.Get("Authorization") != "Bearer "+secretToken {
			t.Errorf("the cluster got %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		m.answer(w, r)
	}))
	t.Cleanup(m.cluster.Close)
	m.secret = &corev1.Secret{Type: openmcp.TokenSourceSecretType, Data: map[string][]byte{
		"serviceAccountNamespace": []byte("accessrequests"), "serviceAccountName": []byte("sa"), "accessRequest": []byte("test/a"),
		"kubeconfig": []byte(m.kubeconfig("", "token: "+secretToken)),
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces/clusterhub-access/secrets/uid-1" || m.secret == nil {
			writeStatus(w, apierrors.NewNotFound(corev1.Resource("secrets"), "uid-1"))
			return
		}
		_ = json.NewEncoder(w).Encode(m.secret)
	}))
	t.Cleanup(front.Close)
	client, err := corev1client.NewForConfig(&rest.Config{Host: front.URL})
	if err != nil {
		t.Fatal(err)
	}
	m.TokenREST = NewTokenREST(getter{object: m.request}, getter{object: &openmcp.Cluster{}}, client)
	return m
}

func writeStatus(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.ErrStatus
	status.Kind, status.APIVersion = "Status", "v1"
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func (m *minting) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.cluster.Certificate().Raw}))
}

// kubeconfig returns a kubeconfig of the cluster with further fields. Parts are JSON to avoid indentation.
func (m *minting) kubeconfig(cluster, user string) string {
	ca, _ := json.Marshal([]byte(m.ca()))
	return fmt.Sprintf(`
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: %q, certificate-authority-data: %s%s}}]
users: [{name: x, user: {%s}}]
`, m.cluster.URL, ca, cluster, user)
}

func (m *minting) create(t *testing.T, spec openmcp.AccessTokenSpec, dryRun ...string) (*openmcp.AccessToken, error) {
	t.Helper()
	ctx := warning.WithWarningRecorder(request.WithNamespace(t.Context(), "test"), &m.warned)
	o, err := m.Create(ctx, "a", &openmcp.AccessToken{Spec: spec}, nil, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		if strings.Contains(err.Error(), secretToken) || strings.Contains(fmt.Sprintf("%+v", err), secretToken) {
			t.Errorf("the error has the secret: %v", err)
		}
		return nil, err
	}
	return o.(*openmcp.AccessToken), nil
}

// TestToken_RejectsOnConcurrentChange: a token that is issued while its request changes may be valid for longer than the request: the
// provider has invalidated the existing tokens, and does not know this one.
func TestToken_RejectsOnConcurrentChange(t *testing.T) {
	for name, change := range map[string]func(r *openmcp.AccessRequest){
		"a shorter ttl, seen by the provider already": func(r *openmcp.AccessRequest) {
			r.Spec.TTL, r.Generation, r.Status.ObservedGeneration = &duration.Duration{Duration: 20 * time.Minute}, 3, 3
		},
		"made anew": func(r *openmcp.AccessRequest) { r.UID = "uid-2" },
		"denied":    func(r *openmcp.AccessRequest) { r.Status.Phase = "Denied" },
		"deleted":   func(r *openmcp.AccessRequest) { r.DeletionTimestamp = new(metav1.Now()) },
	} {
		m := newMinting(t)
		answer := m.answer
		m.answer = func(w http.ResponseWriter, r *http.Request) {
			change(m.request)
			answer(w, r)
		}
		token, err := m.create(t, openmcp.AccessTokenSpec{})
		if (name == "denied") != apierrors.IsForbidden(err) || (name != "denied") != apierrors.IsConflict(err) || m.minted.Load() != 1 {
			t.Errorf("%s: got %+v, %v", name, token, err)
		}
	}
}

func TestToken_OfCluster(t *testing.T) {
	m := newMinting(t)
	token, err := m.create(t, openmcp.AccessTokenSpec{Audiences: []string{"x", "y"}})
	if err != nil {
		t.Fatal(err)
	}
	if *m.asked.Spec.ExpirationSeconds != 3600 || fmt.Sprint(m.asked.Spec.Audiences) != "[x y]" {
		t.Errorf("the cluster was asked for %+v", m.asked.Spec)
	}
	s := token.Status
	if s.Token != "minted" || s.ExpirationTimestamp.Unix() != m.asked.Status.ExpirationTimestamp.Unix() || s.Server != m.cluster.URL ||
		string(s.CertificateAuthorityData) != m.ca() || !strings.Contains(s.Kubeconfig, "token: minted") || strings.Contains(s.Kubeconfig, secretToken) {
		t.Errorf("got %+v", s)
	}
	if token.Name != "a" || token.Namespace != "test" || len(m.warned.texts) > 0 {
		t.Errorf("got %+v, warnings %q", token.ObjectMeta, m.warned.texts)
	}
}

// TestToken_RejectsManyAudiences: all audiences are sent to the cluster, as often as the requester likes.
func TestToken_RejectsManyAudiences(t *testing.T) {
	m := newMinting(t)
	if _, err := m.create(t, openmcp.AccessTokenSpec{Audiences: slices.Repeat([]string{"a"}, 16)}); err != nil {
		t.Error(err)
	}
	if _, err := m.create(t, openmcp.AccessTokenSpec{Audiences: slices.Repeat([]string{"a"}, 17)}); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
}

func TestToken_Lifetime(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		asked *int64
		ttl   time.Duration
		want  int64
		warns string
	}{
		"nothing said":      {nil, 0, 3600, ""},
		"the shortest":      {seconds(600), 0, 600, ""},
		"the longest":       {seconds(86400), 0, 86400, ""},
		"too short":         {seconds(599), 0, 600, "599 is not between 600 and 86400, 600 is taken"},
		"negative":          {seconds(-1 << 63), 0, 600, "600 is taken"},
		"too long":          {seconds(1<<63 - 1), 0, 86400, "86400 is taken"},
		"beyond the ttl":    {seconds(7200), 30 * time.Minute, 1800, "only valid for 30m0s: then"},
		"within the ttl":    {seconds(900), 30 * time.Minute, 900, ""},
		"default and a ttl": {nil, 10 * time.Minute, 600, "only valid for 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMinting(t)
			now := m.request.CreationTimestamp.Time
			m.now = func() time.Time { return now }
			if c.ttl > 0 {
				m.request.Spec.TTL = &duration.Duration{Duration: c.ttl}
			}
			token, err := m.create(t, openmcp.AccessTokenSpec{ExpirationSeconds: c.asked})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(m.warned.texts, "; ")
			if *m.asked.Spec.ExpirationSeconds != c.want || *token.Spec.ExpirationSeconds != c.want || (c.warns == "") != (got == "") || !strings.Contains(got, c.warns) {
				t.Errorf("asked for %d, warnings %q", *m.asked.Spec.ExpirationSeconds, got)
			}
		})
	}
}

func TestToken_ShorterLifetimeOfCluster(t *testing.T) {
	m := newMinting(t)
	m.answer = func(w http.ResponseWriter, _ *http.Request) {
		m.asked.Status = authenticationv1.TokenRequestStatus{Token: "minted", ExpirationTimestamp: metav1.NewTime(time.Now().Add(20 * time.Minute))}
		_ = json.NewEncoder(w).Encode(m.asked)
	}
	if _, err := m.create(t, openmcp.AccessTokenSpec{}); err != nil || len(m.warned.texts) != 1 {
		t.Errorf("got %v, warnings %q", err, m.warned.texts)
	}
}

func TestToken_DryRun(t *testing.T) {
	m := newMinting(t)
	token, err := m.create(t, openmcp.AccessTokenSpec{}, metav1.DryRunAll)
	if err != nil || m.minted.Load() != 0 || token.Status.Token != "" || token.Status.Kubeconfig != "" || token.Status.Server != m.cluster.URL {
		t.Fatalf("got %+v, %v, and the cluster was asked %d times", token, err, m.minted.Load())
	}
	if left := time.Until(token.Status.ExpirationTimestamp.Time); left < 59*time.Minute || len(m.warned.texts) != 1 ||
		!strings.Contains(m.warned.texts[0], "without it, a token that is valid for 1h0m0s would be requested") {
		t.Errorf("%s left, warnings %q", left, m.warned.texts)
	}
	m.request.Status.Phase = ""
	if _, err := m.create(t, openmcp.AccessTokenSpec{}, metav1.DryRunAll); !apierrors.IsConflict(err) {
		t.Errorf("a dry run for a request that is pending: %v", err)
	}
}

func TestToken_Rejected(t *testing.T) {
	conflicts, forbids := apierrors.IsConflict, apierrors.IsForbidden
	ttl := func(d time.Duration) *duration.Duration { return &duration.Duration{Duration: d} }
	for why, c := range map[string]struct {
		change func(*minting)
		kind   func(error) bool
	}{
		"not granted yet": {func(m *minting) { m.request.Status.Phase = "Pending" }, conflicts},
		"is denied":       {func(m *minting) { m.request.Status.Phase = "Denied" }, forbids},
		"changed since":   {func(m *minting) { m.request.Generation = 3 }, conflicts},
		"being deleted":   {func(m *minting) { m.request.DeletionTimestamp = new(metav1.Now()) }, conflicts},
		"by OIDC":         {func(m *minting) { m.request.Spec.Token, m.request.Spec.OIDC = nil, &openmcp.OIDCConfig{} }, forbids},
		"its ttl expired": {func(m *minting) { m.request.Spec.TTL = ttl(-time.Second) }, forbids},
		"less than the minimum lifetime of a token, 10m": {func(m *minting) { m.request.Spec.TTL = ttl(10*time.Minute - 2*time.Second) }, forbids},
		"no spec.clusterRef":                             {func(m *minting) { m.request.Spec.ClusterRef = nil }, conflicts},
		"Cluster b/c does not exist": {func(m *minting) {
			m.clusters = getter{err: apierrors.NewNotFound(openmcp.Resource("clusters"), "c")}
		}, conflicts},
		"no short-lived tokens": {func(m *minting) { m.secret = nil }, forbids},
	} {
		t.Run(why, func(t *testing.T) {
			m := newMinting(t)
			c.change(m)
			_, err := m.create(t, openmcp.AccessTokenSpec{})
			if err == nil || !c.kind(err) || !strings.Contains(err.Error(), why) || m.minted.Load() != 0 {
				t.Errorf("got %v, and the cluster was asked %d times", err, m.minted.Load())
			}
		})
	}
}

func TestToken_OtherName(t *testing.T) {
	m := newMinting(t)
	_, err := m.Create(t.Context(), "a", &openmcp.AccessToken{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, nil, &metav1.CreateOptions{})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
	denied := fmt.Errorf("a webhook says no")
	_, err = m.Create(t.Context(), "a", &openmcp.AccessToken{}, func(context.Context, runtime.Object) error { return denied }, &metav1.CreateOptions{})
	if err != denied || m.minted.Load() != 0 {
		t.Errorf("got %v, and the cluster was asked %d times", err, m.minted.Load())
	}
}

// TestToken_WithoutCAUsesSystemRoots: a cluster with a certificate of a public CA needs no CA of its own. A server that the system does not trust
// gets no credentials.
func TestToken_WithoutCAUsesSystemRoots(t *testing.T) {
	m := newMinting(t)
	m.secret.Data["kubeconfig"] = []byte(strings.ReplaceAll(m.kubeconfig("", "token: "+secretToken), "certificate-authority-data", "unknown"))
	_, err := m.create(t, openmcp.AccessTokenSpec{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "certificate") || m.minted.Load() != 0 {
		t.Errorf("got %v, and the cluster was asked %d times", err, m.minted.Load())
	}
}

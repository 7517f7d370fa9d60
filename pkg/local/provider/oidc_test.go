// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/fakeoidc"
)

func providerOf(i *fakeoidc.Issuer, name, clientID string) v1alpha1.OIDCProviderConfig {
	provider := v1alpha1.OIDCProviderConfig{Name: name, Issuer: i.URL, ClientID: clientID}
	return *provider.Default()
}

func TestTrustOIDC(t *testing.T) {
	options := testOptions(t)
	corp, other, gone := fakeoidc.NewIssuer(t), fakeoidc.NewIssuer(t), fakeoidc.NewIssuer(t)
	// All of them have the certificate of httptest.
	options.IssuerCAFile = filepath.Join(t.TempDir(), "issuers.crt")
	if err := os.WriteFile(options.IssuerCAFile, corp.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, object := newProvider(t, options), newCluster("blue")
	ensure(t, p, object)
	admin, _ := adminOf(t, p, object)

	login := func(token string) (user string, groups []string, err error) {
		info, err := whoAmI(t.Context(), clientOf(t, withToken(admin, token)))
		return info.Username, info.Groups, err
	}
	succeeds := func(token, wantUser string, wantGroup string) {
		t.Helper()
		user, groups, err := login(token)
		if err != nil || user != wantUser || !slices.Contains(groups, wantGroup) {
			t.Errorf("the user is %q in %v (%v), want %q in %q", user, groups, err, wantUser, wantGroup)
		}
	}
	fails := func(why, token string) {
		t.Helper()
		if user, groups, err := login(token); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: the user is %q in %v (%v)", why, user, groups, err)
		}
	}
	trust := func(providers ...v1alpha1.OIDCProviderConfig) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
		defer cancel()
		started := time.Now()
		err := p.TrustOIDC(ctx, object, providers)
		t.Logf("TrustOIDC took %s", time.Since(started).Round(time.Millisecond))
		return err
	}

	fails("no issuer is trusted yet", corp.Token(t, nil))
	if err := trust(providerOf(corp, "corp", "kubectl")); err != nil {
		t.Fatal(err)
	}
	succeeds(corp.Token(t, nil), "corp:ann", "corp:devs")
	fails("another issuer", other.Token(t, nil))
	fails("another audience", corp.Token(t, map[string]any{"aud": "web"}))
	fails("an expired token", corp.Token(t, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}))
	fails("another issuer's key", other.Token(t, map[string]any{"iss": corp.URL}))
	only(t, p, apiServer, object.UID)

	t.Log("Untrusted issuers are reported, and do not affect the others")
	bare := providerOf(other, "bare", "kubectl")
	bare.UsernamePrefix, bare.GroupsPrefix, bare.UsernameClaim, bare.GroupsClaim = new(""), new("x-"), new("name"), new("teams")
	plain := providerOf(corp, "plain", "kubectl")
	plain.Issuer = "http://127.0.0.1:1"
	own := providerOf(corp, "own", "kubectl")
	own.Issuer = localserver.DefaultIssuer
	down := providerOf(gone, "down", "kubectl")
	gone.Close()
	// A user who claims to be another one.
	posing := httptest.NewTLSServer(corp.Config.Handler)
	defer posing.Close()
	liar := providerOf(corp, "liar", "kubectl")
	liar.Issuer = posing.URL
	before := only(t, p, apiServer, object.UID)
	err := trust(plain, providerOf(corp, "corp", "kubectl"), own, providerOf(corp, "corp", "web"), down, bare, liar)
	refused := clusterprovider.RefusedIssuers{}
	if !errors.As(err, &refused) || len(refused) != 4 {
		t.Errorf("these are refused: %v", err)
	}
	for issuer, want := range map[string]string{
		plain.Issuer: "URL scheme must be https", own.Issuer: "must not overlap with disallowed issuers",
		down.Issuer: "it is not reachable", liar.Issuer: "it is not trusted",
	} {
		if why := refused[issuer]; why == nil || !strings.Contains(why.Error(), want) {
			t.Errorf("%s is refused because %v, want %q", issuer, why, want)
		}
	}
	succeeds(corp.Token(t, nil), "corp:ann", "corp:devs")
	succeeds(corp.Token(t, map[string]any{"aud": "web"}), "corp:ann", "corp:devs")
	succeeds(other.Token(t, map[string]any{"name": "bob", "teams": []string{"ops"}}), "bob", "x-ops")
	fails("a name of the cluster", other.Token(t, map[string]any{"name": "system:admin"}))
	if after := only(t, p, apiServer, object.UID); after != before {
		t.Error("kube-apiserver was restarted")
	}

	t.Log("A restart preserves the trusted issuers")
	if err := p.cluster(object.UID).process(apiServer).Kill(); err != nil {
		t.Fatal(err)
	}
	ensure(t, p, object)
	// It contacts the issuers only now.
	eventually(t, "kube-apiserver reaches the issuers", func() bool { _, _, err := login(corp.Token(t, nil)); return err == nil })
	succeeds(corp.Token(t, nil), "corp:ann", "corp:devs")
	if err := trust(providerOf(corp, "corp", "kubectl"), providerOf(corp, "corp", "web"), bare); err != nil {
		t.Fatal(err)
	}

	t.Log("Trust is revoked, also when another issuer is down")
	other.Close()
	loaded := func(state clusterprovider.State) string {
		condition := meta.FindStatusCondition(state.Conditions, ConditionIssuers)
		if condition == nil {
			t.Fatalf("there is no condition in %+v", state)
		}
		return string(condition.Status) + " " + condition.Reason
	}
	asked := 0
	look := func(types.NamespacedName) {
		asked++
		state, err := p.Ensure(t.Context(), object, clusterprovider.Profile{Config: configName})
		if err != nil || state.Ready || loaded(state) != "False Restarting" || !strings.Contains(state.Info, "is being restarted") {
			t.Errorf("a cluster that is about to restart is %+v, %v", state, err)
		}
	}
	p.changed.Store(&look)
	if err := trust(bare); !errors.As(err, &clusterprovider.NotYet{}) || asked != 1 {
		t.Fatalf("kube-apiserver is restarted: %v, enqueued %d times", err, asked)
	}
	// A second call does not wait for it, and does not restart again. It succeeds only once the new process has taken over.
	restarted := only(t, p, apiServer, object.UID)
	again, cancel := context.WithTimeout(t.Context(), loadTimeout)
	err = p.TrustOIDC(again, object, []v1alpha1.OIDCProviderConfig{bare})
	switch {
	case again.Err() != nil, err != nil && !errors.As(err, &clusterprovider.NotYet{}):
		t.Errorf("during the restart: %v", err)
	case err == nil:
		fails("an issuer that is no longer trusted by the second call", corp.Token(t, nil))
	}
	cancel()
	if after := only(t, p, apiServer, object.UID); asked != 1 || after != restarted {
		t.Errorf("kube-apiserver is restarted again: enqueued %d times", asked)
	}
	// Nor does a call while it does not run take it for one that has been started.
	if err := p.cluster(object.UID).process(apiServer).Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.TrustOIDC(t.Context(), object, []v1alpha1.OIDCProviderConfig{bare}); !errors.As(err, &clusterprovider.NotYet{}) {
		t.Errorf("while it does not run during the restart: %v", err)
	}
	state, err := p.Ensure(t.Context(), object, clusterprovider.Profile{Config: configName})
	if err != nil || state.Ready || loaded(state) != "False Restarting" {
		t.Errorf("a cluster that restarts is %+v, %v", state, err)
	}
	if got := loaded(ensure(t, p, object)); got != "True Loaded" {
		t.Errorf("once it is back: %s", got)
	}
	if err := trust(bare); err != nil {
		t.Fatal(err)
	}
	fails("an issuer that is trusted no more", corp.Token(t, nil))
	if err := trust(); err != nil {
		t.Fatal(err)
	}

	t.Log("A provider that exits during a restart leaves no record of it")
	p.restarts.Store(object.UID, []byte("what it was restarted for"))
	p = crash(t, p)
	if got := loaded(ensure(t, p, object)); got != "True Loaded" {
		t.Errorf("after a crash: %s", got)
	}
}

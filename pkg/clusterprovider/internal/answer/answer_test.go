// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func request(name string, uid types.UID) *v1alpha1.AccessRequest {
	return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: uid}}
}

func TestRenewalOf_JitteredBefore80Percent(t *testing.T) {
	created := time.Now()
	seen := map[time.Duration]bool{}
	for i := range 200 {
		after := RenewalOf(request("a", types.UID(strings.Repeat("x", i))), created, created.Add(100*time.Hour)).Sub(created)
		if after < 75*time.Hour || after > 80*time.Hour {
			t.Errorf("renewed after %s of 100h", after)
		}
		seen[after.Truncate(time.Minute)] = true
	}
	if len(seen) < 100 {
		t.Errorf("200 renewals are in %d different minutes", len(seen))
	}
}

func TestOIDCKubeconfig_PluginArguments(t *testing.T) {
	data, err := oidcKubeconfig(&rest.Config{Host: "https://a:1"},
		&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue"}},
		&v1alpha1.OIDCProviderConfig{Name: "corp", Issuer: "https://i", ClientID: "c", ExtraScopes: []string{"x", "y"}})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	exec := config.AuthInfos["corp"].Exec
	want := "kubectl oidc-login get-token --grant-type=auto --oidc-issuer-url=https://i --oidc-client-id=c " +
		"--oidc-extra-scope=x --oidc-extra-scope=y --oidc-pkce-method=auto"
	got := strings.Join(append([]string{exec.Command}, exec.Args...), " ")
	if got != want || exec.APIVersion != "client.authentication.k8s.io/v1beta1" {
		t.Errorf("got %s of %s", got, exec.APIVersion)
	}
	if config.CurrentContext != "teams--blue--corp" || config.Clusters["teams--blue"].Server != "https://a:1" {
		t.Errorf("got %+v", config)
	}
}

func withTTL(ttl time.Duration, created time.Time) *v1alpha1.AccessRequest {
	ar := request("a", "1")
	ar.CreationTimestamp = metav1.NewTime(created)
	ar.Spec.TTL = &duration.Duration{Duration: ttl}
	return ar
}

func TestLifetimeFor_TokenExpiresBeforeRequest(t *testing.T) {
	now := time.Now()
	if got := LifetimeFor(request("a", "1"), now); got != 30*24*time.Hour {
		t.Errorf("without a ttl: %s", got)
	}
	for name, c := range map[string]struct {
		ttl, age, want time.Duration
	}{
		"the ttl":                             {ttl: 24 * time.Hour, want: 24 * time.Hour},
		"the rest of it":                      {ttl: 24 * time.Hour, age: 20 * time.Hour, want: 4 * time.Hour},
		"the least that servers do":           {ttl: 30 * time.Second, want: 10 * time.Minute},
		"little remains":                      {ttl: time.Hour, age: 59 * time.Minute, want: 10 * time.Minute},
		"it is over":                          {ttl: time.Hour, age: 2 * time.Hour, want: 10 * time.Minute},
		"a ttl beyond the requested lifetime": {ttl: 365 * 24 * time.Hour, want: 30 * 24 * time.Hour},
	} {
		if got := LifetimeFor(withTTL(c.ttl, now.Add(-c.age)), now); got < c.want-time.Second || got > c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestOutlives(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		ttl, lifetime time.Duration
		want          bool
	}{
		"as requested":              {ttl: time.Hour, lifetime: time.Hour},
		"a clock that is ahead":     {ttl: time.Hour, lifetime: time.Hour + 30*time.Second},
		"a ttl that was reduced":    {ttl: time.Hour, lifetime: 24 * time.Hour, want: true},
		"an earlier version's":      {ttl: 30 * time.Second, lifetime: 30 * 24 * time.Hour, want: true},
		"the least that servers do": {ttl: 30 * time.Second, lifetime: 10 * time.Minute},
	} {
		if got := Outlives(withTTL(c.ttl, now), now.Add(c.lifetime), now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if Outlives(request("a", "1"), now.Add(365*24*time.Hour), now) {
		t.Error("what has no end is outlived")
	}
}

func TestRenewalOf_NotForTokensThatExpireWithRequest(t *testing.T) {
	created := time.Now()
	if got := RenewalOf(withTTL(time.Hour, created), created, created.Add(time.Hour)); !got.IsZero() {
		t.Errorf("renewed at %s", got)
	}
	// The cluster grants less than requested.
	if got := RenewalOf(withTTL(24*time.Hour, created), created, created.Add(time.Hour)); got.IsZero() || got.After(created.Add(time.Hour)) {
		t.Errorf("renewed at %s", got)
	}
}

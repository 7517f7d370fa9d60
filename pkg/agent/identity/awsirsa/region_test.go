// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/agent/identity"
)

// The role is assumed at the STS of the agent's own region, and the token is for that of the hub's region.
func TestTokens_UseRegionalSTS(t *testing.T) {
	for name, test := range map[string]struct {
		env     map[string]string
		profile string
		own     string
		want    string
	}{
		"AWS_REGION":                         {env: map[string]string{"AWS_REGION": "eu-west-1"}, own: "eu-north-1", want: "eu-west-1"},
		"AWS_DEFAULT_REGION":                 {env: map[string]string{"AWS_DEFAULT_REGION": "eu-west-1"}, own: "eu-north-1", want: "eu-west-1"},
		"AWS_REGION comes first":             {env: map[string]string{"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, want: "eu-west-1"},
		"a profile":                          {profile: "eu-west-3", own: "eu-north-1", want: "eu-west-3"},
		"that of the agent's EKS cluster":    {own: "eu-north-1", want: "eu-north-1"},
		"nothing is known: that of the hub":  {want: "us-west-2"},
		"the hub's region is not that of it": {env: map[string]string{"AWS_REGION": "us-west-2"}, own: "eu-north-1", want: "us-west-2"},
	} {
		t.Run(name, func(t *testing.T) {
			sts := newFakeSTS(t)
			t.Setenv("AWS_REGION", "")
			t.Setenv("AWS_DEFAULT_REGION", "")
			for key, value := range test.env {
				t.Setenv(key, value)
			}
			if test.profile != "" {
				file := filepath.Join(t.TempDir(), "config")
				if err := os.WriteFile(file, []byte("[default]\nregion = "+test.profile+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				t.Setenv("AWS_CONFIG_FILE", file)
			}
			tokens := &Tokens{Cluster: "hub", Region: "us-west-2", OwnRegion: test.own, RoleARN: hubRole}
			if got := regionOf(t, tokens); got != "us-west-2" {
				t.Errorf("the token is for the STS of %s", got)
			}
			if len(sts.regions) != 1 || sts.regions[0] != test.want {
				t.Errorf("the STS of %v is asked, want %s", sts.regions, test.want)
			}
		})
	}
}

// The agent knows the region of its EKS cluster.
func TestDriver_TokensUseRegionOfCluster(t *testing.T) {
	d := New()
	d.HubARN, d.ManagedARN = hubARN, managedARN
	made, err := d.New(identity.Agent{})
	if err != nil {
		t.Fatal(err)
	}
	if tokens := made.(*role).tokens; tokens.Region != "us-west-2" || tokens.OwnRegion != "eu-west-1" {
		t.Errorf("they are for %s, by %s", tokens.Region, tokens.OwnRegion)
	}
}

// Each partition has host names of its own.
func TestTokens_UsePartitionOfHub(t *testing.T) {
	for region, want := range map[string]string{
		"us-west-2": "sts.us-west-2.amazonaws.com", "cn-north-1": "sts.cn-north-1.amazonaws.com.cn", "us-gov-west-1": "sts.us-gov-west-1.amazonaws.com",
	} {
		newFakeSTS(t)
		t.Setenv("AWS_ENDPOINT_URL_STS", "")
		tokens := &Tokens{Cluster: "hub", Region: region}
		if got := tokenURL(t, tokens).Host; got != want {
			t.Errorf("in %s it is for %s, want %s", region, got, want)
		}
	}
}

func tokenURL(t *testing.T, tokens *Tokens) *url.URL {
	t.Helper()
	token, _, err := tokens.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, tokenPrefix))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// regionOf returns the region that a token is signed for.
func regionOf(t *testing.T, tokens *Tokens) string {
	t.Helper()
	return regionIn(tokenURL(t, tokens).Query().Get("X-Amz-Credential"))
}

// regionIn returns the region of a signature's scope: <key>/<date>/<region>/sts/aws4_request.
func regionIn(scope string) string {
	if parts := strings.Split(scope, "/"); len(parts) > 2 {
		return parts[2]
	}
	return ""
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

func TestAddresses_RoundTrip(t *testing.T) {
	ca, _, err := cert.GenerateSelfSignedCertKey("c", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := []clusterv1.ClientConfig{{URL: "https://a:6443/x"}, {URL: `https://b/","y=z`, CABundle: ca}}
	text, err := FormatAddresses(all)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseAddresses(text); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("%+v: %v", got, err)
	}
}

func TestAddresses_Errors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                           "must be a list of addresses in JSON",
		`{"url": "https://a"}`:                       "must be a list of addresses in JSON",
		`[{"url": "https://a", "ca": "x"}]`:          "unknown field",
		`[{"url": "https://a"}] x`:                   "must be one list",
		`[{"url": "https://a"}, {}]`:                 `number 1 cannot be one: "" must be an https URL`,
		`[{"url": "http://a"}]`:                      `"http://a" must be an https URL`,
		`[{"url": "https://"}]`:                      "must be an https URL",
		`[{"url": "https://a", "caBundle": "eA=="}]`: `the caBundle of "https://a" must be certificates in PEM`,
		`[{"url": "https://` + strings.Repeat("a", MaxAddress) + `"}]`:                   "of at most 2048 characters",
		"[" + strings.TrimSuffix(strings.Repeat(`{"url": "https://a"},`, 65), ",") + "]": "has 65 addresses, and the limit is 64",
	} {
		if got, err := ParseAddresses(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.60s: %v, %v, want %q", text, got, err, want)
		}
	}
	var many []clusterv1.ClientConfig
	for i := range MaxAddresses {
		many = append(many, clusterv1.ClientConfig{URL: fmt.Sprintf("https://%d.%s", i, strings.Repeat("a", 1600))})
	}
	if _, err := FormatAddresses(many); err == nil || !strings.Contains(err.Error(), "the limit is 98304") {
		t.Errorf("more than a flag has: %v", err)
	}
}

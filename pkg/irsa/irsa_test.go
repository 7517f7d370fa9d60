// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"crypto/fips140"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func mustParse(t *testing.T, arn string) ClusterARN {
	t.Helper()
	c, err := ParseClusterARN(arn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newIdentity(t *testing.T) Identity {
	t.Helper()
	i, err := NewIdentity(mustParse(t, "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1"),
		mustParse(t, "arn:aws:eks:eu-west-1:210987654321:cluster/managed-cluster1"))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestParseClusterARN_RoundTrips(t *testing.T) {
	for arn, want := range map[string]ClusterARN{
		"arn:aws:eks:us-west-2:123456789012:cluster/hub":            {"aws", "us-west-2", "123456789012", "hub"},
		"arn:aws:eks:ap-southeast-4:000000000001:cluster/A_b-9":     {"aws", "ap-southeast-4", "000000000001", "A_b-9"},
		"arn:aws-cn:eks:cn-northwest-1:123456789012:cluster/0":      {"aws-cn", "cn-northwest-1", "123456789012", "0"},
		"arn:aws-us-gov:eks:us-gov-east-1:123456789012:cluster/hub": {"aws-us-gov", "us-gov-east-1", "123456789012", "hub"},
	} {
		got, err := ParseClusterARN(arn)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", arn, got, err)
		}
		if got.String() != arn {
			t.Errorf("%s is written as %s", arn, got)
		}
	}
}

func TestParseClusterARN_Errors(t *testing.T) {
	for arn, want := range map[string]string{
		"":                                      `does not begin with "arn:"`,
		"hub":                                   `does not begin with "arn:"`,
		" arn:aws:eks:us-west-2:1:x":            `does not begin with "arn:"`,
		"arn":                                   "has 1 parts",
		"arn:aws:eks":                           "has 3 parts",
		"arn:aws:eks:us-west-2:1234":            "has 5 parts",
		"arn::::::":                             `partition is ""`,
		"arn:AWS:eks:us-west-2:1:x":             `partition is "AWS"`,
		"arn:aws-iso:eks:us-iso-1:1:x":          `partition is "aws-iso"; aws, aws-cn and aws-us-gov are supported`,
		"arn:aws:iam::123456789012:r/x":         `service is "iam" instead of eks`,
		"arn:aws:eks::123456789012:cluster/hub": `"" is not a region`,
		"arn:aws:eks:US-WEST-2:123456789012:cluster/hub":                          `"US-WEST-2" is not a region`,
		"arn:aws:eks:us-west-2\n:123456789012:cluster/hub":                        `"us-west-2\n" is not a region`,
		"arn:aws:eks:cn-north-1:123456789012:cluster/hub":                         "the region cn-north-1 is in the partition aws-cn",
		"arn:aws-cn:eks:us-west-2:123456789012:cluster/hub":                       "the region us-west-2 is in the partition aws",
		"arn:aws-cn:eks:us-gov-west-1:123456789012:cluster/hub":                   "is in the partition aws-us-gov",
		"arn:aws:eks:us-west-2::cluster/hub":                                      `account is "" instead of 12 digits`,
		"arn:aws:eks:us-west-2:12345678901:cluster/hub":                           `account is "12345678901"`,
		"arn:aws:eks:us-west-2:1234567890123:cluster/hub":                         `account is "1234567890123"`,
		"arn:aws:eks:us-west-2:１２３４５６７８９０１２:cluster/hub":                          "instead of 12 digits",
		"arn:aws:eks:us-west-2:123456789012:nodegroup/hub":                        `names "nodegroup/hub" instead of cluster/<name>`,
		"arn:aws:eks:us-west-2:123456789012:cluster/":                             `"" is not the name`,
		"arn:aws:eks:us-west-2:123456789012:cluster/-hub":                         `"-hub" is not the name`,
		"arn:aws:eks:us-west-2:123456789012:cluster/a/b":                          `"a/b" is not the name`,
		"arn:aws:eks:us-west-2:123456789012:cluster/a#b":                          `"a#b" is not the name`,
		"arn:aws:eks:us-west-2:123456789012:cluster/hub\n":                        `"hub\n" is not the name`,
		"arn:aws:eks:us-west-2:123456789012:cluster/" + strings.Repeat("a", 101):  "is not the name",
		"arn:aws:eks:us-west-2:123456789012:cluster/" + strings.Repeat("a", 9999): "is not the name",
	} {
		_, err := ParseClusterARN(arn)
		if err == nil {
			t.Errorf("%q is read", arn)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q does not say %q", arn, err, want)
		}
		if strings.Contains(err.Error(), "\n") || len(err.Error()) > 700 {
			t.Errorf("%q is not one short line", err)
		}
	}
}

func FuzzParseClusterARN(f *testing.F) {
	f.Add("arn:aws:eks:us-west-2:123456789012:cluster/hub")
	f.Add("arn:::::cluster/")
	f.Fuzz(func(t *testing.T, arn string) {
		if c, err := ParseClusterARN(arn); err == nil && c.String() != arn {
			t.Errorf("%q is read as %s", arn, c)
		}
	})
}

func TestSuffix_MatchesSpecificationAndUpstream(t *testing.T) {
	if got := Suffix("hubaccount1", "hubcluster1", "managedaccount1", "managedcluster1"); got != "79e99112993014816615711cbd35a9bc" {
		t.Error(got)
	}
	if got := Suffix("123456789012", "hub-cluster1", "123456789012", "managed-cluster1"); got != "7f8141296c75f2871e3d030f85c35692" {
		t.Error(got)
	}
}

func TestIdentity_RoleNames(t *testing.T) {
	for partition, region := range map[string]string{"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"} {
		i, err := NewIdentity(mustParse(t, "arn:"+partition+":eks:"+region+":123456789012:cluster/hub-cluster1"),
			mustParse(t, "arn:"+partition+":eks:"+region+":210987654321:cluster/managed-cluster1"))
		if err != nil {
			t.Fatal(err)
		}
		suffix := Suffix("123456789012", "hub-cluster1", "210987654321", "managed-cluster1")
		if got, want := i.HubRoleARN(), "arn:"+partition+":iam::123456789012:role/ocm-hub-"+suffix; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := i.ManagedRoleARN(), "arn:"+partition+":iam::210987654321:role/ocm-managed-cluster-"+suffix; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if len(i.HubRole()) > 64 || len(i.ManagedRole()) > 64 {
			t.Error("IAM allows 64 characters")
		}
	}
}

func TestNewIdentity_RejectsOtherPartition(t *testing.T) {
	_, err := NewIdentity(mustParse(t, "arn:aws:eks:us-west-2:123456789012:cluster/hub"),
		mustParse(t, "arn:aws-cn:eks:cn-north-1:123456789012:cluster/c"))
	if err == nil || !strings.Contains(err.Error(), "partition aws-cn and the hub in aws") {
		t.Error(err)
	}
}

func TestCreatorRole_FitsIAMLimits(t *testing.T) {
	hub := newIdentity(t).Hub
	for name, want := range map[string]string{
		"hub-cluster1":          "hub-cluster1_managed-cluster-identity-creator",
		strings.Repeat("a", 31): strings.Repeat("a", 31) + "_managed-cluster-identity-creator",
		// The hash covers the whole name.
		strings.Repeat("a", 32):       strings.Repeat("a", 22) + "-3ba3f5f4_managed-cluster-identity-creator",
		strings.Repeat("a", 99) + "b": strings.Repeat("a", 22) + "-ec1a833c_managed-cluster-identity-creator",
	} {
		hub.Name = name
		got := CreatorRole(hub)
		if got != want || len(got) > 64 || CreatorRoleARN(hub) != "arn:aws:iam::123456789012:role/"+want {
			t.Errorf("%s: %s, %s", name, got, CreatorRoleARN(hub))
		}
	}
}

// The specification requires MD5 in the names. With GODEBUG=fips140=only, Go refuses to compute it for anything else. The setting is read when a
// process starts, so the test starts itself.
func TestSuffix_WithoutMD5(t *testing.T) {
	if fips140.Enforced() {
		if got := Suffix("hubaccount1", "hubcluster1", "managedaccount1", "managedcluster1"); got != "79e99112993014816615711cbd35a9bc" {
			t.Error(got)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "GODEBUG=fips140=only")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) || strings.Contains(string(out), "SKIP") {
		t.Errorf("%v: %s", err, out)
	}
}

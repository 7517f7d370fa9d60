// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

const (
	hubARN  = "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1"
	arn1    = "arn:aws:eks:us-west-2:123456789012:cluster/managed-cluster1"
	suffix1 = "7f8141296c75f2871e3d030f85c35692" // upstream's test vector
	role1   = "ocm-hub-" + suffix1
	role1AR = "arn:aws:iam::123456789012:role/" + role1
)

// fakeClock is the wall clock of a driver.
type fakeClock struct{ *clocktesting.FakePassiveClock }

func (c *fakeClock) pass(d time.Duration) { c.SetTime(c.Now().Add(d)) }

// newDriver returns a driver that was started a while ago. Without an AWS it must call none.
func newDriver(t *testing.T, f *hubAWS, c Options) (*Driver, *fakeClock) {
	t.Helper()
	if f != nil && c.AWS.Credentials == nil {
		c.AWS = f.config
	}
	if c.HubClusterARN == "" {
		c.HubClusterARN = hubARN
	}
	clk := &fakeClock{clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))}
	c.Clock = clk
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	clk.pass(2 * settleTime)
	// As configured: without the driver's retries.
	d.roles.iam, d.entries.eks = iam.NewFromConfig(c.AWS), eks.NewFromConfig(c.AWS)
	return d, clk
}

func newCluster(name string, annotations ...string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		c.Annotations[annotations[i]] = annotations[i+1]
	}
	return c
}

const (
	annotation       = "agent.open-cluster-management.io/managed-cluster-arn"
	annotationSeed   = "eks-managed-cluster-arn"
	annotationSuffix = "agent.open-cluster-management.io/managed-cluster-iam-role-suffix"
)

func plan(t *testing.T, d *Driver, name, arn string) driver.Record {
	t.Helper()
	r, err := d.Plan(newCluster(name, annotation, arn))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNew_InvalidConfig(t *testing.T) {
	many := map[string]string{}
	for i := range 41 {
		many[strings.Repeat("k", i+1)] = ""
	}
	for want, c := range map[string]Options{
		"the hub's ARN: ":               {HubClusterARN: "hub"},
		`the ARN pattern "("`:           {HubClusterARN: hubARN, ApprovedARNPatterns: []string{"("}},
		`not "iam"`:                     {HubClusterARN: hubARN, Access: "iam"},
		"must not be negative":          {HubClusterARN: hubARN, CheckInterval: -1},
		"aws-auth needs a client":       {HubClusterARN: hubARN, Access: AWSAuth},
		`prefix "aws:" is reserved`:     {HubClusterARN: hubARN, Tags: map[string]string{"aws:x": ""}},
		"is the hub's own":              {HubClusterARN: hubARN, Tags: map[string]string{"Hub_Cluster_Name": ""}},
		`duplicate tag "team"`:          {HubClusterARN: hubARN, Tags: map[string]string{"team": "", "Team": ""}},
		`"clusterhub.dev/managed-clust`: {HubClusterARN: hubARN, Tags: map[string]string{irsa.TagOwner: "c"}},
		"a key has 1 to 128":            {HubClusterARN: hubARN, Tags: map[string]string{"": ""}},
		"41 tags are too many":          {HubClusterARN: hubARN, Tags: many},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestDriver_Configuration(t *testing.T) {
	d, _ := newDriver(t, nil, Options{CheckInterval: DefaultCheckInterval})
	if d.Name() != "awsirsa" || d.CheckInterval() != time.Hour || d.access != AccessEntry {
		t.Error(d.Name(), d.CheckInterval(), d.access)
	}
	if d, _ := newDriver(t, nil, Options{}); d.CheckInterval() != 0 {
		t.Error("it cannot be switched off")
	}
}

func TestHandles_EKSClusters(t *testing.T) {
	d, _ := newDriver(t, nil, Options{})
	for name, test := range map[string]struct {
		cluster *clusterv1.ManagedCluster
		want    bool
	}{
		"upstream's annotation": {newCluster("c", annotation, arn1), true},
		"the seed's":            {newCluster("c", annotationSeed, arn1), true},
		"a malformed one":       {newCluster("c", annotation, "x"), true}, // which Plan refuses
		"an empty one":          {newCluster("c", annotation, ""), false},
		"only a suffix":         {newCluster("c", annotationSuffix, suffix1), false},
		"none":                  {newCluster("c"), false},
	} {
		if got := d.Handles(test.cluster); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestPlan_DerivedFromARN(t *testing.T) {
	want := driver.Record(`{"hubClusterARN":"` + hubARN + `","managedClusterARN":"` + arn1 + `","roleName":"` + role1 + `","access":"access-entry"}`)
	d, _ := newDriver(t, nil, Options{})
	for name, cluster := range map[string]*clusterv1.ManagedCluster{
		"upstream's annotation": newCluster("c", annotation, arn1),
		"the seed's":            newCluster("c", annotationSeed, arn1),
		"both, alike":           newCluster("c", annotation, arn1, annotationSeed, arn1),
		"with its suffix":       newCluster("c", annotation, arn1, annotationSuffix, suffix1),
	} {
		got, err := d.Plan(cluster)
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func TestPlan_RejectsContradictions(t *testing.T) {
	d, _ := newDriver(t, nil, Options{})
	for want, cluster := range map[string]*clusterv1.ManagedCluster{
		"name different clusters": newCluster("c", annotation, arn1, annotationSeed, arn1+"x"),
		"the annotation agent.open-cluster-management.io/managed-cluster-arn: ": newCluster("c", annotation, "arn:aws:eks"),
		"the annotation eks-managed-cluster-arn: ":                              newCluster("c", annotationSeed, "arn:aws:eks"),
		"have different ARNs of the hub: this hub is " + hubARN:                 newCluster("c", annotation, arn1, annotationSuffix, irsa.Suffix("1", "2", "3", "4")),
		"allows no trust in another partition":                                  newCluster("c", annotation, "arn:aws-cn:eks:cn-north-1:123456789012:cluster/c"),
	} {
		if _, err := d.Plan(cluster); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestAutoApproves_ARNsMatchNames(t *testing.T) {
	const name, own = "managed-cluster1", `approves it for a cluster with the name "managed-cluster1"`
	cluster := newCluster(name, annotation, arn1)
	all := []string{`arn:aws:eks:us-west-2:123456789012:cluster/.*`}
	for what, test := range map[string]struct {
		patterns []string
		cluster  *clusterv1.ManagedCluster
		want     bool
		why      string
	}{
		"no pattern":           {nil, cluster, false, ""},
		"the account's":        {all, cluster, true, own},
		"the seed's spelling":  {all, newCluster(name, annotationSeed, arn1), true, own},
		"another name":         {all, newCluster("c", annotation, arn1), false, own},
		"a group":              {[]string{`.*:cluster/managed-(?P<name>.*)`}, newCluster("cluster1", annotation, arn1), true, `"cluster1"`},
		"a group, the name":    {[]string{`.*:cluster/managed-(?P<name>.*)`}, cluster, false, `"cluster1"`},
		"a part":               {[]string{`123456789012`}, cluster, false, ""},
		"a malformed ARN":      {[]string{`.*`}, newCluster(name, annotation, "x"), false, ""},
		"a contradiction":      {[]string{`.*`}, newCluster(name, annotation, arn1, annotationSeed, "x"), false, ""},
		"another's suffix too": {[]string{`.*`}, newCluster(name, annotation, arn1, annotationSuffix, "x"), false, ""},
	} {
		d, _ := newDriver(t, nil, Options{ApprovedARNPatterns: test.patterns})
		if got := d.AutoApproves(test.cluster); got != test.want {
			t.Errorf("%s: got %v", what, got)
		}
		if why := d.WhyNot(test.cluster); (why == "") != (test.why == "") || !strings.Contains(why, test.why) {
			t.Errorf("%s: says %q, want %q", what, why, test.why)
		}
	}
}

// The role is exclusive to one cluster, and its name has no region.
func TestIdentity_MatchesRole(t *testing.T) {
	d, _ := newDriver(t, nil, Options{})
	got := d.Identity(plan(t, d, "a", arn1))
	if !strings.Contains(got, role1) || got != d.Identity(plan(t, d, "b", strings.Replace(arn1, "us-west-2", "eu-west-1", 1))) {
		t.Errorf("got %q", got)
	}
	if other := d.Identity(plan(t, d, "a", arn1+"x")); other == got || other == "" {
		t.Errorf("got %q", other)
	}
	for _, rec := range []driver.Record{"", "{", "{}"} {
		if got := d.Identity(rec); got != "" {
			t.Errorf("%s: got %q", rec, got)
		}
	}
}

func TestRecord_RejectsOtherHubOrVersion(t *testing.T) {
	f := newHubAWS(t)
	d, _ := newDriver(t, f, Options{})
	good := string(plan(t, d, "c", arn1))
	for name, rec := range map[string]string{
		"nothing":      "",
		"no JSON":      "{",
		"another hub":  strings.ReplaceAll(good, "hub-cluster1", "hub-cluster2"),
		"a bad ARN":    strings.ReplaceAll(good, arn1, "arn"),
		"a bad path":   strings.ReplaceAll(good, `"access"`, `"rolePath":"x","access"`),
		"another role": strings.ReplaceAll(good, role1, "ocm-hub-"+irsa.Suffix("1", "2", "3", "4")),
		"any role":     strings.ReplaceAll(good, role1, "admin"),
		"no access":    strings.ReplaceAll(good, "access-entry", ""),
		"no client":    strings.ReplaceAll(good, "access-entry", "aws-auth"),
		"a partition":  strings.ReplaceAll(good, arn1, "arn:aws-cn:eks:cn-north-1:123456789012:cluster/managed-cluster1"),
	} {
		for _, do := range []func(context.Context, string, driver.Record) error{d.Grant, d.Revoke} {
			if err := do(t.Context(), "c", driver.Record(rec)); !errors.Is(err, driver.ErrTerminal) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	if calls := f.taken(); len(calls) > 0 {
		t.Errorf("AWS was called: %v", calls)
	}
}

func TestAccess_MatchesAcceptance(t *testing.T) {
	f, kube := newHubAWS(t), fake.NewClientset()
	before, _ := newDriver(t, f, Options{})
	rec := f.plan(before, "c", arn1)
	mustGrant(t, before, "c", rec)
	after, _ := newDriver(t, f, Options{Access: AWSAuth, Kube: kubernetes.Interface(kube)})
	mustGrant(t, after, "c", rec)
	if len(kube.Actions()) > 0 {
		t.Error("aws-auth was touched")
	}
	mustRevoke(t, after, "c", rec)
	f.mustBeEmpty(t)
}

func mustGrant(t *testing.T, d *Driver, cluster string, rec driver.Record) {
	t.Helper()
	if err := d.Grant(t.Context(), cluster, rec); err != nil {
		t.Fatal(err)
	}
}

func mustRevoke(t *testing.T, d *Driver, cluster string, rec driver.Record) {
	t.Helper()
	if err := d.Revoke(t.Context(), cluster, rec); err != nil {
		t.Fatal(err)
	}
}

func mustEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

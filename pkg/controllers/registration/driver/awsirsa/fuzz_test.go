// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"strings"
	"testing"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func fuzzedDriver(f *testing.F) *Driver {
	f.Helper()
	d, err := New(Options{HubClusterARN: hubARN})
	if err != nil {
		f.Fatal(err)
	}
	return d
}

// FuzzRead verifies that a record that is read is of this hub, and of the one role of its ARN: another spelling creates or deletes no other role.
func FuzzRead(f *testing.F) {
	d := fuzzedDriver(f)
	good := `{"hubClusterARN":"` + hubARN + `","managedClusterARN":"` + arn1 + `","roleName":"` + role1 + `","access":"access-entry"}`
	for _, text := range []string{
		good, strings.Replace(good, role1, "admin", 1), strings.Replace(good, hubARN, hubARN+"-2", 1), strings.Replace(good, "access-entry", "aws-auth", 1),
		strings.Replace(good, `"access"`, `"rolePath":"/a/b/","access"`, 1), strings.Replace(good, `"access"`, `"rolePath":"/*/","access"`, 1),
		strings.Replace(good, arn1, arn1+"x", 1), strings.TrimSuffix(good, "}") + `,"roleName":"admin"}`, strings.TrimSuffix(good, "}") + `,"ROLENAME":"admin"}`,
		good + "{}", `{"managedClusterARN":"` + arn1 + `"}`, "null", "", "[]", strings.ReplaceAll(good, ":cluster/", ":cluster\\u002f"),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := d.read("c", driver.Record(text))
		if err != nil {
			return
		}
		cluster := &clusterv1.ManagedCluster{}
		cluster.Annotations = map[string]string{registration.AnnotationManagedClusterARN: g.Managed.String()}
		again, err := d.Plan(cluster)
		if err != nil {
			t.Fatalf("%s is of %s: %v", text, g.Managed, err)
		}
		same, err := d.read("c", again)
		rest := g.Identity
		rest.HubPath = "" // which this hub gives no role
		if err != nil || same.Identity != rest || same.access != g.access || !strings.HasSuffix(g.HubRoleARN(), g.HubPath.String()+g.HubRole()) {
			t.Errorf("%s became %s, %v", text, again, err)
		}
		if g.Hub.String() != hubARN || d.Identity(driver.Record(text)) != d.Identity(again) || d.Identity(again) == "" {
			t.Errorf("%s is of %q, of the hub %s", text, d.Identity(driver.Record(text)), g.Hub)
		}
	})
}

// FuzzIdentity verifies that a cluster is registered as its annotations say, and that two clusters that get one role have one account and one name.
func FuzzIdentity(f *testing.F) {
	d := fuzzedDriver(f)
	const other = "arn:aws:eks:eu-west-1:210987654321:cluster/a"
	f.Add(arn1, "", "", arn1)
	f.Add(arn1, arn1, "", strings.Replace(arn1, "us-west-2", "eu-west-1", 1))
	f.Add(arn1, other, "x", other)
	f.Add("", other, "", "arn:aws:eks:eu-west-1:210987654321:cluster/A")
	f.Add("arn:aws-cn:eks:cn-north-1:210987654321:cluster/a", "", "", other)
	f.Fuzz(func(t *testing.T, own, seed, suffix, another string) {
		planned := func(annotations map[string]string) (grant, string, bool) {
			cluster := &clusterv1.ManagedCluster{}
			cluster.Annotations = annotations
			record, err := d.Plan(cluster)
			if err != nil {
				return grant{}, "", false
			}
			g, err := d.read("c", record)
			if err != nil {
				t.Fatalf("%q is planned as %s: %v", annotations, record, err)
			}
			return g, d.Identity(record), true
		}
		g, id, ok := planned(map[string]string{
			registration.AnnotationManagedClusterARN: own, registration.AnnotationManagedClusterARNOfSeed: seed, registration.AnnotationRoleSuffix: suffix,
		})
		if !ok {
			return
		}
		if arn := g.Managed.String(); own != "" && arn != own || seed != "" && arn != seed || suffix != "" && suffix != g.Suffix() {
			t.Errorf("%q, %q with %q are taken for %s", own, seed, suffix, arn)
		}
		b, otherID, ok := planned(map[string]string{registration.AnnotationManagedClusterARN: another})
		if !ok {
			return
		}
		oneRole := g.Managed.Account == b.Managed.Account && g.Managed.Name == b.Managed.Name
		if (g.HubRoleARN() == b.HubRoleARN()) != oneRole || (id == otherID) != oneRole {
			t.Errorf("%s and %s have the roles %s and %s, of %q and %q", g.Managed, b.Managed, g.HubRole(), b.HubRole(), id, otherID)
		}
	})
}

// FuzzNamedCluster verifies that an entry of aws-auth belongs to the cluster of its user, and to no other.
func FuzzNamedCluster(f *testing.F) {
	for _, user := range []string{
		"system:open-cluster-management:c1", "system:open-cluster-management:c1:agent", "system:open-cluster-management:", "open-cluster-management:c1", "c1", "",
		"system:node:{{EC2PrivateDNSName}}",
	} {
		f.Add(user)
	}
	f.Fuzz(func(t *testing.T, user string) {
		mapped, entry := namedCluster(user, mappedUser), namedCluster(user, entryUser)
		if mapped != "" && (mappedUser(mapped) != user || entry != "") || entry != "" && entryUser(entry) != user {
			t.Errorf("%q is of %q by aws-auth and of %q by an access entry", user, mapped, entry)
		}
		// The own user of every cluster belongs to it.
		if !strings.Contains(user, ":") && (namedCluster(mappedUser(user), mappedUser) != user || namedCluster(entryUser(user), entryUser) != user) {
			t.Errorf("the user of %q is not its", user)
		}
	})
}

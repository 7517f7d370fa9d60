// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	accessapi "github.com/clusterhub/clusterhub/pkg/apis/access"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/membership"
)

// FuzzSplitName: a name that is taken is that of one member, and a part of one key.
func FuzzSplitName(f *testing.F) {
	for _, name := range []string{"c1.set", "c1.set.with.dots", "c1", ".set", "c1.", "c1.a/b", "../c1.set", "c1.SET", "c1..set"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		cluster, set, ok := splitName(name)
		if !ok {
			return
		}
		if cluster+"."+set != name || strings.ContainsAny(cluster, "./") || strings.Contains(set, "/") || cluster == "" || set == "" {
			t.Errorf("%q is taken for the cluster %q in the set %q", name, cluster, set)
		}
	})
}

// FuzzFleetCodec: whatever a stored cluster says, its members are those that it has when all of it is decoded.
func FuzzFleetCodec(f *testing.F) {
	for _, rest := range []string{
		`"metadata":{"name":"c1","uid":"u","labels":{"a":"b"}},"spec":{"hubAcceptsClient":true,"taints":[{"key":"k","value":"v","effect":"NoSelect","timeAdded":null}]},"status":{"conditions":[{"type":"ManagedClusterJoined","status":"True"}],"version":{"kubernetes":"v1.37.1"}}}`,
		`"metadata":{"name":"c1","Labels":{"a":"b"},"labels":null}}`,
		`"metadata":{"name":"c1","labels":{"a":"b"},"labels":{"c":"d"}},"kind":"ManagedClusterSet"}`,
		`"metadata":{"name":"\ud800","creationTimestamp":"2026-01-02T03:04:05Z"},"spec":null}`,
		`"metadata":7}`, `"metadata":{}`, `}`, ``,
	} {
		f.Add([]byte(rest))
	}
	full := codecs.LegacyCodec(accessapi.SchemeGroupVersion)
	everything := &cluster.ManagedClusterSet{}
	everything.Name, everything.UID = "all", "u"
	selectBy(everything, map[string]string{})
	f.Fuzz(func(t *testing.T, rest []byte) {
		data := append(append([]byte{}, storedCluster...), rest...)
		whole, err := runtime.Decode(full, data)
		if err != nil {
			return
		}
		stored, ok := whole.(*cluster.ManagedCluster)
		if !ok {
			return // a second kind, which the store never writes
		}
		part, err := runtime.Decode(fleetCodec{full}, data)
		if err != nil {
			t.Fatalf("%v of %s", err, data)
		}
		var changes [][]membership.Change
		for _, c := range []*cluster.ManagedCluster{stored, part.(*cluster.ManagedCluster)} {
			index := membership.New()
			index.SetSet(everything)
			changes = append(changes, index.SetCluster(c))
		}
		if diff := cmp.Diff(changes[0], changes[1]); diff != "" {
			t.Errorf("of %s (-full +part):\n%s", data, diff)
		}
	})
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"math/rand"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterfuzzer "github.com/clusterhub/clusterhub/pkg/apis/cluster/fuzzer"
	clusterinstall "github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgefuzzer "github.com/clusterhub/clusterhub/pkg/apis/edge/fuzzer"
	edgeinstall "github.com/clusterhub/clusterhub/pkg/apis/edge/install"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	openmcpfuzzer "github.com/clusterhub/clusterhub/pkg/apis/openmcp/fuzzer"
	openmcpinstall "github.com/clusterhub/clusterhub/pkg/apis/openmcp/install"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	viewinstall "github.com/clusterhub/clusterhub/pkg/apis/view/install"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workfuzzer "github.com/clusterhub/clusterhub/pkg/apis/work/fuzzer"
	workinstall "github.com/clusterhub/clusterhub/pkg/apis/work/install"
)

// group is an API group under test.
type group struct {
	name    string
	install func(*runtime.Scheme)
	fuzz    fuzzer.FuzzerFuncs
	// kinds are the kinds of objects, each with its versions: the preferred one first.
	kinds map[string][]string
	// bounded is the number of versions of kinds that have declared bounds. Kinds that only requests have are among them.
	bounded int
}

var groups = []group{
	{cluster.GroupName, clusterinstall.Install, clusterfuzzer.Funcs, map[string][]string{
		"ManagedCluster":           {"v1"},
		"ManagedClusterSet":        {"v1beta2", "v1beta1"},
		"ManagedClusterSetBinding": {"v1beta2", "v1beta1"},
		"Placement":                {"v1beta1"},
		"PlacementDecision":        {"v1beta1"},
		"AddOnPlacementScore":      {"v1alpha1"},
		"ClusterClaim":             {"v1alpha1"},
	}, 11},
	{edge.GroupName, edgeinstall.Install, edgefuzzer.Funcs, map[string][]string{
		"EdgeNode":          {"v1alpha1"},
		"EdgeService":       {"v1alpha1"},
		"DeploymentPolicy":  {"v1alpha1"},
		"DeploymentPattern": {"v1alpha1"},
		"EdgePlacement":     {"v1alpha1"},
	}, 6},
	{openmcp.GroupName, openmcpinstall.Install, openmcpfuzzer.Funcs, map[string][]string{
		"ClusterProfile": {"v1alpha1"},
		"Cluster":        {"v1alpha1"},
		"ClusterRequest": {"v1alpha1"},
		"AccessRequest":  {"v1alpha1"},
	}, 5},
	{view.GroupName, viewinstall.Install, noFuncs, map[string][]string{"ClusterSetMember": {"v1alpha1"}}, 0},
	{work.GroupName, workinstall.Install, workfuzzer.Funcs, map[string][]string{
		"ManifestWork":                   {"v1"},
		"AppliedManifestWork":            {"v1"},
		"ManifestWorkReplicaSet":         {"v1alpha1"},
		"ManifestWorkReplicaSetRevision": {"v1alpha1"},
	}, 4},
}

func noFuncs(serializer.CodecFactory) []any { return nil }

// each runs a test for each API group.
func each(t *testing.T, test func(t *testing.T, g group, scheme *runtime.Scheme, codecs serializer.CodecFactory)) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			g.install(scheme)
			test(t, g, scheme, serializer.NewCodecFactory(scheme))
		})
	}
}

func (g group) funcs() fuzzer.FuzzerFuncs { return fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, g.fuzz) }

func TestEveryKindRoundTripsThroughEveryVersion(t *testing.T) {
	each(t, func(t *testing.T, g group, _ *runtime.Scheme, _ serializer.CodecFactory) {
		roundtrip.RoundTripTestForAPIGroup(t, g.install, g.fuzz)
	})
}

func TestEveryServedKindRoundTripsWireFormat(t *testing.T) {
	each(t, func(t *testing.T, g group, scheme *runtime.Scheme, codecs serializer.CodecFactory) {
		filler := fuzzer.FuzzerFor(g.funcs(), rand.NewSource(rand.Int63()), codecs)
		roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, filler, nil)
	})
}

func TestEveryServedKindRoundTripsUnstructured(t *testing.T) {
	each(t, func(t *testing.T, g group, scheme *runtime.Scheme, _ serializer.CodecFactory) {
		roundtrip.RoundtripToUnstructured(t, scheme, g.funcs(), nil, optionKinds(scheme))
	})
}

// optionKinds returns the kinds that every group has for requests, and that have no internal version.
func optionKinds(scheme *runtime.Scheme) sets.Set[schema.GroupVersionKind] {
	kinds := sets.New[schema.GroupVersionKind]()
	for gvk := range scheme.AllKnownTypes() {
		if !scheme.Recognizes(gvk.GroupKind().WithVersion(runtime.APIVersionInternal)) {
			kinds.Insert(gvk)
		}
	}
	return kinds
}

// TestDeclaredValidation_TakesAnyObject validates objects with and without each pointer: the generated code dereferences those whose presence is not
// declared.
func TestDeclaredValidation_TakesAnyObject(t *testing.T) {
	each(t, func(t *testing.T, g group, scheme *runtime.Scheme, codecs serializer.CodecFactory) {
		filler := fuzzer.FuzzerFor(g.funcs(), rand.NewSource(rand.Int63()), codecs).NilChance(0.5).NumElements(0, 3)
		validated := 0
		for gvk := range scheme.AllKnownTypes() {
			object, err := scheme.New(gvk)
			if err != nil || !scheme.HasValidationFunc(object) {
				continue
			}
			validated++
			old := object.DeepCopyObject()
			for range 200 {
				filler.Fill(object)
				filler.Fill(old)
				scheme.Validate(t.Context(), nil, object)
				scheme.ValidateUpdate(t.Context(), nil, object, old)
			}
		}
		if validated != g.bounded {
			t.Errorf("%d kinds have declared bounds, want %d", validated, g.bounded)
		}
	})
}

func TestInstall_ServesEveryKindInItsVersions(t *testing.T) {
	each(t, func(t *testing.T, g group, scheme *runtime.Scheme, _ serializer.CodecFactory) {
		for kind, versions := range g.kinds {
			var got []string
			for _, gv := range scheme.VersionsForGroupKind(schema.GroupKind{Group: g.name, Kind: kind}) {
				got = append(got, gv.Version)
				if !scheme.Recognizes(gv.WithKind(kind + "List")) {
					t.Errorf("%s has no list of %s", gv, kind)
				}
			}
			if !slices.Equal(got, versions) {
				t.Errorf("%s is in %q, want %q", kind, got, versions)
			}
		}
	})
}

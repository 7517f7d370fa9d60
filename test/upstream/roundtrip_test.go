// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	theirclusterv1 "open-cluster-management.io/api/cluster/v1"
	theirclusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	theirclusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	theirclusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	theiroperatorv1 "open-cluster-management.io/api/operator/v1"
	theirworkv1 "open-cluster-management.io/api/work/v1"
	theirworkv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"

	kjson "sigs.k8s.io/json"
)

// kinds are all that both have: ours and theirs.
var kinds = []struct{ ours, theirs runtime.Object }{
	{&clusterv1.ManagedCluster{}, &theirclusterv1.ManagedCluster{}},
	{&clusterv1.ManagedClusterList{}, &theirclusterv1.ManagedClusterList{}},
	{&clusterv1beta2.ManagedClusterSet{}, &theirclusterv1beta2.ManagedClusterSet{}},
	{&clusterv1beta2.ManagedClusterSetList{}, &theirclusterv1beta2.ManagedClusterSetList{}},
	{&clusterv1beta2.ManagedClusterSetBinding{}, &theirclusterv1beta2.ManagedClusterSetBinding{}},
	{&clusterv1beta2.ManagedClusterSetBindingList{}, &theirclusterv1beta2.ManagedClusterSetBindingList{}},
	{&clusterv1beta1.Placement{}, &theirclusterv1beta1.Placement{}},
	{&clusterv1beta1.PlacementList{}, &theirclusterv1beta1.PlacementList{}},
	{&clusterv1beta1.PlacementDecision{}, &theirclusterv1beta1.PlacementDecision{}},
	{&clusterv1beta1.PlacementDecisionList{}, &theirclusterv1beta1.PlacementDecisionList{}},
	{&clusterv1alpha1.AddOnPlacementScore{}, &theirclusterv1alpha1.AddOnPlacementScore{}},
	{&clusterv1alpha1.AddOnPlacementScoreList{}, &theirclusterv1alpha1.AddOnPlacementScoreList{}},
	{&clusterv1alpha1.ClusterClaim{}, &theirclusterv1alpha1.ClusterClaim{}},
	{&clusterv1alpha1.ClusterClaimList{}, &theirclusterv1alpha1.ClusterClaimList{}},
	{&workv1.ManifestWork{}, &theirworkv1.ManifestWork{}},
	{&workv1.ManifestWorkList{}, &theirworkv1.ManifestWorkList{}},
	{&workv1.AppliedManifestWork{}, &theirworkv1.AppliedManifestWork{}},
	{&workv1.AppliedManifestWorkList{}, &theirworkv1.AppliedManifestWorkList{}},
	{&workv1alpha1.ManifestWorkReplicaSet{}, &theirworkv1alpha1.ManifestWorkReplicaSet{}},
	{&workv1alpha1.ManifestWorkReplicaSetList{}, &theirworkv1alpha1.ManifestWorkReplicaSetList{}},
	{&operatorv1.ClusterManager{}, &theiroperatorv1.ClusterManager{}},
	{&operatorv1.ClusterManagerList{}, &theiroperatorv1.ClusterManagerList{}},
	{&operatorv1.Klusterlet{}, &theiroperatorv1.Klusterlet{}},
	{&operatorv1.KlusterletList{}, &theiroperatorv1.KlusterletList{}},
}

// funcs fill what has a form of its own in JSON.
func funcs(serializer.CodecFactory) []any {
	return []any{
		func(r *runtime.RawExtension, c randfill.Continue) {
			r.Object, r.Raw = nil, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","data":{"k%d":"v"}}`, c.Intn(100))
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(int64(c.Uint32()), 0) },
		func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Intn(1e6)) * time.Second },
		func(i *intstr.IntOrString, c randfill.Continue) {
			*i = intstr.FromInt32(int32(c.Intn(100)))
			if c.Bool() {
				*i = intstr.FromString(fmt.Sprintf("%d%%", c.Intn(101)))
			}
		},
		func(q *resource.Quantity, c randfill.Continue) { *q = resource.MustParse(fmt.Sprint(1 + c.Intn(1000))) },
		// What only ours have.
		func(s *operatorv1.ClusterManagerSpec, c randfill.Continue) { c.FillNoCustom(s); s.Clusterhub = nil },
		func(s *operatorv1.KlusterletSpec, c randfill.Continue) { c.FillNoCustom(s); s.Clusterhub = nil },
		func(o *workv1.ManifestConfigOption, c randfill.Continue) { c.FillNoCustom(o); o.Adoption = "" },
		func(s *operatorv1.KlusterletStatus, c randfill.Continue) { c.FillNoCustom(s); s.Clusterhub = nil },
	}
}

// fill makes a random object. What is nil and what is empty are the same in JSON.
func fill(t *testing.T, seed int64, kind runtime.Object) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, funcs), rand.NewSource(seed), serializer.NewCodecFactory(scheme))
	object := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(runtime.Object)
	fill.NilChance(0.2).NumElements(0, 3).Fill(object)
	return object
}

// through writes an object and reads it strictly into another type: every field has to be known there.
func through(t *testing.T, from runtime.Object, to runtime.Object) runtime.Object {
	t.Helper()
	data, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	into := reflect.New(reflect.TypeOf(to).Elem()).Interface().(runtime.Object)
	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil || len(unknown) > 0 {
		t.Fatalf("%T does not take what %T writes: %v %v\n%s", to, from, err, unknown, data)
	}
	return into
}

func TestTypes_MatchUpstream(t *testing.T) {
	for _, kind := range kinds {
		t.Run(fmt.Sprintf("%T", kind.ours), func(t *testing.T) {
			for seed := range int64(300) {
				ours := fill(t, seed, kind.ours)
				if back := through(t, through(t, ours, kind.theirs), kind.ours); !equality.Semantic.DeepEqual(ours, back) {
					t.Fatalf("ours, seed %d:\n%s\nback:\n%s", seed, text(ours), text(back))
				}
				theirs := fill(t, seed, kind.theirs)
				if back := through(t, through(t, theirs, kind.ours), kind.theirs); !equality.Semantic.DeepEqual(theirs, back) {
					t.Fatalf("theirs, seed %d:\n%s\nback:\n%s", seed, text(theirs), text(back))
				}
			}
		})
	}
}

func text(object any) string {
	data, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

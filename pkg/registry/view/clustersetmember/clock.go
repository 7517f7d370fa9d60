// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

// The access clock is a member that no client sees. It stands in the cache beside the real ones, and its changes
// travel in order with theirs: that is how a watch learns at which point of the stream the rules for what its user
// may see have changed.
const (
	keyRoot  = "/clustersetmembers"
	keySets  = keyRoot + "/set"
	clockKey = keyRoot + "/access"

	// clockMark is in the labels and fields of the clock only: no label key and no field is spelled so.
	clockMark = "\x00access"
)

func newClock(version uint64) *view.ClusterSetMember {
	clock := &view.ClusterSetMember{ObjectMeta: metav1.ObjectMeta{Name: clockMark}}
	setVersion(clock, version)
	return clock
}

func isClock(m *view.ClusterSetMember) bool { return m.Name == clockMark }

// keyOf orders the members by set and then by cluster, so that the members of one set are one range.
func keyOf(obj runtime.Object) (string, error) {
	m, ok := obj.(*view.ClusterSetMember)
	if !ok {
		return "", fmt.Errorf("%T is no ClusterSetMember", obj)
	}
	if isClock(m) {
		return clockKey, nil
	}
	return memberKey(m.Spec.Cluster, m.Spec.ClusterSet), nil
}

func memberKey(clusterName, setName string) string { return setKey(setName) + clusterName }

// setKey ends in a slash: no other set's key starts with it.
func setKey(setName string) string { return keySets + "/" + setName + "/" }

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	m, ok := obj.(*view.ClusterSetMember)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no ClusterSetMember", obj)
	}
	if isClock(m) {
		return labels.Set{clockMark: ""}, fields.Set{clockMark: ""}, nil
	}
	return m.Labels, fields.Set{
		"metadata.name":   m.Name,
		"spec.cluster":    m.Spec.Cluster,
		"spec.clusterSet": m.Spec.ClusterSet,
	}, nil
}

// labelsOrClock and fieldsOrClock select what they wrap, and the clock. They promise no exact match, so that nothing
// that is keyed by one keeps the clock away.
type labelsOrClock struct{ labels.Selector }

func (s labelsOrClock) Matches(l labels.Labels) bool {
	return l.Has(clockMark) || s.Selector.Matches(l)
}
func (s labelsOrClock) Empty() bool { return false }
func (s labelsOrClock) RequiresExactMatch(string) (string, bool) {
	return "", false
}
func (s labelsOrClock) DeepCopySelector() labels.Selector {
	return labelsOrClock{s.Selector.DeepCopySelector()}
}

type fieldsOrClock struct{ fields.Selector }

func (s fieldsOrClock) Matches(f fields.Fields) bool {
	return f.Has(clockMark) || s.Selector.Matches(f)
}
func (s fieldsOrClock) Empty() bool { return false }
func (s fieldsOrClock) RequiresExactMatch(string) (string, bool) {
	return "", false
}
func (s fieldsOrClock) DeepCopySelector() fields.Selector {
	return fieldsOrClock{s.Selector.DeepCopySelector()}
}

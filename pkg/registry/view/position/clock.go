// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// The visibility clock is an object of each derived resource that no client sees. It is in the cache beside the real objects, and its changes are
// ordered with theirs: this shows a watch at which point of the stream the rules for its user have changed.

// ClockName is the name of the clock. It is in the labels and fields of hidden objects only: no label key and no field has this form.
const ClockName = "\x00visibility"

// NewClock returns the clock at a version.
func (r Resource) NewClock(version uint64) generic.Object {
	clock := r.New()
	clock.SetName(ClockName)
	SetVersion(clock, version)
	return clock
}

// EndName is the name of the end of a change: the changes of one revision of a resource with rows are shown once all of them are known. It is another
// object that no client sees.
const EndName = "\x00end"

// NewEnd returns the end of a change.
func (r Resource) NewEnd() generic.Object {
	end := r.New()
	end.SetName(EndName)
	return end
}

func isHidden(object metav1.Object) bool {
	return object.GetName() == ClockName || object.GetName() == EndName
}

// WithClock makes a predicate also select the clock. No name in it narrows a watch to one key any more.
func WithClock(p storage.SelectionPredicate) storage.SelectionPredicate {
	p.Label, p.Field, p.IndexFields = labelsOrClock{p.Label}, fieldsOrClock{p.Field}, nil
	return p
}

// labelsOrClock and fieldsOrClock select what they wrap, and the clock. They return no exact match, so that no index by one excludes the clock.
type labelsOrClock struct{ labels.Selector }

func (s labelsOrClock) Matches(l labels.Labels) bool {
	return l.Has(ClockName) || s.Selector.Matches(l)
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
	return f.Has(ClockName) || s.Selector.Matches(f)
}
func (s fieldsOrClock) Empty() bool { return false }
func (s fieldsOrClock) RequiresExactMatch(string) (string, bool) {
	return "", false
}
func (s fieldsOrClock) DeepCopySelector() fields.Selector {
	return fieldsOrClock{s.Selector.DeepCopySelector()}
}

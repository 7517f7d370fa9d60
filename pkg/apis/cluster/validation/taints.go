// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// PrepareTaints sets when each taint was added: now for those that are new or changed, as before for the others, when
// the client left it empty. On a new cluster (old is nil) what the client says does not count. Taints are matched by
// key, as upstream's webhook does.
func PrepareTaints(taints, old []cluster.Taint, now metav1.Time) {
	now = metav1.NewTime(now.Truncate(1e9)) // as precise as the wire format
	for i := range taints {
		t := &taints[i]
		before := taintByKey(old, t.Key)
		switch {
		case old == nil:
			t.TimeAdded = now
		case !t.TimeAdded.IsZero():
		case before != nil && sameTaint(t, before):
			t.TimeAdded = before.TimeAdded
		default:
			t.TimeAdded = now
		}
	}
}

// validateTaintTimes refuses times that a client made up.
func validateTaintTimes(taints, old []cluster.Taint, path *field.Path) field.ErrorList {
	var forged []string
	for i := range taints {
		t := &taints[i]
		before := taintByKey(old, t.Key)
		if before != nil && t.TimeAdded.Unix() == before.TimeAdded.Unix() {
			continue
		}
		// PrepareTaints has filled in the present where the client left the time empty; a client cannot know it.
		if (before == nil || !sameTaint(t, before)) && justNow(t.TimeAdded) {
			continue
		}
		forged = append(forged, t.Key)
	}
	if len(forged) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"It is not allowed to set TimeAdded of Taint %q. Leave timeAdded out: the server sets it.", strings.Join(forged, ",")))}
}

func justNow(t metav1.Time) bool {
	age := metav1.Now().Sub(t.Time)
	return age > -1e9 && age < 60e9
}

func taintByKey(taints []cluster.Taint, key string) *cluster.Taint {
	for i := range taints {
		if taints[i].Key == key {
			return &taints[i]
		}
	}
	return nil
}

func sameTaint(a, b *cluster.Taint) bool { return a.Value == b.Value && a.Effect == b.Effect }

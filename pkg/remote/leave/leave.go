// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leave records on an object that is being deleted since when another cluster cannot be cleaned of the object's resources. After a while
// the controller gives up on the cluster, so that the object can be deleted.
package leave

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// objectPointer is an object that is being deleted.
type objectPointer[O any] interface {
	*O
	client.Object
}

// Until returns the time to give up on the cluster, a while after the first failure. An annotation from before the deletion does not count: it may
// come from a copy of an object that was being deleted, which is no reason to give up.
func Until[O any, T objectPointer[O]](ctx context.Context, c client.Writer, o T, now time.Time, while time.Duration) (time.Time, error) {
	since, err := time.Parse(time.RFC3339, o.GetAnnotations()[operatorv1.AnnotationEvictionTimestamp])
	if err != nil || since.After(now) {
		since = now.Truncate(time.Second)
		if err := write(ctx, c, o, since.UTC().Format(time.RFC3339)); err != nil {
			return since.Add(while), err
		}
	}
	if deleted := o.GetDeletionTimestamp(); deleted != nil && since.Before(deleted.Time) {
		since = deleted.Time
	}
	return since.Add(while), nil
}

// Over records that the cluster can be cleaned. After the next failure the time starts over.
func Over[O any, T objectPointer[O]](ctx context.Context, c client.Writer, o T) error {
	return write(ctx, c, o, "")
}

// RecordGivingUp records an event which reports that the controller gives up on the cluster, named by a word such as "hub", and with which label of the
// object leftovers there are found. The text comes before the error, which may be long.
func RecordGivingUp(recorder events.EventRecorder, o client.Object, reason, cluster string, while time.Duration, why error, label string) {
	conditionevents.Note(recorder, o, corev1.EventTypeWarning, reason, "Delete", fmt.Sprintf(
		"the %s is given up after %s. What may be left there has the label %s=%s. The last error: %v", cluster, while, label, o.GetName(), why))
}

func write[O any, T objectPointer[O]](ctx context.Context, c client.Writer, o T, since string) error {
	_, err := kit.Patch[O](ctx, c, o, func(o T) {
		annotations := o.GetAnnotations()
		switch {
		case since == "":
			delete(annotations, operatorv1.AnnotationEvictionTimestamp)
		case annotations == nil:
			annotations = map[string]string{operatorv1.AnnotationEvictionTimestamp: since}
		default:
			annotations[operatorv1.AnnotationEvictionTimestamp] = since
		}
		o.SetAnnotations(annotations)
	})
	return err
}

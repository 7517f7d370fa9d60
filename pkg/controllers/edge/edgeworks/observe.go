// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/delivery"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// observe is what the cluster says of a work as it is now. What it said of another generation does not count.
func observe(w *workv1.ManifestWork) told {
	now := func(kind string) *metav1.Condition {
		if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil && c.ObservedGeneration == w.Generation {
			return c
		}
		return &metav1.Condition{Status: metav1.ConditionUnknown}
	}
	applied, available, progressing, degraded := now(workv1.WorkApplied), now(workv1.WorkAvailable), now(workv1.WorkProgressing), now(workv1.WorkDegraded)
	switch {
	case applied.Status == metav1.ConditionFalse:
		return newTold(edgev1alpha1.PlacementFailed, reasonNotApplied, said("the agent cannot apply all objects", applied), w.Name)
	case degraded.Status == metav1.ConditionTrue:
		return newTold(edgev1alpha1.PlacementFailed, reasonDegraded, said("objects do not get to run", degraded), w.Name)
	case applied.Status != metav1.ConditionTrue:
		return newTold(edgev1alpha1.PlacementDelivering, reasonDelivering, "the agent of the node has yet to apply it", w.Name)
	case now(workv1.WorkComplete).Status == metav1.ConditionTrue && progressing.Status != metav1.ConditionTrue:
		return newTold(edgev1alpha1.PlacementRunning, reasonComplete, "what runs to an end has come to it", w.Name)
	case available.Status != metav1.ConditionTrue:
		return newTold(edgev1alpha1.PlacementDelivering, reasonDelivering, said("not all objects are there", available), w.Name)
	case w.Annotations[asksAnnotation] == "true" && progressing.Status != metav1.ConditionFalse:
		return newTold(edgev1alpha1.PlacementDelivering, reasonDelivering, said("the objects are there, and not all of them are ready", progressing), w.Name)
	}
	return newTold(edgev1alpha1.PlacementRunning, reasonRunning, "the cluster says that all objects are there and ready", w.Name)
}

func said(what string, c *metav1.Condition) string {
	if c.Message == "" {
		return what
	}
	return what + ": " + c.Message
}

// mostArchives are kept, as they were read: one service comes to many nodes.
const mostArchives = 4

// archives were read, one at a time: an archive may take much memory while it is read.
type archives struct {
	mu   sync.Mutex
	kept []kept
}

type kept struct {
	uid        types.UID
	generation int64
	archive    *archive.Archive
	service    *edgev1alpha1.EdgeService
}

// archive is that of a service as the cache has it. It is an error if the service is another one by now: then its event follows.
func (r *Reconciler) archive(ctx context.Context, s *edgev1alpha1.EdgeService) (*archive.Archive, *edgev1alpha1.EdgeService, error) {
	a := &r.archives
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.kept {
		if k.uid == s.UID && k.generation == s.Generation {
			return k.archive, k.service, nil
		}
	}
	full := &edgev1alpha1.EdgeService{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(s), full); kit.IgnoreGone(err) != nil {
		return nil, nil, err
	}
	if full.UID != s.UID || full.Generation != s.Generation {
		return nil, nil, apierrors.NewConflict(edgev1alpha1.SchemeGroupVersion.WithResource("edgeservices").GroupResource(), s.Name, fmt.Errorf("it was changed meanwhile"))
	}
	read, err := model.ReadArchive(&full.Spec)
	if err == nil && read == nil {
		err = fmt.Errorf("version %s of service %s has no clusterDeployment", s.Spec.Version, s.Spec.URL)
	}
	if err != nil {
		return nil, nil, &delivery.Fault{Reason: delivery.ReasonNotRewritable, Message: err.Error()}
	}
	model.WithoutArchive(full)
	a.kept = append(a.kept, kept{s.UID, s.Generation, read, full})
	if len(a.kept) > mostArchives {
		a.kept = append([]kept(nil), a.kept[1:]...)
	}
	return read, full, nil
}

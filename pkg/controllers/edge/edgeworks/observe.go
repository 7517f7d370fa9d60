// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/delivery"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// observe returns the state that the cluster reports for the current generation of a work. Reports for another generation do not count.
func observe(w *workv1.ManifestWork) reported {
	now := func(kind string) *metav1.Condition {
		if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil && c.ObservedGeneration == w.Generation {
			return c
		}
		return &metav1.Condition{Status: metav1.ConditionUnknown}
	}
	applied, available, progressing, degraded := now(workv1.WorkApplied), now(workv1.WorkAvailable), now(workv1.WorkProgressing), now(workv1.WorkDegraded)
	if degraded.Status != metav1.ConditionTrue && applied.Status == metav1.ConditionTrue {
		// The condition of the work is True only if all objects are degraded.
		for i := range w.Status.ResourceStatus.Manifests {
			if m := &w.Status.ResourceStatus.Manifests[i]; failed(m, w.Generation) != nil {
				degraded = &metav1.Condition{Status: metav1.ConditionTrue, Message: describe(m, failed(m, w.Generation))}
				break
			}
		}
	}
	switch {
	case applied.Status == metav1.ConditionFalse:
		return newReported(edgev1alpha1.PlacementFailed, reasonNotApplied, said("the agent cannot apply all objects", applied), w.Name)
	case degraded.Status == metav1.ConditionTrue:
		return newReported(edgev1alpha1.PlacementFailed, reasonDegraded, said("objects do not become ready", degraded), w.Name)
	case applied.Status != metav1.ConditionTrue:
		return newReported(edgev1alpha1.PlacementDelivering, reasonDelivering, "the agent of the node has yet to apply it", w.Name)
	case now(workv1.WorkComplete).Status == metav1.ConditionTrue && progressing.Status != metav1.ConditionTrue:
		return newReported(edgev1alpha1.PlacementRunning, reasonComplete, "all objects that run to completion have completed", w.Name)
	case available.Status != metav1.ConditionTrue:
		return newReported(edgev1alpha1.PlacementDelivering, reasonDelivering, said("not all objects exist", available), w.Name)
	case w.Annotations[asksAnnotation] == "true" && progressing.Status != metav1.ConditionFalse:
		return newReported(edgev1alpha1.PlacementDelivering, reasonDelivering, said("the objects exist, but not all of them are ready", progressing), w.Name)
	}
	return newReported(edgev1alpha1.PlacementRunning, reasonRunning, "the cluster reports that all objects exist and are ready", w.Name)
}

// appliedNow reports whether the agent has tried to apply the current generation of the work.
func appliedNow(w *workv1.ManifestWork) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied)
	return c != nil && c.ObservedGeneration == w.Generation && c.Status != metav1.ConditionUnknown
}

// failures returns the failures of a failed work, by the index of the service in the placement. The agent reports which manifests have failed; the
// hub knows which service they belong to. A manifest without a known service is the failure of none.
func failures(w *workv1.ManifestWork, t *reported, services int) map[int]string {
	switch {
	case t.state != edgev1alpha1.PlacementFailed:
		return nil
	case services == 1:
		return map[int]string{0: t.message}
	}
	begins, found := positions(w, services), map[int]string{}
	for i := range w.Status.ResourceStatus.Manifests {
		m := &w.Status.ResourceStatus.Manifests[i]
		service := serviceAt(begins, int(m.ResourceMeta.Ordinal))
		if c := failed(m, w.Generation); c != nil && service >= 0 && found[service] == "" {
			found[service] = describe(m, c)
		}
	}
	return found
}

// failed returns the condition by which a manifest has failed, or nil. Some agents set no generation.
func failed(m *workv1.ManifestCondition, generation int64) *metav1.Condition {
	for _, fault := range []struct {
		kind   string
		status metav1.ConditionStatus
	}{{workv1.ManifestApplied, metav1.ConditionFalse}, {workv1.ManifestDegraded, metav1.ConditionTrue}} {
		c := meta.FindStatusCondition(m.Conditions, fault.kind)
		if c != nil && c.Status == fault.status && (c.ObservedGeneration == generation || c.ObservedGeneration == 0) {
			return c
		}
	}
	return nil
}

func describe(m *workv1.ManifestCondition, c *metav1.Condition) string {
	name := m.ResourceMeta.Name
	if m.ResourceMeta.Namespace != "" {
		name = m.ResourceMeta.Namespace + "/" + name
	}
	return said(fmt.Sprintf("%s %s", m.ResourceMeta.Kind, name), c)
}

// positions returns where the manifests of each service of a placement begin in its work, or nil if that is not known.
func positions(w *workv1.ManifestWork, services int) (begins []int) {
	if json.Unmarshal([]byte(w.Annotations[beginsAnnotation]), &begins) != nil || len(begins) != services {
		return nil
	}
	return begins
}

// serviceAt returns the index of the service of a manifest, or -1.
func serviceAt(begins []int, manifest int) int {
	at := -1
	for i, begin := range begins {
		if manifest >= begin {
			at = i
		}
	}
	return at
}

// largest returns the index of the service with the largest objects in a work.
func largest(w *workv1.ManifestWork) (service int) {
	begins, sizes := []int(nil), map[int]int{}
	if json.Unmarshal([]byte(w.Annotations[beginsAnnotation]), &begins) != nil {
		return 0
	}
	for i := range w.Spec.Workload.Manifests {
		at := serviceAt(begins, i)
		sizes[at] += len(w.Spec.Workload.Manifests[i].Raw)
		if at >= 0 && sizes[at] > sizes[service] {
			service = at
		}
	}
	return service
}

func said(what string, c *metav1.Condition) string {
	if c.Message == "" {
		return what
	}
	return what + ": " + c.Message
}

// maxArchives is the maximum number of unpacked archives in memory: one service is often deployed to many nodes.
const maxArchives = 4

// archives are unpacked archives. They are read one at a time, because that may take much memory.
type archives struct {
	live client.Reader
	mu   sync.Mutex
	kept []kept
}

type kept struct {
	uid        types.UID
	generation int64
	archive    *archive.Archive
	service    *edgev1alpha1.EdgeService
}

// get returns the archive of a service of the cache. It returns an error if the service has changed: then its event follows.
func (a *archives) get(ctx context.Context, s *edgev1alpha1.EdgeService) (*archive.Archive, *edgev1alpha1.EdgeService, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.kept {
		if k.uid == s.UID && k.generation == s.Generation {
			return k.archive, k.service, nil
		}
	}
	full := &edgev1alpha1.EdgeService{}
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(s), full); kit.IgnoreGone(err) != nil {
		return nil, nil, err
	}
	if full.UID != s.UID || full.Generation != s.Generation {
		return nil, nil, apierrors.NewConflict(edgev1alpha1.SchemeGroupVersion.WithResource("edgeservices").GroupResource(), s.Name, fmt.Errorf("it has changed since it was observed"))
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
	if len(a.kept) > maxArchives {
		a.kept = append([]kept(nil), a.kept[1:]...)
	}
	return read, full, nil
}

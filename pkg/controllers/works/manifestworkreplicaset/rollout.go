// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/rollout"
)

// rollOut writes to clusters as planned. A cluster that the author may not write to, or that refuses the work, gives its slot to others; if the
// result of a write is unknown, nothing more is written until it is known.
func (r *round) rollOut(ctx context.Context, t *placementTarget) {
	r.recall(t)
	for again := true; again; {
		again = false
		for _, cluster := range t.decide(r.now).Write {
			c := t.clusters[cluster]
			if allowed, err := r.isAllowed(ctx, t, c); err != nil {
				r.errs = append(r.errs, err)
				return
			} else if !allowed {
				again = true
				break
			}
			if r.left == 0 {
				return
			}
			r.left--
			switch err := r.write(ctx, t, cluster); {
			case err == nil:
				c.Current, c.Written, c.Succeeded = true, r.now, time.Time{}
				c.Observation = rollout.Observation{Waits: "was just written"}
			case isRefusal(err):
				r.memory.refusals[types.NamespacedName{Namespace: cluster, Name: t.placement}] = refusal{err, r.now}
				r.failures = append(r.failures, err)
				c.Blocked, again = err.Error(), true
			default:
				r.errs = append(r.errs, err)
				t.decide(r.now)
				return
			}
		}
	}
	t.decide(r.now)
	r.tend(ctx, t)
}

// recall marks clusters as blocked that have refused the same spec a short while ago.
func (r *round) recall(t *placementTarget) {
	for name, c := range t.clusters {
		key := types.NamespacedName{Namespace: name, Name: t.placement}
		switch before, refused := r.memory.refusals[key]; {
		case !refused:
		case c.Current || r.now.Sub(before.at) >= kit.MaxBackoff:
			delete(r.memory.refusals, key)
		default:
			c.Blocked = before.err.Error()
			r.failures = append(r.failures, before.err)
		}
	}
}

// isAllowed reports whether the author may write to a cluster. If not, it checks all clusters that are not written yet, so that the plan is not
// recomputed for each.
func (r *round) isAllowed(ctx context.Context, t *placementTarget, c *rollout.ClusterProgress) (bool, error) {
	refusal, err := r.rights.deniedReason(ctx, c.Name)
	if err != nil || refusal == "" {
		return refusal == "", err
	}
	for _, name := range slices.Sorted(maps.Keys(t.clusters)) {
		other := t.clusters[name]
		if other.Current || other.Leaving || other.Blocked != "" {
			continue
		}
		refusal, err = r.rights.deniedReason(ctx, name)
		if err != nil {
			return false, err
		}
		if refusal != "" {
			other.Blocked, r.refused[name] = refusal, refusal
		}
	}
	return false, nil
}

// tend updates annotations on works, and their labels.
func (r *round) tend(ctx context.Context, t *placementTarget) {
	labels, notes := labelsOf(r.set, t.placement), map[string]bool{}
	for _, name := range t.plan.Note {
		notes[name] = true
	}
	for _, o := range t.plan.Clusters {
		e, c := t.works[o.Name], t.clusters[o.Name]
		if e == nil || e.leaving() || !r.isCurrent(e) {
			continue
		}
		relabel := !hasAll(e.work.Labels, labels)
		if relabel {
			if refusal, err := r.rights.deniedReason(ctx, o.Name); refusal != "" || err != nil {
				relabel = false
			}
		}
		if !relabel && (e.work.Labels[hashLabel] == "" || !notes[o.Name] && !c.Written.IsZero()) {
			continue // a work without a hash is adopted first
		}
		if r.left == 0 {
			return
		}
		r.left--
		if err := r.mark(ctx, e, func(w *workv1.ManifestWork) {
			if w.Annotations == nil {
				w.Annotations = map[string]string{}
			}
			if relabel {
				maps.Copy(w.Labels, labels)
				w.Annotations[ownerAnnotation] = r.key.String()
			}
			if c.Written.IsZero() {
				w.Annotations[writtenAnnotation] = r.now.UTC().Format(time.RFC3339Nano)
			}
			if notes[o.Name] {
				w.Annotations[succeededAnnotation] = r.now.UTC().Format(time.RFC3339Nano)
			}
		}); err != nil {
			r.errs = append(r.errs, err)
			return
		}
	}
}

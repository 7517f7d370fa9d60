// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgeplacements"
	"github.com/clusterhub/clusterhub/pkg/controllers/works/manifestworkreplicaset"
	"github.com/clusterhub/clusterhub/pkg/edge/delivery"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/namehash"
)

const (
	// sourceAnnotation of a work is a hash of all its inputs, and digestAnnotation one of the resulting spec.
	sourceAnnotation = edgev1alpha1.GroupName + "/source"
	digestAnnotation = edgev1alpha1.GroupName + "/digest"
	// asksAnnotation reports that the work asks the agent for the progress of an object.
	asksAnnotation = edgev1alpha1.GroupName + "/asks-progress"
	// beginsAnnotation has where the manifests of each service of the placement begin in the work, as a list of JSON.
	beginsAnnotation = edgev1alpha1.GroupName + "/manifests-of-services"
	// format must be raised when the same source results in another work.
	format = "2"
)

// Reasons of placements, besides those of delivery and of conditions of works.
const (
	reasonNotDecided  = "NotDecided"               // the placement is not what the hub decides itself, so nothing is written for it
	reasonNotAllowed  = "NotAllowed"               // the author of its policy or pattern may not use the agent to create objects; the message names the permission
	reasonNameTaken   = "WorkNameTaken"            // a work of its name belongs to something else
	reasonBeingGone   = "FormerWorkIsBeingRemoved" // a work with its name is still being removed from the node
	reasonNoNamespace = "NoClusterNamespace"       // the hub has not created the namespace of the cluster yet
	reasonTooLarge    = "TooLarge"                 // the objects are more than a work can have
	reasonRefused     = "WorkRefused"              // the API server has refused the work; the message says why
	reasonDelivering  = "Delivering"               // the agent is creating the objects on the node
	reasonRunning     = "Running"                  // the cluster reports that the objects are healthy
	reasonComplete    = "Complete"                 // the Jobs of the service have completed
	reasonNotApplied  = "NotApplied"               // the agent could not apply all objects; the message says which
	reasonDegraded    = "Degraded"                 // the objects were healthy, and are not now
	reasonRetrying    = "Retrying"                 // a version that has failed is removed, to be tried again
	reasonRemoving    = "Removing"                 // the agent is deleting the objects
)

// workName returns the name of the work of a placement. It is deterministic, so that two processes cannot create two works.
func workName(p types.NamespacedName) string {
	hash := namehash.NameHash(p.Namespace, p.Name)
	return strings.TrimRight(p.Name[:min(len(p.Name), work.MaxNameLength-len(hash)-1)], "-.") + "-" + hash
}

// hash returns a hash of a placement, by which its work is found.
func hash(p types.NamespacedName) string {
	sum := sha256.Sum256([]byte(p.Namespace + "/" + p.Name))
	return hex.EncodeToString(sum[:16])
}

// belongsTo reports whether a work belongs to the placement.
func belongsTo(w *workv1.ManifestWork, p types.NamespacedName) bool {
	return w.Labels[edgev1alpha1.PlacementHashLabel] == hash(p) && w.Annotations[edgev1alpha1.PlacementAnnotation] == p.String()
}

func hasFinalizer(p *edgev1alpha1.EdgePlacement) bool {
	return slices.Contains(p.Finalizers, edgev1alpha1.PlacementFinalizer)
}

// syncWork reconciles the work of a placement, and returns its state.
func (r *Reconciler) syncWork(ctx context.Context, pair engine.Pair, p *edgev1alpha1.EdgePlacement) (reported, time.Duration, error) {
	key := client.ObjectKeyFromObject(p)
	now := &workv1.ManifestWork{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: pair.Node, Name: workName(key)}, now)
	there := err == nil
	switch {
	case kit.IgnoreGone(err) != nil:
		return reported{}, 0, err
	case there && !belongsTo(now, key):
		return taken(now), late, nil
	case there && !now.DeletionTimestamp.IsZero():
		return newReported(edgev1alpha1.PlacementPending, reasonBeingGone, "a work with its name is still being removed from the node", ""), 0, nil
	}
	d, refusal, err := r.decide(ctx, pair, p)
	if err != nil {
		return reported{}, 0, err
	}
	if refusal != "" {
		return unwritten(reasonNotDecided, refusal, now).with(d), soon, nil
	}
	source := sourceOf(p, d)
	if there && now.Annotations[sourceAnnotation] == source && now.Annotations[digestAnnotation] == manifestworkreplicaset.DigestInCache(now) {
		return r.observed(ctx, p, d, now)
	}
	if refusal, err := r.checkExecutor(ctx, pair.Node, d); refusal != "" || err != nil {
		return unwritten(reasonNotAllowed, refusal, now).with(d), askAgain, err
	}
	w, err := r.desiredWork(ctx, pair, p, d)
	if err == nil {
		w.Annotations[sourceAnnotation] = source
		err = r.write(ctx, now, there, w)
	}
	service := undeliverable(w, err)
	t, again, err := outcome(w, err)
	if service >= 0 {
		d.attempts.refuse(p, service, t.message, r.clock.Now())
	}
	if there && t.work == "" && t.reason != reasonNameTaken {
		t.work = now.Name // What was delivered before still exists.
	}
	return t.with(d), again, err
}

// observed returns what the cluster reports of the work of a placement. The objects of a service that has failed and must be tried again are
// removed first: with the work if it has no other service.
func (r *Reconciler) observed(ctx context.Context, p *edgev1alpha1.EdgePlacement, d *decided, w *workv1.ManifestWork) (reported, time.Duration, error) {
	t := observe(w)
	if service := d.attempts.removing(p); service >= 0 {
		if appliedNow(w) {
			d.attempts.removed(p, service)
		}
		s := &p.Spec.Services[service]
		message := fmt.Sprintf("version %s of service %s has failed, and its objects are removed from the node, to be applied again", s.Version, s.Name)
		return newReported(edgev1alpha1.PlacementPending, reasonRetrying, message, w.Name).with(d), 0, nil
	}
	again, retry := d.attempts.observe(p, w.UID, &t, failures(w, &t, len(p.Spec.Services)), r.clock.Now())
	if retry {
		t = newReported(edgev1alpha1.PlacementPending, reasonRetrying,
			"its version has failed, and its objects are removed from the node, to be applied again: "+t.message, w.Name)
		if len(p.Spec.Services) == 1 {
			if err := r.remove(ctx, w); err != nil {
				return reported{}, 0, err
			}
		}
	}
	return t.with(d), again, nil
}

// undeliverable returns the index of the service that no work can be made of, or -1 if the error has another cause.
func undeliverable(w *workv1.ManifestWork, err error) int {
	var fault *delivery.Fault
	switch {
	case errors.As(err, &fault):
		return fault.Part
	case err != nil && w != nil && isTooLarge(err):
		return largest(w)
	}
	return -1
}

// unwritten returns the status of a placement whose work stays as it is, or is not created.
func unwritten(reason, refusal string, now *workv1.ManifestWork) reported {
	return newReported(edgev1alpha1.PlacementPending, reason, "nothing is written for it: "+refusal, now.Name)
}

func taken(w *workv1.ManifestWork) reported {
	return newReported(edgev1alpha1.PlacementFailed, reasonNameTaken,
		fmt.Sprintf("ManifestWork %s in namespace %s already exists and does not belong to this placement, so it is not changed: delete it", w.Name, w.Namespace), "")
}

// errTaken reports that another work has the name.
var errTaken = errors.New("another work has the name")

// outcome returns the status after a write.
func outcome(w *workv1.ManifestWork, err error) (reported, time.Duration, error) {
	var fault *delivery.Fault
	switch {
	case err == nil:
		return newReported(edgev1alpha1.PlacementDelivering, reasonDelivering, "the work is written, and the agent of the node has yet to apply it", w.Name), 0, nil
	case errors.As(err, &fault):
		return newReported(edgev1alpha1.PlacementFailed, fault.Reason, fault.Message, ""), 0, nil
	case errors.Is(err, errTaken):
		return taken(w), late, nil
	case kit.IsGone(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return newReported(edgev1alpha1.PlacementPending, reasonNoNamespace, "the namespace of its cluster does not exist yet, or is being deleted", ""), soon, nil
	case isTooLarge(err):
		return newReported(edgev1alpha1.PlacementFailed, reasonTooLarge, fmt.Sprintf("its objects exceed the maximum size of a work: deploy them as several services: %v", err), ""), late, nil
	case isRefusal(err):
		return newReported(edgev1alpha1.PlacementFailed, reasonRefused, err.Error(), ""), late, nil
	}
	return reported{}, 0, err
}

// sourceOf returns a hash of all inputs of a work. Archives are identified by the generations of their services.
func sourceOf(p *edgev1alpha1.EdgePlacement, d *decided) string {
	type service struct {
		UID        types.UID
		Generation int64
	}
	var services []service
	for _, s := range d.services {
		services = append(services, service{s.UID, s.Generation})
	}
	text, err := json.Marshal([]any{format, p.Spec, services, d.inputs, d.node.Status.NamespaceScoped, d.node.Status.Namespace, d.attempts.removing(p)})
	if err != nil {
		return "" // All these can be marshalled.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// desiredWork returns the desired work.
func (r *Reconciler) desiredWork(ctx context.Context, pair engine.Pair, p *edgev1alpha1.EdgePlacement, d *decided) (*workv1.ManifestWork, error) {
	key := client.ObjectKeyFromObject(p)
	var parts []delivery.Part
	removing := d.attempts.removing(p)
	for i, s := range p.Spec.Services {
		archive, full, err := r.archives.get(ctx, d.services[i])
		if err != nil {
			return nil, faultOf(err, i)
		}
		variables, err := delivery.Variables(s.Org, &full.Spec, pair.Namespace, d.inputs)
		if err != nil {
			return nil, faultOf(err, i)
		}
		parts = append(parts, delivery.Part{Archive: archive, Namespace: s.TargetNamespace, Variables: variables,
			Suffix: namehash.NameHash(key.Namespace, key.Name, s.Org, s.Name), Withheld: i == removing})
	}
	spec, begins, asks, err := delivery.Work(&d.node.Status, parts)
	if err == nil && removing >= 0 && len(spec.Workload.Manifests) == 0 { // A work has at least one.
		parts[removing].Withheld = false
		spec, begins, asks, err = delivery.Work(&d.node.Status, parts)
	}
	if err != nil {
		return nil, err
	}
	positions, err := json.Marshal(begins)
	if err != nil {
		return nil, err
	}
	labels := edgeplacements.Labels(pair)
	labels[edgev1alpha1.PlacementHashLabel] = hash(key)
	return &workv1.ManifestWork{Spec: *spec, ObjectMeta: metav1.ObjectMeta{Namespace: pair.Node, Name: workName(key), Labels: labels,
		Annotations: map[string]string{edgev1alpha1.PlacementAnnotation: key.String(), asksAnnotation: fmt.Sprint(asks),
			beginsAnnotation: string(positions), digestAnnotation: manifestworkreplicaset.Digest(spec)}}}, nil
}

// faultOf returns the error with the index of the service that it is about.
func faultOf(err error, service int) error {
	var fault *delivery.Fault
	if errors.As(err, &fault) {
		return &delivery.Fault{Reason: fault.Reason, Message: fault.Message, Part: service}
	}
	return err
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// write creates the work, or replaces the spec of the existing one. A merge patch would leave fields in it that the cache does not have.
func (r *Reconciler) write(ctx context.Context, now *workv1.ManifestWork, there bool, w *workv1.ManifestWork) error {
	if !there {
		err := wrote("create", r.client.Create(ctx, w))
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		other := &workv1.ManifestWork{}
		if r.live.Get(ctx, client.ObjectKeyFromObject(w), other) == nil && other.Annotations[edgev1alpha1.PlacementAnnotation] != w.Annotations[edgev1alpha1.PlacementAnnotation] {
			return errTaken
		}
		return apierrors.NewConflict(workv1.SchemeGroupVersion.WithResource("manifestworks").GroupResource(), w.Name, err)
	}
	labels, annotations := maps.Clone(now.Labels), maps.Clone(now.Annotations)
	manifestworkreplicaset.WithoutDigest(annotations)
	maps.Copy(labels, w.Labels)
	maps.Copy(annotations, w.Annotations)
	patch, err := json.Marshal([]operation{
		{"replace", "/metadata/uid", now.UID},
		{"replace", "/metadata/resourceVersion", now.ResourceVersion},
		{"add", "/metadata/labels", labels},
		{"add", "/metadata/annotations", annotations},
		{"replace", "/spec", &w.Spec},
	})
	if err != nil {
		return err
	}
	return wrote("update", r.client.Patch(ctx, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}, client.RawPatch(types.JSONPatchType, patch)))
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply applies one manifest of a work to a cluster, and deletes applied objects.
//
// Objects belong to a work by an owner reference to its AppliedManifestWork, so that either this agent or upstream's can go on where
// the other has ended. Nothing without that reference is deleted, and an object that two works want differently is the first one's.
package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterhub/clusterhub/pkg/work/ignorefields"
)

// DefaultManager is the field manager of all that is written, unless a work says another: upstream's.
const DefaultManager = "work-agent"

// tries is how often an object is looked at anew that others have changed since it was read.
const tries = 5

// The strategies by which a manifest is applied: those of spec.manifestConfigs[].updateStrategy.type of a work.
const (
	// Update sets the fields of the manifest, also those that other managers own, and removes those that have left it. All other fields stay.
	Update = "Update"
	// Replace removes from an object what the manifest does not have; metadata and status of others stay.
	Replace = "Replace"
	// CreateOnly makes what is not there.
	CreateOnly = "CreateOnly"
	// ServerSideApply changes the given fields and no others.
	ServerSideApply = "ServerSideApply"
	// ReadOnly writes nothing.
	ReadOnly = "ReadOnly"
)

// Strategy is how a manifest is applied to a cluster.
type Strategy struct {
	Type string
	// Force takes fields over from other managers, and Manager is ours. They are for ServerSideApply.
	Force   bool
	Manager string
	// Prepared is the manifest with fields that are not always applied; nil if there are none. It is for ServerSideApply.
	Prepared *ignorefields.Prepared
}

// Target is one object of a cluster.
type Target struct {
	schema.GroupVersionResource
	Namespace, Name string
}

// Is says whether both are one object: it is the same in every version.
func (t Target) Is(other Target) bool {
	return t.GroupResource() == other.GroupResource() && t.Namespace == other.Namespace && t.Name == other.Name
}

// String is a target for people.
func (t Target) String() string {
	resource := t.GroupResource().String()
	if t.Namespace == "" {
		return resource + " " + t.Name
	}
	return resource + " " + t.Namespace + "/" + t.Name
}

// immortal are the objects that no server of Kubernetes lets go, by their resource. kube-node-lease could go, and with it what is known of all nodes.
var immortal = map[schema.GroupResource][]string{
	Namespaces: {"default", "kube-system", "kube-public", "kube-node-lease"},
	{Group: "scheduling.k8s.io", Resource: "priorityclasses"}: {"system-cluster-critical", "system-node-critical"},
}

// Immortal says whether an object is one that no server lets go: a work that has it would never end. So it is never owned.
func (t Target) Immortal() bool { return slices.Contains(immortal[t.GroupResource()], t.Name) }

// Manifest is one of a work, and where it goes.
type Manifest struct {
	Object *unstructured.Unstructured
	Target
	Strategy Strategy
	// Orphaned objects are not owned: they stay when the work goes.
	Orphaned bool
	// Unseen says that nothing is known of the object: so it is made, before it is looked for.
	Unseen bool
	// Adoption says what becomes of an object that no work has created; empty adopts it, unless it is a Namespace, which is not owned then.
	Adoption string
	// Known is the recorded UID of the object; empty if none is.
	Known types.UID
	// Reported says that the manifest is known to be as it was applied last.
	Reported bool
}

// Applier applies the manifests of one work to a cluster.
type Applier struct {
	Client dynamic.Interface
	// OnlyByName reports whether the account of Client may create an object only by a request that has its name. If it is nil, any request does.
	OnlyByName func(context.Context, Target) (bool, error)
	// Owner is what the objects are to belong to.
	Owner Owner
	// Rival says which work an owner reference of another AppliedManifestWork stands for; empty if no work stands behind it any more.
	// It is asked only about objects that this work would change, and another one has, too.
	Rival func(context.Context, metav1.OwnerReference) (string, error)
	// Claimed returns the work that had an object first which works do not own; "" if it is this one. It may be nil.
	Claimed func(Target) string
	// Making is called before an object is made, so that it is remembered before it is there.
	Making func(context.Context, Target) error
	// Acquired is called after the object was created, or adopted. It may be nil.
	Acquired func(Acquisition)
	// Replaced is called with the reason why an object of the strategy Update is replaced, and with nil if it is applied. It may be nil.
	Replaced func(error)
	// Changed is called after a write that has changed the content of an object. before is nil if it was not there. It may be nil.
	Changed func(before, after *unstructured.Unstructured)
}

// Get is what is there, or nil.
func Get(ctx context.Context, client dynamic.Interface, t Target) (*unstructured.Unstructured, error) {
	have, err := client.Resource(t.GroupVersionResource).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if IsGone(err) {
		return nil, nil
	}
	return have, err
}

// Apply applies a manifest to the cluster, and returns the object as it is then. With ReadOnly it is nil if the object does not exist. The
// object is returned with an error, too, as far as it is known. Nothing is sent for an object with the fingerprint last.
func (a *Applier) Apply(ctx context.Context, m Manifest, last string) (have *unstructured.Unstructured, err error) {
	if m.Unseen && m.Strategy.Type != ReadOnly {
		// Whatever comes of it, should it fail: if the object is there, there may be nothing wrong with a change of it.
		if have, err = a.applyOnce(ctx, m, nil); err == nil {
			return have, nil
		}
	}
	for try := 1; ; try++ {
		if have, err = Get(ctx, a.Client, m.Target); err != nil {
			return nil, err
		}
		if m.Strategy.Type == ReadOnly || have != nil && last != "" && Fingerprint(have) == last {
			return have, nil
		}
		done, err := a.applyOnce(ctx, m, have)
		if err == nil {
			if a.Changed != nil && (have == nil || Fingerprint(have) != Fingerprint(done)) {
				a.Changed(have, done)
			}
			return done, nil
		}
		outdated := apierrors.IsAlreadyExists(err) || IsGone(err) && have != nil || apierrors.IsConflict(err) && !isOfFields(err)
		if !outdated || try == tries {
			return have, err
		}
	}
}

// applyOnce writes only if the object is still have.
func (a *Applier) applyOnce(ctx context.Context, m Manifest, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if have != nil && have.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s is being deleted: it is made again when it is gone", m.Target)
	}
	if have == nil && a.Making != nil {
		if err := a.Making(ctx, m.Target); err != nil {
			return nil, err
		}
	}
	w := &write{Applier: a, Manifest: m, have: have, resource: a.Client.Resource(m.GroupVersionResource).Namespace(m.Namespace)}
	acquired, err := w.adopt()
	if err != nil {
		return nil, err
	}
	done, err := w.send(ctx)
	if err == nil && acquired != "" && a.Acquired != nil {
		a.Acquired(acquired)
	}
	return done, err
}

// send writes the object by the strategy of the manifest.
func (w *write) send(ctx context.Context) (*unstructured.Unstructured, error) {
	switch w.Strategy.Type {
	case Update, "":
		return w.update(ctx)
	case Replace:
		return w.replace(ctx)
	case CreateOnly:
		return w.createOnly(ctx)
	case ServerSideApply:
		return w.serverSideApply(ctx)
	}
	return nil, fmt.Errorf("the update strategy %q is not known", w.Strategy.Type)
}

// write is one attempt to apply a manifest.
type write struct {
	*Applier
	Manifest
	have     *unstructured.Unstructured
	resource dynamic.ResourceInterface
	// onlyIfSame says that the object is adopted only if that changes nothing in it.
	onlyIfSame bool
}

// owners are the owner references that the object should have.
func (w *write) owners() []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	if w.have != nil {
		refs = w.have.GetOwnerReferences()
	}
	return w.Owner.in(refs, !w.Orphaned)
}

// wanted is the manifest as a new object.
func (w *write) wanted() *unstructured.Unstructured {
	object := w.Object.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	object.SetNamespace(w.Namespace)
	object.SetOwnerReferences(w.owners())
	ownable(object)
	return object
}

// create creates the object as the account of the client, whatever that may. For RBAC a request to create has no name, so that a rule with
// resourceNames never allows one: with such a rule an object is created by a patch, as server-side apply does it.
func (w *write) create(ctx context.Context) (*unstructured.Unstructured, error) {
	if w.OnlyByName != nil {
		only, err := w.OnlyByName(ctx, w.Target)
		if err != nil {
			return nil, err
		}
		if only {
			next := w.wanted()
			dropNulls(next.Object)
			next.SetResourceVersion(notYet)
			return w.resource.Apply(ctx, w.Name, next, metav1.ApplyOptions{FieldManager: DefaultManager})
		}
	}
	return w.resource.Create(ctx, w.wanted(), metav1.CreateOptions{FieldManager: DefaultManager})
}

// update applies the manifest as the default manager, by force. An object that the server does not apply that way is replaced.
func (w *write) update(ctx context.Context) (*unstructured.Unstructured, error) {
	done, err := w.apply(ctx, DefaultManager, true, w.anyRival)
	if !isNotApplicable(err) {
		w.reportReplaced(nil)
		return done, err
	}
	w.reportReplaced(err)
	return w.replace(ctx)
}

func (w *write) reportReplaced(why error) {
	if w.Replaced != nil {
		w.Replaced(why)
	}
}

func (w *write) replace(ctx context.Context) (*unstructured.Unstructured, error) {
	if w.have == nil {
		return w.create(ctx)
	}
	next := replacement(w.wanted(), w.have)
	if same(next, w.have) {
		return w.have, nil
	}
	return w.uncontested(ctx, w.anyRival, func(dryRun []string) (*unstructured.Unstructured, error) {
		return w.resource.Update(ctx, next, metav1.UpdateOptions{FieldManager: DefaultManager, DryRun: dryRun})
	})
}

func (w *write) createOnly(ctx context.Context) (*unstructured.Unstructured, error) {
	if w.have == nil {
		return w.create(ctx)
	}
	return setOwners(ctx, w.resource, w.have, w.owners())
}

// notYet is a resource version that no object has: a store has begun before it. The server ignores it where there is no object,
// and answers with a conflict where there is one.
const notYet = "1"

func (w *write) serverSideApply(ctx context.Context) (*unstructured.Unstructured, error) {
	manager := w.Strategy.Manager
	if manager == "" {
		manager = DefaultManager
	}
	if prepared := w.Strategy.Prepared; prepared != nil {
		if w.have != nil && prepared.Unchanged(w.have.GetAnnotations()) {
			return setOwners(ctx, w.resource, w.have, w.owners())
		}
		if w.Object = prepared.Whole; w.have != nil {
			w.Object = withIgnored(prepared.Whole, prepared.Reduced, w.have, manager)
		}
	}
	return w.apply(ctx, manager, w.Strategy.Force, func(ctx context.Context) (string, error) {
		if !applies(w.have, manager) {
			return "", nil // fields that are applied by another name are the server's to protect
		}
		return w.anyRival(ctx)
	})
}

// apply applies the manifest as a manager, which owns its fields then.
func (w *write) apply(
	ctx context.Context, manager string, force bool, rival func(context.Context) (string, error),
) (*unstructured.Unstructured, error) {
	next := w.wanted()
	dropNulls(next.Object)
	if w.isApplied(next, manager) {
		return w.released(ctx, w.have)
	}
	done, err := w.uncontested(ctx, rival, func(dryRun []string) (*unstructured.Unstructured, error) {
		next.SetResourceVersion(notYet)
		if w.have != nil {
			if dryRun == nil {
				if err := w.takeOver(ctx, manager); err != nil {
					return nil, err
				}
			}
			next.SetResourceVersion(w.have.GetResourceVersion())
		}
		return w.resource.Apply(ctx, w.Name, next, metav1.ApplyOptions{FieldManager: manager, Force: force, DryRun: dryRun})
	})
	if err != nil {
		return done, err
	}
	return w.released(ctx, done)
}

// uncontested writes what no other work that was there first wants differently. That is asked of the server: it knows what it would
// fill in.
func (w *write) uncontested(
	ctx context.Context, rivalOf func(context.Context) (string, error), send func(dryRun []string) (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	if w.have == nil {
		return send(nil)
	}
	rival, err := rivalOf(ctx)
	if err != nil {
		return nil, err
	}
	if rival != "" || w.onlyIfSame {
		would, err := send([]string{metav1.DryRunAll})
		if err != nil {
			return nil, err
		}
		if !sameContent(would, w.have) {
			if w.onlyIfSame {
				return nil, &NotAdopted{Target: w.Target, Policy: AdoptIfNoDiff, Field: RepairOf(w.have, would).Field}
			}
			return nil, w.hold(ctx, &Contested{Target: w.Target, Rival: rival})
		}
	}
	return send(nil)
}

// hold has an object that is in no namespace belong to this work, too, although it is as another one wants it: when that goes, the object
// stays, and is changed. Deleted and made anew, a CustomResourceDefinition or a Namespace would take with it all that is in it.
func (w *write) hold(ctx context.Context, contested *Contested) error {
	if w.Namespace == "" {
		if _, err := setOwners(ctx, w.resource, w.have, w.owners()); err != nil {
			return err
		}
	}
	return contested
}

// anyRival returns the first other work that has the object, and had it before this one; empty if no other work has. A work of the whole cluster
// goes before one of a namespace, whenever it came: it does not give way, so the two would write against each other.
func (w *write) anyRival(ctx context.Context) (string, error) {
	if w.Rival == nil {
		return "", nil
	}
	before := true // the references before this work's own
	for _, ref := range w.have.GetOwnerReferences() {
		if ref.UID == w.Owner.UID {
			before = false
			continue
		}
		if goesBefore := w.Owner.Namespace != "" && isAppliedWork(ref); !goesBefore && (!before || !w.Owner.isWork(ref)) {
			continue
		}
		if rival, err := w.Rival(ctx, ref); err != nil || rival != "" {
			return rival, err
		}
	}
	if w.Orphaned && w.Claimed != nil {
		return w.Claimed(w.Target), nil
	}
	return "", nil
}

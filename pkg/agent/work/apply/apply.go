// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply applies one manifest of a work to a cluster, and deletes applied objects.
//
// Objects belong to a work by an owner reference to its AppliedManifestWork, so that this agent and upstream's can each continue where the other
// stopped. Objects without that reference are never deleted. If two works want different states of an object, the first work wins.
package apply

import (
	"cmp"
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

// DefaultManager is the field manager of all writes, unless a work sets another: upstream's.
const DefaultManager = "work-agent"

// tries is the number of attempts to write an object that other clients change concurrently.
const tries = 5

// The strategies by which a manifest is applied, as in spec.manifestConfigs[].updateStrategy.type of a work.
const (
	// Update sets the fields of the manifest, even if other managers own them, and removes those that were removed from it. All other fields stay.
	Update = "Update"
	// Replace removes from an object all fields that the manifest does not have; metadata and status of others stay.
	Replace = "Replace"
	// CreateOnly creates objects that do not exist.
	CreateOnly = "CreateOnly"
	// ServerSideApply changes the given fields and no others.
	ServerSideApply = "ServerSideApply"
	// ReadOnly writes nothing.
	ReadOnly = "ReadOnly"
)

// UpdateStrategy is how a manifest is applied to a cluster.
type UpdateStrategy struct {
	Type string
	// Force takes over fields of other managers, and Manager is the field manager of the work. They are for ServerSideApply.
	Force   bool
	Manager string
	// Prepared is the manifest with fields that are not always applied; nil if it has no such fields. It is for ServerSideApply.
	Prepared *ignorefields.Prepared
}

// Target is one object of a cluster.
type Target struct {
	schema.GroupVersionResource
	Namespace, Name string
}

// Is reports whether both are the same object, in any version.
func (t Target) Is(other Target) bool {
	return t.GroupResource() == other.GroupResource() && t.Namespace == other.Namespace && t.Name == other.Name
}

// String formats a target for messages.
func (t Target) String() string {
	resource := t.GroupResource().String()
	if t.Namespace == "" {
		return resource + " " + t.Name
	}
	return resource + " " + t.Namespace + "/" + t.Name
}

// immortal are the objects that no Kubernetes API server deletes, by resource. kube-node-lease can be deleted, and the leases of all nodes with it.
var immortal = map[schema.GroupResource][]string{
	Namespaces: {"default", "kube-system", "kube-public", "kube-node-lease"},
	{Group: "scheduling.k8s.io", Resource: "priorityclasses"}: {"system-cluster-critical", "system-node-critical"},
}

// Immortal reports whether no API server deletes an object: a work that owned it could never be deleted. So it is never owned.
func (t Target) Immortal() bool { return slices.Contains(immortal[t.GroupResource()], t.Name) }

// Manifest is a manifest of a work, and the object that it is applied to.
type Manifest struct {
	Object *unstructured.Unstructured
	Target
	Strategy UpdateStrategy
	// Orphaned objects are not owned: they stay when the work is deleted.
	Orphaned bool
	// Unseen means that nothing is known of the object: so it is created without a read first.
	Unseen bool
	// Adoption is the policy for an object that no work created; if empty, it is adopted, unless it is a Namespace, which is not owned then.
	Adoption string
	// Known is the recorded UID of the object; empty if no UID is recorded.
	Known types.UID
	// Reported means that the manifest is known to be unchanged since it was last applied.
	Reported bool
}

// Applier applies the manifests of one work to a cluster.
type Applier struct {
	Client dynamic.Interface
	// OnlyByName reports whether the account of Client may create an object only by a request that has its name. If it is nil, any request may.
	OnlyByName func(context.Context, Target) (bool, error)
	// Owner is the owner of the objects.
	Owner Owner
	// Rival returns the work of an owner reference to another AppliedManifestWork; empty if the work no longer exists. It is called only for objects
	// that this work would change and another work also has.
	Rival func(context.Context, metav1.OwnerReference) (string, error)
	// Claimed returns the work that was the first to have an object that works do not own; "" if it is this one. It may be nil.
	Claimed func(Target) string
	// Making is called before an object is created, so that it is recorded before it exists.
	Making func(context.Context, Target) error
	// Acquired is called after the object was created, or adopted. It may be nil.
	Acquired func(Acquisition)
	// Replaced is called with the reason why an object with the strategy Update is replaced, and with nil if it is applied. It may be nil.
	Replaced func(error)
	// Changed is called after a write that changed the content of an object. before is nil if it did not exist. It may be nil.
	Changed func(before, after *unstructured.Unstructured)
}

// Get returns the object, or nil if it does not exist.
func Get(ctx context.Context, client dynamic.Interface, t Target) (*unstructured.Unstructured, error) {
	have, err := client.Resource(t.GroupVersionResource).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if IsGone(err) {
		return nil, nil
	}
	return have, err
}

// Apply applies a manifest to the cluster, and returns the resulting object. With ReadOnly it is nil if the object does not exist. With an error, the
// object is returned as far as it is known. No request to write is sent if the object has the fingerprint last.
func (a *Applier) Apply(ctx context.Context, m Manifest, last string) (have *unstructured.Unstructured, err error) {
	if m.Unseen && m.Strategy.Type != ReadOnly {
		// Any error is ignored: the object may exist, and a change of it may succeed.
		have, err = a.applyOnce(ctx, m, nil)
		if err == nil {
			return have, nil
		}
	}
	for try := 1; ; try++ {
		have, err = Get(ctx, a.Client, m.Target)
		if err != nil {
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
		stale := apierrors.IsAlreadyExists(err) || IsGone(err) && have != nil || apierrors.IsConflict(err) && !isOfFields(err)
		if !stale || try == tries {
			return have, err
		}
	}
}

// applyOnce writes the object only if it is unchanged since it was read as have.
func (a *Applier) applyOnce(ctx context.Context, m Manifest, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if have != nil && have.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s is being deleted: the agent creates it again after the deletion", m.Target)
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
	return nil, fmt.Errorf("unknown update strategy %q", w.Strategy.Type)
}

// write is one attempt to apply a manifest.
type write struct {
	*Applier
	Manifest
	have     *unstructured.Unstructured
	resource dynamic.ResourceInterface
	// onlyIfSame means that the object is adopted only if that changes nothing in it.
	onlyIfSame bool
}

// owners returns the owner references that the object should have.
func (w *write) owners() []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	if w.have != nil {
		refs = w.have.GetOwnerReferences()
	}
	return w.Owner.in(refs, !w.Orphaned)
}

// desired returns the manifest as a new object.
func (w *write) desired() *unstructured.Unstructured {
	object := w.Object.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	object.SetNamespace(w.Namespace)
	object.SetOwnerReferences(w.owners())
	ownable(object)
	return object
}

// create creates the object with the rights of the client's account. For RBAC a create request has no name, so that a rule with resourceNames never
// allows it: with such a rule an object is created by a patch, as server-side apply does.
func (w *write) create(ctx context.Context) (*unstructured.Unstructured, error) {
	if w.OnlyByName != nil {
		only, err := w.OnlyByName(ctx, w.Target)
		if err != nil {
			return nil, err
		}
		if only {
			next := w.desired()
			dropNulls(next.Object)
			next.SetResourceVersion(notYet)
			return w.resource.Apply(ctx, w.Name, next, metav1.ApplyOptions{FieldManager: DefaultManager})
		}
	}
	return w.resource.Create(ctx, w.desired(), metav1.CreateOptions{FieldManager: DefaultManager})
}

// update applies the manifest by force as the default manager. An object that the server cannot apply is replaced.
func (w *write) update(ctx context.Context) (*unstructured.Unstructured, error) {
	done, err := w.apply(ctx, DefaultManager, true, w.otherOwner)
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
	next := replacement(w.desired(), w.have)
	if same(next, w.have) {
		return w.have, nil
	}
	return w.uncontested(ctx, w.otherOwner, func(dryRun []string) (*unstructured.Unstructured, error) {
		return w.resource.Update(ctx, next, metav1.UpdateOptions{FieldManager: DefaultManager, DryRun: dryRun})
	})
}

func (w *write) createOnly(ctx context.Context) (*unstructured.Unstructured, error) {
	if w.have == nil {
		return w.create(ctx)
	}
	return setOwners(ctx, w.resource, w.have, w.owners())
}

// notYet is a resource version that no object has, since a store starts above it. The server ignores it if the object does not exist, and responds
// with a conflict if it does.
const notYet = "1"

func (w *write) serverSideApply(ctx context.Context) (*unstructured.Unstructured, error) {
	manager := cmp.Or(w.Strategy.Manager, DefaultManager)
	if prepared := w.Strategy.Prepared; prepared != nil {
		if w.have != nil && prepared.Unchanged(w.have.GetAnnotations()) {
			return setOwners(ctx, w.resource, w.have, w.owners())
		}
		w.Object = prepared.Whole
		if w.have != nil {
			w.Object = withIgnored(prepared.Whole, prepared.Reduced, w.have, manager)
		}
	}
	return w.apply(ctx, manager, w.Strategy.Force, func(ctx context.Context) (string, error) {
		if !applies(w.have, manager) {
			return "", nil // the server protects fields that are applied under another name
		}
		return w.otherOwner(ctx)
	})
}

// apply applies the manifest as a manager, which then owns its fields.
func (w *write) apply(
	ctx context.Context, manager string, force bool, rival func(context.Context) (string, error),
) (*unstructured.Unstructured, error) {
	next := w.desired()
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

// uncontested writes the object, unless a work that had it first desires a different state. A dry run decides that, since only the server knows which
// fields it would set.
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

// hold makes a cluster-scoped object belong to this work too, although another work determines its state: when that work is deleted, the object
// stays, and is changed. Deleting and creating a CustomResourceDefinition or a Namespace again would delete everything in it.
func (w *write) hold(ctx context.Context, contested *Contested) error {
	if w.Namespace == "" {
		if _, err := setOwners(ctx, w.resource, w.have, w.owners()); err != nil {
			return err
		}
	}
	return contested
}

// otherOwner returns the first other work that had the object before this one; empty if there is no such work. A work of the whole cluster has priority
// over one of a namespace, whichever was first: it never yields, so the two would overwrite each other.
func (w *write) otherOwner(ctx context.Context) (string, error) {
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

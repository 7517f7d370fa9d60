// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	// LabelShared is set on the objects that Klusterlets share: a namespace that existed before, and CustomResourceDefinitions.
	LabelShared = "operator.clusterhub.dev/shared-by-klusterlets"
	// markPrefix is the prefix of the labels that name the Klusterlets that use the object.
	markPrefix = "klusterlet.operator.clusterhub.dev/"
	// tries is the maximum number of reads of an object that others change at the same time.
	tries = 5
)

// mark is a label on a shared object for a Klusterlet that uses it. Each Klusterlet has its own label, so that the last one can delete the object: in
// one request, which fails if another Klusterlet was added since.
type mark struct {
	key string
	uid types.UID
}

// markOf returns the mark of a Klusterlet of one management cluster. Another management cluster may have a Klusterlet of that name.
func markOf(name string, uid types.UID, management string) mark {
	sum := sha256.Sum256([]byte(management))
	return mark{key: markPrefix + name + "." + hex.EncodeToString(sum[:4]), uid: uid}
}

// nameOf returns the Klusterlet of a mark.
func nameOf(key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, markPrefix)
	if at := strings.LastIndex(rest, "."); ok && at > 0 {
		return rest[:at], true
	}
	return "", false
}

// value returns the value of the mark, a hash of the desired object. An object with this value was applied before, and later changes by others stay:
// operators of two versions do not overwrite each other forever.
func (m mark) value(want *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(want.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(data, m.uid...))
	return hex.EncodeToString(sum[:16]), nil
}

// marks returns the number of Klusterlets that use an object.
func marks(o *unstructured.Unstructured) (n int) {
	for key := range o.GetLabels() {
		if strings.HasPrefix(key, markPrefix) {
			n++
		}
	}
	return n
}

// isMarked reports whether an object has the label LabelShared.
func isMarked(o *unstructured.Unstructured) bool {
	_, is := o.GetLabels()[LabelShared]
	return is
}

// ours reports whether hub-operator created a shared object for Klusterlets, so that it may delete it.
func ours(o *unstructured.Unstructured) bool {
	return o.GetLabels()[deploy.LabelManagedBy] == Manager && !isHubs(o)
}

// isHubs reports whether an object was created for a hub, and is deleted with its ClusterManager.
func isHubs(o *unstructured.Unstructured) bool {
	return o.GetLabels()[operatorv1.LabelClusterManager] != ""
}

// errHubs reports that a Klusterlet would be in a namespace of a hub.
var errHubs = errors.New("it belongs to a hub, and is deleted with the ClusterManager that has created it: delete the Klusterlet and create it with another name or spec.namespace")

// share creates a shared object, or uses the existing one. One that others created is only marked.
func (c *cluster) share(ctx context.Context, want *unstructured.Unstructured) error {
	native, err := c.native(ctx, want)
	if native || err != nil {
		c.hidden = c.hidden || native
		return err
	}
	value, err := c.mark.value(want)
	if err != nil {
		return err
	}
	applier := apply.Applier{Client: c.client}
	for try := 1; ; try++ {
		found, err := applier.Get(ctx, want)
		if err != nil {
			return err
		}
		give := want.DeepCopy()
		if found != nil {
			have := found.(*unstructured.Unstructured)
			switch {
			case have.GetDeletionTimestamp() != nil:
				return errDeleting
			case isHubs(have):
				return errHubs
			case c.isOfPods(have) && isCommandLines(have):
				return managedByCommandLine(have.GetName())
			case have.GetLabels()[c.mark.key] == value && isMarked(have):
				return nil
			case !ours(have):
				give.Object = map[string]any{"apiVersion": want.GetAPIVersion(), "kind": want.GetKind(), "metadata": map[string]any{"name": want.GetName()}}
			}
		}
		labels := map[string]string{LabelShared: "", c.mark.key: value}
		for key, value := range give.GetLabels() {
			labels[key] = value
		}
		if found == nil || ours(found.(*unstructured.Unstructured)) {
			labels[deploy.LabelManagedBy] = Manager
		}
		give.SetLabels(labels)
		// Each Klusterlet has its own field manager: with a common one, an apply for one Klusterlet would remove the fields of the others.
		err = applyShared(ctx, c.client, Manager+":"+strings.TrimPrefix(c.mark.key, markPrefix), give, found)
		if err == nil && give.GetDeletionTimestamp() != nil { // the object as the server has it now
			return errDeleting
		}
		if !apierrors.IsConflict(err) || try == tries {
			return err
		}
	}
}

func (c *cluster) isOfPods(o *unstructured.Unstructured) bool {
	return c.pods != "" && o.GetKind() == plan.Namespaces.Kind && o.GetName() == c.pods
}

// applyShared applies to an object that is unchanged since it was found. A definition only has to be the same one: many Klusterlets may be added to a
// cluster at once, and each label that another one adds would cause a retry. A namespace may have become a hub's in between.
func applyShared(ctx context.Context, c client.Client, manager string, give *unstructured.Unstructured, found client.Object) error {
	if found == nil || give.GetKind() != plan.Definitions.Kind {
		return apply.ServerSideApply(manager)(ctx, c, give, found)
	}
	give.SetUID(found.GetUID()) // so that it is not created if it was deleted
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(give), client.FieldOwner(manager), client.ForceOwnership)
	// A server reports the UID of a deleted object as a conflict, and that of a recreated one as a field that cannot be changed.
	var status apierrors.APIStatus
	if errors.As(err, &status) && apierrors.IsInvalid(err) && isAboutUID(status.Status().Details) {
		return apierrors.NewConflict(plan.Definitions.GVR().GroupResource(), give.GetName(), errors.New("it was deleted and created again concurrently"))
	}
	return err
}

func isAboutUID(details *metav1.StatusDetails) bool {
	return details != nil && slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// native reports whether a server behind the cluster's API server serves the kind of a definition, as on a hub: then the definition would have no
// effect.
func (c *cluster) native(ctx context.Context, want *unstructured.Unstructured) (bool, error) {
	if want.GetKind() != plan.Definitions.Kind {
		return false, nil
	}
	version, group, err := versionAndGroup(want)
	if err != nil {
		return false, err
	}
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(plan.APIServices.GroupVersionKind)
	if err := c.client.Get(ctx, client.ObjectKey{Name: version + "." + group}, service); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	backend, found, err := unstructured.NestedMap(service.Object, "spec", "service")
	return err == nil && found && len(backend) > 0, nil
}

func versionAndGroup(definition *unstructured.Unstructured) (version, group string, err error) {
	group, _, err = unstructured.NestedString(definition.Object, "spec", "group")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil || len(versions) == 0 {
		return "", "", fmt.Errorf("CustomResourceDefinition %s has no version", definition.GetName())
	}
	first, _ := versions[0].(map[string]any)
	version, _ = first["name"].(string)
	return version, group, nil
}

// unshare removes the mark from a shared object, and deletes the object if hub-operator created it and no Klusterlet uses it any more. A definition
// that has objects is not deleted: the objects would be deleted with it, and what they own.
func (c *cluster) unshare(ctx context.Context, what *unstructured.Unstructured) error {
	applier := apply.Applier{Client: c.client}
	for try := 1; ; try++ {
		found, err := applier.Get(ctx, what)
		if err != nil || found == nil {
			return err
		}
		have := found.(*unstructured.Unstructured)
		_, marked := have.GetLabels()[c.mark.key]
		if !marked {
			return nil
		}
		last := marks(have) == 1
		remove := last && ours(have) && have.GetDeletionTimestamp() == nil
		if remove && have.GetKind() == plan.Definitions.Kind {
			used, err := c.used(ctx, have)
			if err != nil {
				return err
			}
			remove = !used
		}
		uid, version := have.GetUID(), have.GetResourceVersion()
		if remove {
			err = c.client.Delete(ctx, have, client.Preconditions{UID: &uid, ResourceVersion: &version})
		} else {
			labels := map[string]any{c.mark.key: nil}
			if last {
				labels[LabelShared] = nil
			}
			patch, marshalErr := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "uid": uid, "resourceVersion": version}})
			if marshalErr != nil {
				return marshalErr
			}
			err = c.client.Patch(ctx, have, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager))
		}
		if err = client.IgnoreNotFound(err); !apierrors.IsConflict(err) || try == tries {
			return err
		}
	}
}

// used reports whether a definition has objects.
func (c *cluster) used(ctx context.Context, definition *unstructured.Unstructured) (bool, error) {
	version, group, err := versionAndGroup(definition)
	if err != nil {
		return false, err
	}
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
	err = c.client.List(ctx, list, client.Limit(1))
	return len(list.Items) > 0, client.IgnoreNotFound(err)
}

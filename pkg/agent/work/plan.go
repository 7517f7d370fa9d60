// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/ignorefields"
	"github.com/clusterhub/clusterhub/pkg/work/manifestconfig"
	"github.com/clusterhub/clusterhub/pkg/work/rules"
)

// item is one manifest of a work.
type item struct {
	meta     workv1.ManifestResourceMeta
	manifest apply.Manifest
	config   manifestconfig.Settings
	// target is whether the object of the manifest is known.
	target bool
	// frozen is whether the object is complete, so that it is not applied again.
	frozen bool
	// refused is why the manifest cannot be applied, even if it is retried.
	refused error
}

// object returns the object of the manifest, or nil if the manifest could not be parsed.
func (i *item) object() *unstructured.Unstructured { return i.manifest.Object }

// plan returns an item for each manifest of a work, in the order of the spec.
func (a *Agent) plan(work *workv1.ManifestWork) []*item {
	items := make([]*item, 0, len(work.Spec.Workload.Manifests))
	seen := sets.New[apply.Target]()
	for i, manifest := range work.Spec.Workload.Manifests {
		one := &item{meta: workv1.ManifestResourceMeta{Ordinal: int32(i)}}
		items = append(items, one)
		one.refused = a.locate(one, manifest.Raw)
		if one.refused != nil {
			continue
		}
		one.target = true
		one.config = manifestconfig.For(&one.meta, work.Spec.ManifestConfigs)
		one.config.ConditionRules = rules.Of(one.manifest.Object.GroupVersionKind(), one.config, work.Spec.ManifestConfigs)
		one.manifest.Orphaned = a.stays(work.Spec.DeleteOption, one.manifest.Target)
		object := one.manifest.Target
		object.Version = "" // all versions of a kind are one object
		one.refused = a.Own.denialReason(one.manifest.Target, one.manifest.Object, a.Only)
		if one.refused == nil && seen.Has(object) {
			one.refused = fmt.Errorf("the work has %s twice, which is one object in all versions of its kind: remove one of the manifests", object)
		}
		if one.refused == nil {
			one.refused = one.prepare()
		}
		if a.Own.isDeployment(object) && one.manifest.Strategy.Type != apply.ReadOnly {
			// Any other strategy might delete fields of the Deployment that the manifest does not have.
			one.manifest.Strategy = apply.UpdateStrategy{Type: apply.ServerSideApply, Force: true}
		}
		seen.Insert(object)
	}
	return items
}

// locate determines the object of a manifest.
func (a *Agent) locate(one *item, raw []byte) error {
	object := &unstructured.Unstructured{}
	// Integers stay int64, as in the objects that servers return: as float64, those above 2^53 would change, and none would equal the observed ones.
	if err := utiljson.Unmarshal(raw, &object.Object); err != nil {
		return fmt.Errorf("the manifest is not a JSON object: %w", err)
	}
	kind := object.GroupVersionKind()
	one.manifest.Object = object
	one.meta.Group, one.meta.Version, one.meta.Kind = kind.Group, kind.Version, kind.Kind
	one.meta.Namespace, one.meta.Name = object.GetNamespace(), object.GetName()
	if kind.Kind == "" || kind.Version == "" || object.GetName() == "" {
		return errors.New("the manifest needs apiVersion, kind and metadata.name")
	}
	resource, namespaced, err := a.Kinds.Resource(kind)
	if err != nil {
		return err
	}
	if !namespaced {
		one.meta.Namespace = ""
	} else if one.meta.Namespace == "" {
		return fmt.Errorf("the manifest needs metadata.namespace: a %s is in a namespace", kind.Kind)
	}
	one.meta.Resource = resource.Resource
	one.manifest.Target = apply.Target{GroupVersionResource: resource, Namespace: one.meta.Namespace, Name: one.meta.Name}
	return nil
}

// prepare sets the strategy by which a manifest is applied.
func (i *item) prepare() (err error) {
	i.manifest.Strategy.Type, i.manifest.Adoption = string(i.config.UpdateStrategy.Type), string(i.config.Adoption)
	ssa := i.config.UpdateStrategy.ServerSideApply
	if ssa == nil || i.manifest.Strategy.Type != apply.ServerSideApply {
		return nil
	}
	i.manifest.Strategy.Force, i.manifest.Strategy.Manager = ssa.Force, ssa.FieldManager
	if len(ssa.IgnoreFields) > 0 {
		i.manifest.Strategy.Prepared, err = ignorefields.Prepare(i.manifest.Object, ssa.IgnoreFields)
	}
	return err
}

// hash returns a hash that is the same as long as the work desires the same state of the object.
func (i *item) hash(work *workv1.ManifestWork) string {
	return hashOf([]any{i.manifest.Object.Object, i.config.UpdateStrategy, i.config.Adoption, i.manifest.Orphaned, work.Spec.Executor})
}

// rulesHash returns a hash that is the same as long as the work has the same rules for the status of the object.
func (i *item) rulesHash() string {
	return hashOf([]any{i.config.FeedbackRules, i.config.ConditionRules})
}

func hashOf(what any) string {
	data, err := json.Marshal(what)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// stays reports whether an object stays when its work is deleted: the work requests it, no server deletes the object, or the agent would be deleted
// with it.
func (a *Agent) stays(option *workv1.DeleteOption, t apply.Target) bool {
	return orphaned(option, t) || t.Immortal() || a.Own.stays(t)
}

// orphaned reports whether the delete option of a work orphans an object.
func orphaned(option *workv1.DeleteOption, t apply.Target) bool {
	if option == nil {
		return false
	}
	switch option.PropagationPolicy {
	case workv1.DeletePropagationPolicyTypeOrphan:
		return true
	case workv1.DeletePropagationPolicyTypeSelectivelyOrphan:
		if option.SelectivelyOrphan == nil {
			return false
		}
		for _, rule := range option.SelectivelyOrphan.OrphaningRules {
			if rule.Group == t.Group && rule.Resource == t.Resource && rule.Namespace == t.Namespace && rule.Name == t.Name {
				return true
			}
		}
	}
	return false
}

// isWanted reports whether a manifest names, or may name, a recorded object. A manifest whose resource is not known may name every object with its
// group and name, and one that cannot be parsed may name any.
func isWanted(t apply.Target, items []*item) bool {
	return slices.ContainsFunc(items, func(one *item) bool {
		switch meta := one.meta; {
		case one.target:
			return one.manifest.Is(t)
		case meta.Name == "":
			return true
		default:
			return meta.Group == t.Group && meta.Name == t.Name && (t.Namespace == "" || meta.Namespace == t.Namespace)
		}
	})
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploycheck

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge/check"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/stored"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

// world has the input of one check: the stored objects, as far as the user may use them, and those of the check itself.
type world struct {
	*REST
	ctx   context.Context
	who   user.Info
	asked *v1alpha1.DeployCheck

	// nodes has all stored nodes, and clusters those of the bound sets.
	nodes    map[string]*edge.EdgeNode
	clusters map[string]*cluster.ManagedCluster
	seen     *visibility.OfSets

	// used are the rights with which the user may use the objects of the check.
	used []rbac.Permission
}

// auditSuffix is the suffix of the audit annotation with the rights that a check used.
const auditSuffix = "deploycheck"

func (w *world) question() (*check.Question, error) {
	spec := &w.asked.Spec
	q := &check.Question{Namespace: w.asked.Namespace, Policy: spec.Policy, Pattern: spec.Pattern, Name: w.asked.Name,
		Limit: int(spec.Limit), Continue: spec.Continue}
	if err := w.named(q); err != nil {
		return nil, err
	}
	if err := w.services(q); err != nil {
		return nil, err
	}
	permission.Used(w.ctx, auditSuffix, w.used...)
	if err := w.reach(); err != nil {
		return nil, err
	}
	if err := w.addNodes(q); err != nil {
		return nil, err
	}
	return q, w.placed(q)
}

// named reads an existing policy or pattern, if the user may read it.
func (w *world) named(q *check.Question) error {
	name, resource, registry := w.asked.Spec.PolicyName, "deploymentpolicies", w.stored.Policies
	if name == "" {
		name, resource, registry = w.asked.Spec.PatternName, "deploymentpatterns", w.stored.Patterns
	}
	if name == "" {
		return nil
	}
	if err := w.mayGet(resource, w.asked.Namespace, name); err != nil {
		permission.Lacked(w.ctx, auditSuffix, toGet(resource, w.asked.Namespace, name))
		return err
	}
	found, err := registry.Get(w.ctx, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	q.Name = name
	switch typed := found.(type) {
	case *edge.DeploymentPolicy:
		q.Policy = &v1alpha1.DeploymentPolicySpec{}
		return v1alpha1.Convert_edge_DeploymentPolicySpec_To_v1alpha1_DeploymentPolicySpec(&typed.Spec, q.Policy, nil)
	case *edge.DeploymentPattern:
		q.Pattern = &v1alpha1.DeploymentPatternSpec{}
		return v1alpha1.Convert_edge_DeploymentPatternSpec_To_v1alpha1_DeploymentPatternSpec(&typed.Spec, q.Pattern, nil)
	}
	return apierrors.NewInternalError(fmt.Errorf("%s %s is a %T", resource, name, found))
}

// mayGet returns the error that the front would return if the user may not get an object.
func (w *world) mayGet(resource, namespace, name string) error {
	rule := toGet(resource, namespace, name)
	held, err := permission.Holds(w.ctx, w.visible.Authorizer, w.who, rule)
	switch {
	case err != nil:
		return err
	case held == nil:
		return apierrors.NewForbidden(edge.Resource(resource), name, fmt.Errorf("expected the right %s", rule))
	}
	w.used = append(w.used, *held)
	return nil
}

func toGet(resource, namespace, name string) rbac.Permission {
	// Permission (resource: edgeservices, deploymentpolicies or deploymentpatterns; name: the object; namespace: of the object): a DeployCheck is for an
	// existing policy or pattern, or names a service in a different namespace.
	return rbac.Permission{Verb: "get", Group: edge.GroupName, Resource: resource, Namespace: namespace, Name: name}
}

// wanted returns the services to be deployed.
func wanted(q *check.Question) []model.Wanted {
	if q.Policy != nil {
		return []model.Wanted{model.WantedByPolicy(q.Namespace, q.Policy)}
	}
	return model.WantedByPattern(q.Namespace, q.Pattern)
}

// services collects the existing services that the user may use, replaced by those of the check itself. A service that the user may not use is
// treated as missing.
func (w *world) services(q *check.Question) error {
	here := sets.New[types.NamespacedName]()
	for i := range w.asked.Spec.Services {
		s := &w.asked.Spec.Services[i]
		org := cmp.Or(s.Org, w.asked.Namespace)
		archive, err := model.ReadArchive(&s.Spec)
		if err != nil {
			at := field.NewPath("spec", "services").Index(i).Child("spec", "clusterDeployment", "operatorYamlArchive")
			return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("DeployCheck").GroupKind(), w.asked.Name,
				field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())})
		}
		service := model.Service(org, &s.Spec, nil)
		if archive != nil {
			service.Contents = &archive.Contents
		}
		here.Insert(types.NamespacedName{Namespace: org, Name: edge.ServiceName(s.Spec.URL, s.Spec.Version, s.Spec.Arch)})
		q.Services, q.Published = append(q.Services, service), append(q.Published, service)
	}
	asked := sets.New[types.NamespacedName]()
	for _, wanted := range wanted(q) {
		if key := (types.NamespacedName{Namespace: wanted.Namespace, Name: wanted.URL}); asked.Has(key) {
			continue
		} else {
			asked.Insert(key)
		}
		all, err := stored.List[*edge.EdgeServiceList](w.ctx, w.stored.Services, wanted.Namespace,
			&internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.url", wanted.URL)})
		if err != nil {
			return err
		}
		for i := range all.Items {
			s := &all.Items[i]
			if here.Has(types.NamespacedName{Namespace: s.Namespace, Name: s.Name}) || s.DeletionTimestamp != nil {
				continue
			}
			if s.Namespace != w.asked.Namespace && !s.Spec.Public {
				if err := w.mayGet("edgeservices", s.Namespace, s.Name); apierrors.IsForbidden(err) {
					continue
				} else if err != nil {
					return err
				}
			}
			versioned := &v1alpha1.EdgeService{}
			if err := v1alpha1.Convert_edge_EdgeService_To_v1alpha1_EdgeService(s, versioned, nil); err != nil {
				return apierrors.NewInternalError(err)
			}
			q.Services = append(q.Services, model.StoredService(versioned))
		}
	}
	return nil
}

// reach reads the nodes, and which of them belong to accepted clusters of the bound sets.
func (w *world) reach() error {
	exist, err := stored.Sets(w.ctx, w.stored.Sets)
	if err != nil {
		return err
	}
	bound, err := stored.BoundSets(w.ctx, w.stored.Bindings, w.asked.Namespace)
	if err != nil {
		return err
	}
	bound = slices.DeleteFunc(bound, func(name string) bool {
		unknown, there := exist[name]
		return !there || unknown != nil
	})
	w.seen, err = w.visible.OfSets(w.ctx, w.who, bound)
	if err != nil {
		return err
	}
	w.clusters = map[string]*cluster.ManagedCluster{}
	for _, set := range bound {
		for object := range w.seen.Each(set) {
			c, ok := object.(*cluster.ManagedCluster)
			if !ok {
				return apierrors.NewInternalError(fmt.Errorf("the view has a %T", object))
			}
			w.clusters[c.Name] = c
		}
	}
	all, err := stored.List[*edge.EdgeNodeList](w.ctx, w.stored.Nodes, "", nil)
	if err != nil {
		return err
	}
	w.nodes = make(map[string]*edge.EdgeNode, len(all.Items))
	for i := range all.Items {
		w.nodes[all.Items[i].Name] = &all.Items[i]
	}
	return nil
}

// reached reports whether the namespace can deploy to a node: the node belongs to a cluster of a set, and to the current cluster of that name.
func (w *world) reached(n *edge.EdgeNode) bool {
	c := w.clusters[n.Name]
	return c != nil && n.DeletionTimestamp == nil && c.DeletionTimestamp == nil && c.Spec.HubAcceptsClient &&
		slices.ContainsFunc(n.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.Kind == "ManagedCluster" && o.Name == c.Name && o.UID == c.UID
		})
}

// addNodes adds the nodes of the check, those that it names, or all reached ones. The result has only nodes that the user may see.
func (w *world) addNodes(q *check.Question) error {
	spec := &w.asked.Spec
	have := sets.New[string]()
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		have.Insert(n.Name)
		q.Nodes = append(q.Nodes, check.Read(model.Node(n.Name, &n.Spec, &n.Status)))
	}
	for _, name := range spec.NodeNames {
		if have.Has(name) {
			continue
		}
		have.Insert(name)
		n := w.nodes[name]
		shown, err := w.shows(name)
		switch {
		case err != nil:
			return err
		case n == nil || !shown:
			q.Nodes = append(q.Nodes, check.Candidate{Name: name, Reason: check.NodeNotFound})
		case !w.reached(n):
			q.Nodes = append(q.Nodes, check.Candidate{Name: name, Reason: check.NotReached})
		default:
			q.Nodes = append(q.Nodes, w.read(n))
		}
	}
	if len(q.Nodes) > 0 {
		return nil
	}
	for name, n := range w.nodes {
		if w.reached(n) {
			node := w.read(n)
			node.Hidden = !w.seen.Shows(name)
			q.Nodes = append(q.Nodes, node)
		}
	}
	return nil
}

// shows reports whether the user may see the cluster of a node, in any set.
func (w *world) shows(name string) (bool, error) {
	if w.clusters[name] != nil {
		return w.seen.Shows(name), nil
	}
	_, err := w.visible.Get(w.ctx, w.who, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}

// readNode is a decoded node, with its identity and version.
type readNode struct {
	uid             types.UID
	resourceVersion string
	node            check.Candidate
}

// read decodes a node, or returns it from the cache.
func (w *world) read(n *edge.EdgeNode) check.Candidate {
	if kept, ok := w.REST.nodes.Get(n.Name); ok {
		if r := kept.(readNode); r.uid == n.UID && r.resourceVersion == n.ResourceVersion {
			return r.node
		}
	}
	versioned := &v1alpha1.EdgeNode{}
	node := check.Candidate{Name: n.Name, Reason: check.NodeUnreadable}
	if err := v1alpha1.Convert_edge_EdgeNode_To_v1alpha1_EdgeNode(n, versioned, nil); err == nil {
		node = check.Read(model.Node(n.Name, &versioned.Spec, &versioned.Status))
	}
	w.REST.nodes.Add(n.Name, readNode{n.UID, n.ResourceVersion, node})
	return node
}

// placed reads the existing edge placements of the services on the nodes, of all namespaces.
func (w *world) placed(q *check.Question) error {
	services := sets.New[types.NamespacedName]()
	for _, w := range wanted(q) {
		services.Insert(types.NamespacedName{Namespace: w.Namespace, Name: w.URL})
	}
	all, err := stored.List[*edge.EdgePlacementList](w.ctx, w.stored.Placements, "", nil)
	if err != nil {
		return err
	}
	for i := range all.Items {
		p := &all.Items[i]
		n := w.nodes[p.Spec.Node]
		if n == nil || p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Spec.Services, func(s edge.PlacedService) bool {
			return services.Has(types.NamespacedName{Namespace: s.Org, Name: s.Name})
		}) {
			continue
		}
		node := w.read(n)
		if node.Node == nil {
			continue
		}
		versioned := &v1alpha1.EdgePlacement{}
		if err := v1alpha1.Convert_edge_EdgePlacement_To_v1alpha1_EdgePlacement(p, versioned, nil); err != nil {
			return apierrors.NewInternalError(err)
		}
		placed, err := model.Placed(versioned, node.Node)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		for _, one := range placed {
			one.Hidden = p.Namespace != w.asked.Namespace || !w.seen.Shows(p.Spec.Node)
		}
		q.Placed = append(q.Placed, placed...)
	}
	return nil
}

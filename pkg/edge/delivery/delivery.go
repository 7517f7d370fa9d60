// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery computes the work of an edge placement: the objects of its services as they are delivered to a node. It is pure.
package delivery

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

const (
	// maxManifests is the maximum number of manifests of a work.
	maxManifests = 1024
	// VariablesEnv is the environment variable of containers that names the ConfigMap with the variables of the service, as in Open Horizon.
	VariablesEnv = "HZN_ENV_VARS"
	// variablesPrefix is the prefix of the names of these ConfigMaps.
	variablesPrefix = "hzn-env-vars-"
)

// Part is a service of a placement.
type Part struct {
	Archive *archive.Archive
	// Namespace is the target namespace.
	Namespace string
	// Variables are the variables of the service, with their values. The name of their ConfigMap ends with Suffix.
	Variables map[string]string
	Suffix    string
	// Withheld leaves the objects of the service out of the work, but keeps its namespace.
	Withheld bool
}

// A Fault reports why something cannot be delivered as it is written: a retry does not help.
type Fault struct {
	Reason, Message string
	// Part is the index of the service that must be changed to another version.
	Part int
}

func (f *Fault) Error() string { return f.Message }

// Reasons of faults.
const (
	// ReasonTooMany: there are more objects than a work may have.
	ReasonTooMany = "TooManyObjects"
	// ReasonNotRewritable: an archive has content that cannot be delivered.
	ReasonNotRewritable = "ArchiveNotDeliverable"
	// ReasonInputMissing: a variable has no value.
	ReasonInputMissing = "InputMissing"
	// ReasonInputInvalid: a variable has a value of another type, or an invalid name.
	ReasonInputInvalid = "InputInvalid"
	// ReasonTwice: two services have the same object.
	ReasonTwice = "ObjectTwice"
)

// progress are the kinds whose readiness the agent reports; for the last ones also when they are complete.
var progress = map[schema.GroupKind]struct {
	resource  string
	completes bool
}{
	{Group: "apps", Kind: "Deployment"}:                               {resource: "deployments"},
	{Group: "apps", Kind: "StatefulSet"}:                              {resource: "statefulsets"},
	{Group: "apps", Kind: "DaemonSet"}:                                {resource: "daemonsets"},
	{Kind: "PersistentVolumeClaim"}:                                   {resource: "persistentvolumeclaims"},
	{Kind: "Service"}:                                                 {resource: "services"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {resource: "apiservices"},
	{Group: "batch", Kind: "Job"}:                                     {"jobs", true},
	{Kind: "Pod"}:                                                     {"pods", true},
}

// Work returns the spec of the work of a placement on a node with this status, the index of the first manifest of each part, and whether the spec
// requests the progress of any object. An object that several services share belongs to the first of them.
func Work(node *edgev1alpha1.EdgeNodeStatus, parts []Part) (spec *workv1.ManifestWorkSpec, begins []int, asks bool, err error) {
	scoped := node.NamespaceScoped == nil || *node.NamespaceScoped
	var objects []*unstructured.Unstructured
	if !scoped {
		objects = namespaces(parts)
	}
	made := len(objects)
	largest, most := 0, -1
	of := make([]int, made) // the part of each object
	for i := range parts {
		some, fault := parts[i].objects(scoped)
		if fault != nil {
			fault.Part = i
			return nil, nil, false, fault
		}
		if len(some) > most {
			largest, most = i, len(some)
		}
		objects = append(objects, some...)
		of = append(of, slices.Repeat([]int{i}, len(some))...)
	}
	if len(objects) > maxManifests {
		return nil, nil, false, &Fault{ReasonTooMany, fmt.Sprintf("the services have %d objects together, and one placement delivers at most %d: deploy fewer by one pattern",
			len(objects), maxManifests), largest}
	}
	spec = &workv1.ManifestWorkSpec{DeleteOption: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}}
	orphans := &workv1.SelectivelyOrphan{}
	for _, o := range objects[:made] {
		// An existing namespace is not changed, and one that was created for a deployment stays: it may have other objects later.
		orphans.OrphaningRules = append(orphans.OrphaningRules, workv1.OrphaningRule{Resource: "namespaces", Name: o.GetName()})
		spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "namespaces", Name: o.GetName()}, FeedbackScrapeType: workv1.FeedbackPollType,
			UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}})
	}
	if made > 0 {
		spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: orphans}
	}
	seen, asked := map[archive.Object]string{}, map[schema.GroupKind]bool{}
	for i, o := range objects {
		for i >= made && len(begins) <= of[i] {
			begins = append(begins, len(spec.Workload.Manifests))
		}
		kind := o.GroupVersionKind().GroupKind()
		key := archive.Object{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, nil, false, err
		}
		if first, twice := seen[key]; twice && first == string(raw) && o.GetNamespace() == "" {
			continue // Services share definitions and roles of a cluster.
		} else if twice {
			return nil, nil, false, &Fault{ReasonTwice, fmt.Sprintf("two services have %s, and it can be there once: give it two names", key), of[i]}
		}
		seen[key] = string(raw)
		spec.Workload.Manifests = append(spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
		if of, known := progress[kind]; known && !asked[kind] {
			asked[kind], asks = true, true
			spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
				ResourceIdentifier: workv1.ResourceIdentifier{Group: kind.Group, Resource: of.resource, Name: "*", Namespace: "*"},
				FeedbackScrapeType: workv1.FeedbackPollType, ConditionRules: rules(of.completes)})
		}
	}
	for len(begins) < len(parts) {
		begins = append(begins, len(spec.Workload.Manifests))
	}
	return spec, begins, asks, nil
}

func rules(completes bool) []workv1.ConditionRule {
	list := []workv1.ConditionRule{
		{Type: workv1.WellKnownConditionsType, Condition: workv1.WorkProgressing}, {Type: workv1.WellKnownConditionsType, Condition: workv1.WorkDegraded},
	}
	if completes {
		list = append(list, workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: workv1.WorkComplete})
	}
	return list
}

// namespaces returns the target namespaces, which a cluster-scoped agent creates if they do not exist: without labels, since these could weaken the
// policies of a namespace. They include the default namespace of services, since the agent is in a different one.
func namespaces(parts []Part) (list []*unstructured.Unstructured) {
	var names []string
	for i := range parts {
		if name := parts[i].Namespace; !slices.Contains(names, name) {
			names = append(names, name)
			list = append(list, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
		}
	}
	return list
}

// objects returns the objects of a service, with its variables.
func (p *Part) objects(scoped bool) ([]*unstructured.Unstructured, *Fault) {
	if p.Withheld {
		return nil, nil
	}
	deliver := p.Archive.Deliver
	if scoped {
		deliver = p.Archive.DeliverNamespaced
	}
	list, err := deliver(p.Namespace)
	if err != nil {
		return nil, &Fault{Reason: ReasonNotRewritable, Message: err.Error()}
	}
	if len(p.Variables) == 0 {
		return list, nil
	}
	name := variablesPrefix + p.Suffix
	for _, o := range list {
		if err := withVariables(o, name); err != nil {
			return nil, &Fault{Reason: ReasonNotRewritable, Message: fmt.Sprintf("%s %s: %v", o.GetKind(), o.GetName(), err)}
		}
	}
	data := map[string]any{}
	for key, value := range p.Variables {
		data[key] = value
	}
	return append([]*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": p.Namespace}, "data": data}}}, list...), nil
}

// withVariables sets the name of the ConfigMap with the variables in the containers of a Deployment.
func withVariables(o *unstructured.Unstructured, configMap string) error {
	if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apps", Kind: "Deployment"}) {
		return nil
	}
	containers, there, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if err != nil || !there {
		return err
	}
	for i, container := range containers {
		c, is := container.(map[string]any)
		if !is {
			return fmt.Errorf("container %d is not a map", i+1)
		}
		env, is := c["env"].([]any)
		if c["env"] != nil && !is {
			return fmt.Errorf("env of container %d is not a list", i+1)
		}
		if slices.ContainsFunc(env, func(one any) bool { m, is := one.(map[string]any); return is && m["name"] == VariablesEnv }) {
			continue
		}
		c["env"] = append(slices.Clone(env), map[string]any{"name": VariablesEnv, "value": configMap})
	}
	return unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery makes the work of an edge placement: the objects of its services as they come to a node. It is pure.
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
	// mostManifests and mostConfigs are what a work may have.
	mostManifests = 1024
	// VariablesEnv is the variable of containers that names the ConfigMap with the variables of the service, as in Open Horizon.
	VariablesEnv = "HZN_ENV_VARS"
	// variablesPrefix begins the names of these ConfigMaps.
	variablesPrefix = "hzn-env-vars-"
)

// Part is a service of a placement.
type Part struct {
	Archive *archive.Archive
	// Namespace is the target.
	Namespace string
	// Variables are those of the service, with their values. The ConfigMap with them has this suffix.
	Variables map[string]string
	Suffix    string
	// Withheld leaves the objects of the service out of the work, and the namespace in it.
	Withheld bool
}

// A Fault is why something cannot be delivered as it is written: trying again is of no use.
type Fault struct {
	Reason, Message string
	// Part is the index of the service that has to be another version.
	Part int
}

func (f *Fault) Error() string { return f.Message }

// Reasons of faults.
const (
	// ReasonTooMany is that there are more objects than a work may have.
	ReasonTooMany = "TooManyObjects"
	// ReasonNotRewritable is that an archive has what cannot be delivered.
	ReasonNotRewritable = "ArchiveNotDeliverable"
	// ReasonInputMissing is that a variable has no value.
	ReasonInputMissing = "InputMissing"
	// ReasonInputInvalid is that a variable has a value of another type, or cannot be one.
	ReasonInputInvalid = "InputInvalid"
	// ReasonTwice is that two services have the same object.
	ReasonTwice = "ObjectTwice"
)

// progress are kinds of which the agent says when they do what they are for; for the last ones also when they are done.
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

// Work returns the spec of the work of a placement on a node with this status, where the manifests of each part begin in it, and whether the
// agent is asked for the progress of any object. An object that several services share belongs to the first of them.
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
	if len(objects) > mostManifests {
		return nil, nil, false, &Fault{ReasonTooMany, fmt.Sprintf("the services have %d objects together, and one placement delivers at most %d: deploy fewer by one pattern",
			len(objects), mostManifests), largest}
	}
	spec = &workv1.ManifestWorkSpec{DeleteOption: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}}
	orphans := &workv1.SelectivelyOrphan{}
	for _, o := range objects[:made] {
		// A namespace that is there is left as it is, and one that was made for a deployment stays: there may be more in it by then.
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

// namespaces are the targets that an agent with the rights of the cluster makes, if they are not there: without labels, since these could weaken
// what holds in a namespace. The one that services go to where nothing else is said is among them: the agent is in another one.
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

// objects returns those of a service, with its variables.
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

// withVariables tells the containers of a Deployment in which ConfigMap the variables are.
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

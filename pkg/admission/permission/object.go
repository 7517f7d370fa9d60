// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// Stored are the metadata of what a request stores, and of what is stored so far, which is empty for what is created. It is
// false for requests that store no object of ours: those for other kinds, and those that create something by a subresource.
func Stored(a admission.Attributes) (updated, old metav1.Object, ok bool) {
	switch a.GetResource().Group {
	case cluster.GroupName, openmcp.GroupName:
	default:
		return nil, nil, false
	}
	updated, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil, nil, false
	}
	switch a.GetOperation() {
	case admission.Create:
		return updated, &metav1.ObjectMeta{}, a.GetSubresource() == ""
	case admission.Update:
		old, err = meta.Accessor(a.GetOldObject())
		return updated, old, err == nil
	}
	return nil, nil, false
}

// On is the right to a verb on the object of a request, or on a subresource of it. An object that is created with a
// generated name has none yet: the right has to be one on all names.
func On(a admission.Attributes, verb, subresource string) Rule {
	return Rule{
		Verb: verb, Group: a.GetResource().Group, Resource: a.GetResource().Resource, Subresource: subresource,
		Name: a.GetName(), Namespace: a.GetNamespace(),
	}
}

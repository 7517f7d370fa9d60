// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterdeletion warns users who delete a Cluster to which AccessRequests give access.
package clusterdeletion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "ClusterDeletion"
	// maxNamed is the largest number of requests in a warning.
	maxNamed = 5
)

// Plugin warns. It rejects nothing.
type Plugin struct {
	permission.Guard
	// AccessRequests lists the AccessRequests of the hub.
	AccessRequests rest.Lister
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin, which does nothing without the requests.
func New() *Plugin { return &Plugin{Guard: permission.NewGuard(PluginName, admission.Delete)} }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if p.AccessRequests == nil || !permission.Is(a, openmcp.Resource("clusters")) {
		return nil
	}
	c, ok := a.GetOldObject().(*openmcp.Cluster)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	found, err := p.AccessRequests.List(request.WithNamespace(ctx, ""), &metainternalversion.ListOptions{
		FieldSelector:   fields.SelectorFromSet(fields.Set{"spec.clusterRef.name": c.Name, "spec.clusterRef.namespace": c.Namespace}),
		ResourceVersion: "0",
	})
	list, ok := found.(*openmcp.AccessRequestList)
	if err != nil || !ok || len(list.Items) == 0 {
		return nil //nolint:nilerr // a warning that cannot be made does not stop a deletion
	}
	effect := "whose access ends"
	if slices.Contains(c.Finalizers, openmcp.AccessFinalizer) {
		effect = "and remains until they are gone"
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("the Cluster %q has %d AccessRequest(s), %s: %s",
		c.Name, len(list.Items), effect, p.names(ctx, a.GetUserInfo(), list.Items)))
	return nil
}

// names returns the names of the requests that the user may list.
func (p *Plugin) names(ctx context.Context, who user.Info, requests []openmcp.AccessRequest) string {
	var names []string
	visible := map[string]bool{}
	for _, r := range requests {
		if len(names) == maxNamed {
			break
		}
		if _, asked := visible[r.Namespace]; !asked {
			if len(visible) == maxNamed {
				continue
			}
			// Permission (namespace: of an AccessRequest): the warning on the deletion of a Cluster lists its AccessRequests.
			decision, _, err := p.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
				User: who, Verb: "list", APIGroup: openmcp.GroupName, APIVersion: "v1alpha1",
				Resource: "accessrequests", Namespace: r.Namespace, ResourceRequest: true,
			})
			visible[r.Namespace] = err == nil && decision == authorizer.DecisionAllow
		}
		if visible[r.Namespace] {
			names = append(names, r.Namespace+"/"+r.Name)
		}
	}
	if more := len(requests) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

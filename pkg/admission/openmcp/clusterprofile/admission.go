// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterprofile restricts clusters of clusters.openmcp.cloud to what their profile offers.
package clusterprofile

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ClusterProfile"

// Plugin rejects a new cluster whose profile does not exist, and a request for a version of Kubernetes that the profile does not offer. It does not
// check stored values again: a profile can stop offering what its clusters have.
type Plugin struct {
	*admission.Handler
	// Profiles gets the ClusterProfiles of the hub.
	Profiles rest.Getter
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin, which rejects all clusters until it has the profiles.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	c, old, err := permission.Objects[openmcp.Cluster](a, openmcp.Resource("clusters"))
	if c == nil {
		return err
	}
	version := c.Spec.Kubernetes.Version
	if a.GetOperation() == admission.Update && (version == "" || version == old.Spec.Kubernetes.Version) {
		return nil
	}
	if c.Spec.Profile == "" {
		return nil // the registry reports that it is required
	}
	offer, err := p.offer(ctx, c.Spec.Profile, version)
	switch {
	case apierrors.IsNotFound(err):
		return invalid(a, c, field.Invalid(field.NewPath("spec", "profile"), c.Spec.Profile,
			"no ClusterProfile has this name: kubectl get clusterprofiles lists them"))
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("%s cannot read the ClusterProfile %q: %w", PluginName, c.Spec.Profile, err))
	case !offer.made:
		return invalid(a, c, field.NotSupported(field.NewPath("spec", "kubernetes", "version"), version, offer.versions))
	case offer.deprecated:
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.kubernetes.version: %s is deprecated in the ClusterProfile %q", version, c.Spec.Profile))
	}
	return nil
}

func invalid(a admission.Attributes, c *openmcp.Cluster, err *field.Error) error {
	return apierrors.NewInvalid(a.GetKind().GroupKind(), c.Name, field.ErrorList{err})
}

// offer is the data of a profile about a version.
type offer struct {
	made, deprecated bool
	versions         []string
}

// offer reads from the cache, which serves almost every request and may be stale, and reads from the store before it returns that something does not
// exist.
func (p *Plugin) offer(ctx context.Context, profile, version string) (offer, error) {
	if p.Profiles == nil {
		return offer{}, errors.New("the server is still starting: try again in a few seconds")
	}
	object, err := p.Profiles.Get(ctx, profile, &metav1.GetOptions{ResourceVersion: "0"})
	if err == nil {
		if o := offeredVersions(object.(*openmcp.ClusterProfile), version); o.made {
			return o, nil
		}
	}
	object, err = p.Profiles.Get(ctx, profile, &metav1.GetOptions{})
	if err != nil {
		return offer{}, err
	}
	return offeredVersions(object.(*openmcp.ClusterProfile), version), nil
}

func offeredVersions(p *openmcp.ClusterProfile, version string) offer {
	o := offer{made: version == "" || len(p.Spec.SupportedVersions) == 0}
	for _, v := range p.Spec.SupportedVersions {
		o.versions = append(o.versions, v.Version)
		if v.Version == version {
			o.made, o.deprecated = true, v.Deprecated
		}
	}
	return o
}

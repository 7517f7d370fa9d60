// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	quota "k8s.io/apiserver/pkg/quota/v1/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterhub/clusterhub/pkg/admission/cluster/agentlabelrate"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/agentrestriction"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/clustersetbinding"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/clustersetdeletion"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/defaultclusterset"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusteraccept"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusterlabel"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/namespaceplacements"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/pendingclusters"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/hubstatus"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/nodeaccess"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/nodeowner"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/publishing"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/readonlyproperties"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/serviceuse"
	"github.com/clusterhub/clusterhub/pkg/admission/hubfinalizers"
	"github.com/clusterhub/clusterhub/pkg/admission/namespacebounds"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/openmcp/clusterdeletion"
	"github.com/clusterhub/clusterhub/pkg/admission/openmcp/clusterprofile"
	"github.com/clusterhub/clusterhub/pkg/admission/ownerreferences"
	"github.com/clusterhub/clusterhub/pkg/admission/plaintext"
	"github.com/clusterhub/clusterhub/pkg/admission/storagespace"
	"github.com/clusterhub/clusterhub/pkg/admission/work/agentworks"
	"github.com/clusterhub/clusterhub/pkg/admission/work/executeas"
	"github.com/clusterhub/clusterhub/pkg/admission/work/manifestsize"
	"github.com/clusterhub/clusterhub/pkg/admission/work/replicasetauthor"
	"github.com/clusterhub/clusterhub/pkg/admission/work/revision"
	"github.com/clusterhub/clusterhub/pkg/apiserver"
	"github.com/clusterhub/clusterhub/pkg/registration/agentlimit"
)

// plugins are all plugins, in the order in which they run. The mutating ones run before any permission is checked. The validating ones all see the
// object as it will be stored.
var plugins = []plugin{
	{name: lifecycle.PluginName},
	ours(defaultclusterset.PluginName, defaultclusterset.New),
	ours(agentrestriction.PluginName, agentrestriction.New),
	{name: mutatingadmissionpolicy.PluginName},
	{name: mutatingwebhook.PluginName},
	// It also drops what webhooks have added.
	ours(readonlyproperties.PluginName, readonlyproperties.New),
	ours(nodeowner.PluginName, nodeowner.New),

	// These are the first of those that validate: a request without room needs no other checks. The error about manifests is more specific than the
	// one about objects.
	ours(storagespace.PluginName, func() *storagespace.Plugin { return storagespace.New(apiserver.EncodedSize) }),
	ours(manifestsize.PluginName, manifestsize.New),
	ours(objectsize.PluginName, func() *objectsize.Plugin { return objectsize.New(apiserver.EncodedSize) }),
	// It also replaces characters, after all other mutating plugins.
	ours(plaintext.PluginName, plaintext.New),
	ours(managedclusterlabel.PluginName, managedclusterlabel.New),
	ours(managedclusteraccept.PluginName, managedclusteraccept.New),
	ours(ownerreferences.PluginName, ownerreferences.New),
	ours(hubfinalizers.PluginName, hubfinalizers.New),
	ours(clustersetbinding.PluginName, clustersetbinding.New),
	ours(clustersetdeletion.PluginName, clustersetdeletion.New),
	ours(agentworks.PluginName, agentworks.New),
	ours(executeas.PluginName, executeas.New),
	ours(replicasetauthor.PluginName, replicasetauthor.New),
	ours(revision.PluginName, revision.New),
	ours(nodeaccess.PluginName, nodeaccess.New),
	ours(hubstatus.PluginName, hubstatus.New),
	// The second one reads what the first has admitted.
	ours(serviceuse.PluginName, serviceuse.New),
	ours(publishing.PluginName, publishing.New),
	ours(clusterprofile.PluginName, clusterprofile.New),
	ours(clusterdeletion.PluginName, clusterdeletion.New),
	{name: validatingadmissionpolicy.PluginName},
	{name: validatingwebhook.PluginName},

	// These five are last, so that a rejected request does not count.
	ours(agentlabelrate.PluginName, agentlabelrate.New),
	ours(pendingclusters.PluginName, func() *pendingclusters.Plugin { return pendingclusters.New(clock.RealClock{}) }),
	ours(namespaceplacements.PluginName, func() *namespaceplacements.Plugin { return namespaceplacements.New(clock.RealClock{}) }),
	ours(namespacebounds.PluginName, func() *namespacebounds.Plugin { return namespacebounds.New(apiserver.EncodedSize, clock.RealClock{}) }),
	{name: resourcequota.PluginName, register: resourcequota.Register},
}

// plugin is an admission plugin. The generic server registers those without a function.
type plugin struct {
	name     string
	register func(*admission.Plugins)
}

// ours returns a plugin of pkg/admission.
func ours[P admission.Interface](name string, construct func() P) plugin {
	return plugin{name, func(all *admission.Plugins) {
		all.Register(name, func(io.Reader) (admission.Interface, error) { return construct(), nil })
	}}
}

// registerAdmission adds our plugins, and sets the order of all.
func registerAdmission(o *genericoptions.AdmissionOptions) {
	o.RecommendedPluginOrder = nil
	for _, p := range plugins {
		if p.register != nil {
			p.register(o.Plugins)
		}
		o.RecommendedPluginOrder = append(o.RecommendedPluginOrder, p.name)
	}
}

// disableMissingPlugins disables the plugin for MutatingAdmissionPolicies on a hub whose version does not have them: it would wait for them forever,
// and reject all writes. It waits up to a minute for the hub to respond.
func disableMissingPlugins(ctx context.Context, hub discovery.DiscoveryInterface, o *genericoptions.AdmissionOptions) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(context.Context) (bool, error) {
		resources, err := hub.ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			last = err
			return false, nil
		default:
			for _, r := range resources.APIResources {
				if r.Name == "mutatingadmissionpolicies" {
					return true, nil
				}
			}
		}
		klog.InfoS("The hub has no mutatingadmissionpolicies in admissionregistration.k8s.io/v1: the admission plugin for them is off")
		o.DisablePlugins = append(o.DisablePlugins, mutatingadmissionpolicy.PluginName)
		return true, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("the hub's kube-apiserver does not respond, check --kubeconfig: %w", last)
	}
	return err
}

// pluginInitializer sets what the generic server's initializer does not: our fields, how quotas are counted, which for all our kinds is the number of
// objects, and the informers of policies.
type pluginInitializer struct {
	informers informers.SharedInformerFactory
	// maxPending is --max-pending-clusters.
	maxPending int
	// maxPlacements is --max-placements-per-namespace.
	maxPlacements int
	// maxInNamespace are --max-objects-per-namespace and --max-bytes-per-namespace.
	maxInNamespace namespacebounds.Amount
	// maxManifests is --max-manifests-bytes.
	maxManifests int
	// labelChanges is the limit for label changes by agents.
	labelChanges agentlimit.Limit
	// checkSpace returns an error while there is no room for writes. It is nil if that is not known.
	checkSpace func() error
	wanting    []func(apiserver.Registries)
}

// Initialize implements admission.PluginInitializer. Registries are set later, when the server has been created.
func (i *pluginInitializer) Initialize(one admission.Interface) {
	switch p := one.(type) {
	case *clustersetdeletion.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Counter = r.SetUsage })
	case *clusterprofile.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Profiles = r.ClusterProfiles })
	case *clusterdeletion.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.AccessRequests = r.AccessRequests })
	case *revision.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.ReplicaSets = r.ReplicaSets })
	case *replicasetauthor.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Bindings = r.SetBindings })
	case *nodeowner.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Clusters = r.ManagedClusters })
	case *nodeaccess.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Clusters, p.Sets = r.ManagedClusters, r.ClusterSets })
	case *serviceuse.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Services = r.EdgeServices })
	case *publishing.Plugin:
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Services = r.EdgeServices })
	case *pendingclusters.Plugin:
		p.Most = i.maxPending
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Clusters = r.ManagedClusters })
	case *namespaceplacements.Plugin:
		p.Most = i.maxPlacements
		i.wanting = append(i.wanting, func(r apiserver.Registries) { p.Placements = r.Placements })
	case *namespacebounds.Plugin:
		p.MaxObjects, p.MaxBytes = i.maxInNamespace.Objects, i.maxInNamespace.Bytes
		if i.maxInNamespace != (namespacebounds.Amount{}) {
			i.wanting = append(i.wanting, func(r apiserver.Registries) { r.FollowNamespaced(p.Usage) })
		}
	case *manifestsize.Plugin:
		p.Most = i.maxManifests
	case *agentlabelrate.Plugin:
		p.Changes = agentlimit.New(i.labelChanges)
	case *storagespace.Plugin:
		p.CheckSpace = i.checkSpace
	case initializer.WantsQuotaConfiguration:
		p.SetQuotaConfiguration(quota.NewConfiguration(nil, nil))
	case *validatingadmissionpolicy.Plugin:
		p.SetExternalKubeInformerFactory(policyInformers{i.informers})
	case *mutatingadmissionpolicy.Plugin:
		p.SetExternalKubeInformerFactory(policyInformers{i.informers})
	}
}

// policyInformers has no informers for the parameters of policies, so that a policy's plugin creates its own for each of their kinds. The readiness
// of the server would depend on an informer of its own, and never be true if the server may not list the kind, whatever the policy is about.
type policyInformers struct {
	informers.SharedInformerFactory
}

// ForResource implements informers.SharedInformerFactory.
func (policyInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("no shared informer for %s", resource)
}

// SetRegistries passes the registries to the plugins.
func (i *pluginInitializer) SetRegistries(r apiserver.Registries) {
	for _, set := range i.wanting {
		set(r)
	}
}

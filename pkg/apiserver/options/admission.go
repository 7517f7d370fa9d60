// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
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

	"github.com/clusterhub/clusterhub/pkg/admission/cluster/agentrestriction"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/clustersetbinding"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/clustersetdeletion"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/defaultclusterset"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusteraccept"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusterlabel"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/pendingclusters"
	"github.com/clusterhub/clusterhub/pkg/admission/hubfinalizers"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/openmcp/clusterdeletion"
	"github.com/clusterhub/clusterhub/pkg/admission/openmcp/clusterprofile"
	"github.com/clusterhub/clusterhub/pkg/admission/ownerreferences"
	"github.com/clusterhub/clusterhub/pkg/admission/storagespace"
	"github.com/clusterhub/clusterhub/pkg/apiserver"
)

// registerAdmission adds our plugins. The mutating ones run before any permission is checked, whoever they belong to. Of the
// validating ones, which all see the object as it will be stored, those that count what they let through run last.
func registerAdmission(o *genericoptions.AdmissionOptions) {
	for _, register := range []func(*admission.Plugins){
		defaultclusterset.Register, managedclusterlabel.Register, managedclusteraccept.Register,
		clustersetbinding.Register, clustersetdeletion.Register, clusterprofile.Register, clusterdeletion.Register,
		agentrestriction.Register, ownerreferences.Register, hubfinalizers.Register, objectsize.Register, pendingclusters.Register,
		storagespace.Register, resourcequota.Register,
	} {
		register(o.Plugins)
	}
	o.RecommendedPluginOrder = []string{
		lifecycle.PluginName,
		defaultclusterset.PluginName,
		agentrestriction.PluginName,
		mutatingadmissionpolicy.PluginName,
		mutatingwebhook.PluginName,
		// First of those that validate: what there is no room for is not worth asking about.
		storagespace.PluginName,
		objectsize.PluginName,
		managedclusterlabel.PluginName,
		managedclusteraccept.PluginName,
		ownerreferences.PluginName,
		hubfinalizers.PluginName,
		clustersetbinding.PluginName,
		clustersetdeletion.PluginName,
		clusterprofile.PluginName,
		clusterdeletion.PluginName,
		validatingadmissionpolicy.PluginName,
		validatingwebhook.PluginName,
		// These two last, so that nothing that is refused counts.
		pendingclusters.PluginName,
		resourcequota.PluginName,
	}
}

// disableMissingPlugins turns off the plugin for MutatingAdmissionPolicies on a hub whose version does not have them:
// it would wait for them for ever, and refuse every write until then. It waits up to a minute for the hub to answer.
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
		return fmt.Errorf("the hub's kube-apiserver does not answer, check --kubeconfig: %w", last)
	}
	return err
}

// pluginInitializer hands plugins what the generic server's initializer does not have: the registries, once the server that
// has them is there, what quotas are counted by, which for all our kinds is the number of objects, and the informers of
// policies, and whether there is room for writes, where that is known.
type pluginInitializer struct {
	informers informers.SharedInformerFactory
	// mostPending is --max-pending-clusters.
	mostPending int
	room        func() error
	wanting     []func(apiserver.Registries)
}

// Initialize implements admission.PluginInitializer.
func (i *pluginInitializer) Initialize(plugin admission.Interface) {
	if w, ok := plugin.(clustersetdeletion.WantsCounter); ok {
		i.wanting = append(i.wanting, func(r apiserver.Registries) { w.SetCounter(r.SetUsage) })
	}
	if w, ok := plugin.(clusterprofile.WantsProfiles); ok {
		i.wanting = append(i.wanting, func(r apiserver.Registries) { w.SetProfiles(r.ClusterProfiles) })
	}
	if w, ok := plugin.(clusterdeletion.WantsAccessRequests); ok {
		i.wanting = append(i.wanting, func(r apiserver.Registries) { w.SetAccessRequests(r.AccessRequests) })
	}
	if w, ok := plugin.(objectsize.WantsSizer); ok {
		w.SetSizer(apiserver.EncodedSize)
	}
	if w, ok := plugin.(pendingclusters.WantsClusters); ok {
		i.wanting = append(i.wanting, func(r apiserver.Registries) { w.SetClusters(r.ManagedClusters, i.mostPending) })
	}
	if w, ok := plugin.(storagespace.WantsRoom); ok && i.room != nil {
		w.SetRoom(i.room)
	}
	if w, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		w.SetQuotaConfiguration(quota.NewConfiguration(nil, nil))
	}
	switch w := plugin.(type) {
	case *validatingadmissionpolicy.Plugin:
		w.SetExternalKubeInformerFactory(policyInformers{i.informers})
	case *mutatingadmissionpolicy.Plugin:
		w.SetExternalKubeInformerFactory(policyInformers{i.informers})
	}
}

// policyInformers has no informers for the parameters of policies, so that a policy's plugin makes one of its own for
// each kind of them. One of the server's would be waited for by its readiness, for ever where we may not list the kind,
// whatever it is that the policy is about.
type policyInformers struct {
	informers.SharedInformerFactory
}

// ForResource implements informers.SharedInformerFactory.
func (policyInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("no shared informer for %s", resource)
}

// SetRegistries passes them on.
func (i *pluginInitializer) SetRegistries(r apiserver.Registries) {
	for _, set := range i.wanting {
		set(r)
	}
}

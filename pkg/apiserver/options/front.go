// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"

	"github.com/clusterhub/clusterhub/pkg/apiserver/reviews"
	"github.com/clusterhub/clusterhub/pkg/command"
)

// informerResync is the value of the generic options.
const informerResync = 10 * time.Minute

// applyRecommended applies the generic options. Their clients of the front would keep sending a rejected token for up to a minute after its file has
// a valid one. So these clients are created here, from a configuration that reloads the token.
func applyRecommended(o genericoptions.RecommendedOptions, generic *genericapiserver.RecommendedConfig, front *rest.Config) error {
	follow, err := command.FollowedToken(o.Authentication.RemoteKubeConfigFile)
	if err != nil {
		return err
	}
	o.Authentication.WithCustomRoundTripper(follow)
	// The tracing of requests to the front must be known before a client is created. No option that is applied before depends on this.
	if err := o.EgressSelector.ApplyTo(&generic.Config); err != nil {
		return err
	}
	if err := o.Traces.ApplyTo(generic.EgressSelector, &generic.Config); err != nil {
		return err
	}
	generic.ClientConfig = rest.CopyConfig(front)
	generic.ClientConfig.Wrap(tracing.WrapperFor(generic.TracerProvider))
	if o.Etcd != nil {
		// k8s.io/apiserver leaves this to each server. Without it, traces end before etcd.
		o.Etcd.StorageConfig.Transport.TracerProvider = generic.TracerProvider
	}
	client, err := kubernetes.NewForConfig(generic.ClientConfig)
	if err != nil {
		return err
	}
	generic.SharedInformerFactory = informers.NewSharedInformerFactory(client, informerResync)
	o.EgressSelector, o.Traces, o.CoreAPI = nil, nil, nil
	if err := o.ApplyTo(generic); err != nil {
		return err
	}
	if generic.Authentication.Authenticator != nil {
		generic.Authentication.Authenticator = reviews.ReportFailedTokens(generic.Authentication.Authenticator)
	}
	if generic.AdmissionControl != nil {
		generic.AdmissionControl, err = reviews.ReportUnansweredPlugins(generic.AdmissionControl, generic.ClientConfig)
	}
	return err
}

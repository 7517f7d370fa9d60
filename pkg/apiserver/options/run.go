// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/apiserver"
	"github.com/clusterhub/clusterhub/pkg/apiserver/agentrate"
	"github.com/clusterhub/clusterhub/pkg/apiserver/agents"
	"github.com/clusterhub/clusterhub/pkg/apiserver/entries"
	"github.com/clusterhub/clusterhub/pkg/apiserver/reviews"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/etcd"
	generatedopenapi "github.com/clusterhub/clusterhub/pkg/generated/openapi"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/servingcert"
)

// Run serves until the context ends, and then shuts down gracefully. The embedded etcd stops last.
func (o *Options) Run(ctx context.Context) error {
	server, stop, err := o.Assemble(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return server.Generic.PrepareRun().RunWithContext(ctx)
}

// Assemble returns the server that Run runs, and a function that stops its embedded etcd.
func (o *Options) Assemble(ctx context.Context) (_ *apiserver.Server, stop func(), err error) {
	front, err := command.RESTConfig(o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, nil, explain("reading --kubeconfig", err)
	}
	client, err := kubernetes.NewForConfig(front)
	if err != nil {
		return nil, nil, explain("client of the hub's kube-apiserver", err)
	}
	end := func() {}
	defer func() {
		if err != nil {
			end()
		}
	}()
	var store *etcd.Server
	if o.embedded() {
		store, err = etcd.Start(ctx, *o.EmbeddedEtcd)
		if err != nil {
			return nil, nil, fmt.Errorf("hub-apiserver cannot start: %w", err)
		}
		end = store.Stop
		transport := store.Transport()
		target := &o.Recommended.Etcd.StorageConfig.Transport
		target.ServerList, target.CertFile, target.KeyFile, target.TrustedCAFile =
			transport.ServerList, transport.CertFile, transport.KeyFile, transport.TrustedCAFile
	}
	if err := disableMissingPlugins(ctx, client.Discovery(), o.Recommended.Admission); err != nil {
		return nil, nil, explain("discovering the admission policies of the hub's kube-apiserver", err)
	}
	var checkSpace func() error
	if store != nil {
		checkSpace = store.CheckSpace
	}
	config, certificates, err := o.config(ctx, front, client, checkSpace)
	if err != nil {
		return nil, nil, err
	}
	if store != nil {
		config.Connect = store.Connect
		config.Generic.AddReadyzChecks(store.HealthCheck())
		config.Generic.LivezChecks = append(config.Generic.LivezChecks, store.AliveCheck())
	}
	server, err := config.Complete().New()
	if err != nil {
		return nil, nil, explain("assembling the server", err)
	}
	if certificates != nil {
		err := server.Generic.AddPostStartHook("serving-certificate", func(hook genericapiserver.PostStartHookContext) error {
			go certificates.Run(hook)
			return nil
		})
		if err != nil {
			return nil, nil, explain("serving certificate", err)
		}
	}
	return server, end, nil
}

// config returns the server's configuration, and the manager of its own certificate if none is provided.
func (o *Options) config(
	ctx context.Context, front *rest.Config, client kubernetes.Interface, checkSpace func() error,
) (*apiserver.Config, *servingcert.Manager, error) {
	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	namer := openapi.NewDefinitionNamer(apiserver.Scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Clusterhub"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "Clusterhub"
	if err := o.ServerRun.ApplyTo(&generic.Config); err != nil {
		return nil, nil, explain("server options", err)
	}

	var certificates *servingcert.Manager
	if o.ownCertificate() {
		aggregator, err := aggregatorclient.NewForConfig(front)
		if err != nil {
			return nil, nil, explain("client of the hub's APIServices", err)
		}
		certificates, err = servingcert.New(ctx, servingcert.Options{
			Namespace: o.ServiceNamespace, Service: o.ServiceName, Groups: apiserver.Groups(),
			Kubernetes: client, Aggregator: aggregator,
		})
		if err != nil {
			return nil, nil, explain("serving certificate", err)
		}
		o.Recommended.SecureServing.ServerCert.GeneratedCert = certificates
	}
	generic.BuildHandlerChainFunc = o.handlerChain
	config := &apiserver.Config{Generic: generic}
	// This is called when everything but admission is configured. Admission gets the authorizer.
	o.Recommended.ExtraAdmissionInitializers = func(c *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
		ofAgents := agents.New(append(apiserver.Groups(), registration.RegisterGroup), o.AgentLabels)
		if err := authorize(o.Recommended.Authorization, front, &c.Config, ofAgents); err != nil {
			return nil, err
		}
		plugins := &pluginInitializer{
			informers: c.SharedInformerFactory, maxPending: o.MaxPendingClusters, maxPlacements: o.MaxPlacements,
			maxInNamespace: o.MaxInNamespace, maxManifests: o.MaxManifests, labelChanges: o.AgentLabelChanges, checkSpace: checkSpace,
		}
		config.SetRegistries = func(r apiserver.Registries) {
			ofAgents.Clusters = r.ManagedClusters
			plugins.SetRegistries(r)
		}
		return []admission.PluginInitializer{plugins}, nil
	}
	o.Recommended.FeatureGate = generic.FeatureGate
	if err := applyRecommended(*o.Recommended, generic, front); err != nil {
		return nil, nil, explain("options", err)
	}
	if err := holdBackClientCA(ctx, client, &generic.Config); err != nil {
		return nil, nil, explain("client CAs", err)
	}
	return config, certificates, nil
}

// handlerChain adds our filters after authentication, authorization, and priority and fairness. The filter for failed reviews is around all of these,
// because it changes their responses.
func (o *Options) handlerChain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	handler = agentrate.WithLimit(entries.WithLimit(handler, c.Serializer), o.AgentWrites, c.Serializer)
	return reviews.WithFailures(genericapiserver.DefaultBuildHandlerChain(handler, c), c.Serializer)
}

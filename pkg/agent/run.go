// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"math/rand/v2"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Run registers the cluster and keeps the hub informed of it until the context ends.
func (o *Options) Run(ctx context.Context) error {
	spoke, err := o.Spoke.config()
	if err != nil {
		return explain("reading --spoke-kubeconfig", err)
	}
	a, err := o.assemble(spoke)
	if err != nil {
		return explain("assembling the agent", err)
	}
	stopHealth, err := serve(ctx, "health", o.HealthAddress, a.health.handler())
	if err != nil {
		return explain("listening on --health-probe-bind-address", err)
	}
	defer stopHealth()
	stopMetrics, err := serve(ctx, "metrics", o.MetricsAddress, metricsHandler())
	if err != nil {
		return explain("listening on --metrics-bind-address", err)
	}
	defer stopMetrics()
	stopFacts, err := a.facts.(*spokeFacts).start(ctx)
	if err != nil {
		return explain("watching the nodes", err)
	}
	defer stopFacts()
	if err := a.run(ctx); err != nil {
		return explain("the flags do not fit", err)
	}
	return nil
}

// explain makes one clear line of an error at start.
func explain(what string, err error) error {
	return fmt.Errorf("hub-agent cannot start: %s: %w", what, err)
}

// config is how we reach the agent's own cluster.
func (o *SpokeOptions) config() (config *rest.Config, err error) {
	if o.Kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	} else {
		config, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, err
	}
	return rest.AddUserAgent(config, "hub-agent"), nil
}

func (o *Options) assemble(spoke *rest.Config) (*agent, error) {
	watching, err := kubernetes.NewForConfig(spoke)
	if err != nil {
		return nil, err
	}
	// A watch is open for as long as it may be, everything else ends in time.
	limited := rest.CopyConfig(spoke)
	limited.Timeout = spokeTimeout
	client, err := kubernetes.NewForConfig(limited)
	if err != nil {
		return nil, err
	}
	unstructured, err := dynamic.NewForConfig(limited)
	if err != nil {
		return nil, err
	}
	ca, err := o.serverCA()
	if err != nil {
		return nil, err
	}
	a := &agent{
		settings: settings{
			clusterName: o.ClusterName, serverURL: o.ServerURL, serverCA: ca, annotations: o.ClusterAnnotations,
			leaseSeconds: o.LeaseSeconds, namespace: o.Spoke.Namespace,
		},
		spoke:     client,
		store:     &store{client: client, namespace: o.Spoke.Namespace},
		bootstrap: (&bootstrapSource{file: o.BootstrapKubeconfig, client: client, namespace: o.Spoke.Namespace}).read,
		connect:   connect,
		random:    rand.Float64,
		health:    &health{},
		kicked:    make(chan struct{}, 1),
	}
	a.facts = &spokeFacts{client: client, watching: watching, dynamic: unstructured,
		probe: probeLive(client.Discovery().RESTClient()), maxClaims: o.MaxClaims, changed: a.kick}
	a.identity, err = o.identity(a)
	return a, err
}

func (o *Options) identity(a *agent) (identity, error) {
	if o.Auth == authCSR {
		return a.csrIdentity(o.CertSeconds), nil
	}
	roles, err := o.roles()
	if err != nil {
		return nil, err
	}
	return &awsIdentity{store: a.store, roles: roles, command: o.EKSTokenCommand, connect: a.connect,
		tokens: &eksTokens{cluster: roles.Hub.Name, region: roles.Hub.Region, roleARN: roles.HubRoleARN()}}, nil
}

func (a *agent) csrIdentity(expirationSeconds int32) *csrIdentity {
	return &csrIdentity{store: a.store, expirationSeconds: expirationSeconds, random: a.random, report: a.report,
		tell: a.tell, unknownKey: func() bool { return a.newKey }}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
	clusterviewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apiserver/moves"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/addonplacementscore"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclustersetbinding"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/placement"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/placementdecision"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/deploycheck"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/deploymentpattern"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/deploymentpolicy"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/edgenode"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/edgeplacement"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/edgeservice"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/accessrequest"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
	"github.com/clusterhub/clusterhub/pkg/registry/view/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
	visiblecluster "github.com/clusterhub/clusterhub/pkg/registry/view/managedcluster"
	visibleset "github.com/clusterhub/clusterhub/pkg/registry/view/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/view/placementexplanation"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

// Config is the configuration of the server.
type Config struct {
	Generic *genericapiserver.RecommendedConfig
	// Connect creates the clients of etcd. If it is nil, they are dialed.
	Connect backend.Connect
	// SetRegistries passes the registries to admission when they are available.
	SetRegistries func(Registries)
}

// CompletedConfig can only be created by Config.Complete.
type CompletedConfig struct {
	generic genericapiserver.CompletedConfig
	config  *Config
}

// Server is hub-apiserver.
type Server struct {
	Generic *genericapiserver.GenericAPIServer
}

// Complete sets the required fields.
func (c *Config) Complete() CompletedConfig {
	c.Generic.RESTOptionsGetter = restOptions{c.Generic.RESTOptionsGetter, c.Connect}
	if c.Generic.AdmissionControl != nil {
		c.Generic.AdmissionControl = viewedAdmission{c.Generic.AdmissionControl}
	}
	c.Generic.AggregatedDiscoveryGroupManager = groupDiscovery{aggregated.NewResourceManager("apis")}
	if c.Generic.AuditPolicyRuleEvaluator != nil {
		c.Generic.AuditPolicyRuleEvaluator = withoutSecrets{c.Generic.AuditPolicyRuleEvaluator}
	}
	return CompletedConfig{generic: c.Generic.Complete(), config: c}
}

// New creates the server. It does not serve before it is run.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New("hub-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	s, err := c.stores()
	if err != nil {
		return nil, err
	}
	if err := generic.InstallAPIGroups(s.groups()...); err != nil {
		return nil, err
	}
	if err := c.setRegistries(generic, s); err != nil {
		return nil, err
	}
	err = generic.AddPostStartHook("tell-moves", func(hook genericapiserver.PostStartHookContext) error {
		go s.moves.Run(hook)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = generic.AddPostStartHook("follow-rbac-rules", func(hook genericapiserver.PostStartHookContext) error {
		go s.rules.Run(hook)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = generic.AddReadyzChecks(healthz.NamedCheck("clustersetmembers", func(*http.Request) error {
		return s.members.Ready()
	}))
	return &Server{Generic: generic}, err
}

func (c CompletedConfig) stores() (s stores, err error) {
	options := c.generic.RESTOptionsGetter
	s.stored = map[schema.GroupResource]*hubgeneric.Resource{}
	for _, kind := range kinds {
		s.stored[kind.GroupResource()], err = kind.NewStorage(Scheme, options)
		if err != nil {
			return s, err
		}
	}
	// Secrets are read as JSON, and without a rate limit, because users request tokens.
	secretConfig := rest.CopyConfig(c.config.Generic.ClientConfig)
	secretConfig.QPS = -1
	secrets, err := corev1client.NewForConfig(secretConfig)
	if err != nil {
		return s, err
	}
	events, err := corev1client.NewForConfig(c.config.Generic.ClientConfig) // with the default rate limit of clients
	if err != nil {
		return s, err
	}
	s.moves = moves.New(events, s.sets)
	for _, kind := range []hubgeneric.Definition{managedcluster.Kind, managedclusterset.Kind} {
		s.of(kind).OnUpdate(s.moves.Updated)
	}
	s.accessTokens = accessrequest.NewTokenREST(s.of(accessrequest.Kind), s.of(cluster.Kind), secrets)
	frontConfig := rest.CopyConfig(c.config.Generic.ClientConfig)
	frontConfig.ContentType = runtime.ContentTypeProtobuf
	front, err := rbacclient.NewForConfig(frontConfig)
	if err != nil {
		return s, err
	}
	config := filtered.Config{Connect: c.config.Connect, Authorizer: c.generic.Authorization.Authorizer}
	config.Fleet, err = derived.Fleet(options, fleetCodec)
	if err != nil {
		return s, err
	}
	// Agents do not use what is visible by sets, and where each has a role of its own, the roles are created and deleted with their clusters.
	agents := []string{registration.ClusterGroup(""), registration.AWSGroup("")}
	config.Rules, err = visibility.NewRules(config.Fleet, front, agents...)
	if err != nil {
		return s, err
	}
	s.rules = config.Rules
	s.visibleClusters = visiblecluster.New(config, Codecs.LegacyCodec(clusterviewv1.SchemeGroupVersion), visiblecluster.Stored{
		Clusters: s.of(managedcluster.Kind), Sets: s.of(managedclusterset.Kind), Cached: s.of(managedcluster.Kind),
	})
	s.explanations = placementexplanation.New(placementexplanation.Stored{
		Placements: s.of(placement.Kind), Bindings: s.of(managedclustersetbinding.Kind), Sets: s.of(managedclusterset.Kind),
		Decisions: s.of(placementdecision.Kind), Scores: s.of(addonplacementscore.Kind),
	}, &s.visibleClusters.Visible)
	s.deployChecks = deploycheck.New(deploycheck.Stored{
		Policies: s.of(deploymentpolicy.Kind), Patterns: s.of(deploymentpattern.Kind), Services: s.of(edgeservice.Kind), Nodes: s.of(edgenode.Kind),
		Placements: s.of(edgeplacement.Kind), Bindings: s.of(managedclustersetbinding.Kind), Sets: s.of(managedclusterset.Kind),
	}, &s.visibleClusters.Visible)
	s.visibleSets = visibleset.New(config, Codecs.LegacyCodec(clusterviewv1alpha1.SchemeGroupVersion))
	s.members, err = clustersetmember.New(config, Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion))
	return s, err
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apiserver/agents"
	"github.com/clusterhub/clusterhub/pkg/apiserver/reviews"
	"github.com/clusterhub/clusterhub/pkg/command"
)

// authorize sets the server's authorizer. It differs from that of the generic options in two ways: cached decisions are dropped when the RBAC rules
// change, and the number of concurrent reviews is limited for each user, instead of a rate for all users together. Agents are authorized here.
func authorize(
	o *genericoptions.DelegatingAuthorizationOptions, front *rest.Config, config *genericapiserver.Config, ofAgents *agents.Authorizer,
) error {
	front = rest.CopyConfig(front)
	front.ContentType = runtime.ContentTypeProtobuf
	rules, err := rbacclient.NewForConfig(front)
	if err != nil {
		return err
	}
	follower := reviews.NewRules(max(o.AllowCacheTTL, o.DenyCacheTTL))
	config.Authorization.Authorizer, err = authorizerOf(o, follower, ofAgents)
	if err != nil {
		return err
	}
	config.AddReadyzChecks(healthz.NamedCheck("authorization", func(*http.Request) error { return follower.Ready() }))
	return config.AddPostStartHook("authorization", func(hook genericapiserver.PostStartHookContext) error {
		go follower.Run(hook, rules)
		return nil
	})
}

func authorizerOf(
	o *genericoptions.DelegatingAuthorizationOptions, rules *reviews.RuleHistory, ofAgents *agents.Authorizer,
) (authorizer.Authorizer, error) {
	client, err := reviewClient(o)
	if err != nil {
		return nil, err
	}
	asks, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client,
		WebhookRetryBackoff:       o.WebhookRetryBackoff,
		// Its cache is disabled, because it ignores changes.
		AllowCacheTTL: 0, DenyCacheTTL: 0,
	}.New()
	if err != nil {
		return nil, err
	}
	paths, err := path.NewAuthorizer(o.AlwaysAllowPaths)
	if err != nil {
		return nil, err
	}
	return union.New(
		// It is the first, so that nothing else allows an agent what it denies: neither another group of the agent, nor RBAC.
		union.NamedAuthorizer{AuthorizerName: agents.Name, Authorizer: ofAgents.Authorizer()},
		union.NamedAuthorizer{
			AuthorizerName: "kubernetes.io/always-allow-groups",
			Authorizer:     authorizerfactory.NewPrivilegedGroups(o.AlwaysAllowGroups...),
		},
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/always-allow-paths", Authorizer: paths},
		union.NamedAuthorizer{
			AuthorizerName: "kubernetes.io/webhook",
			Authorizer:     reviews.Cached(reviews.LimitPerUser(asks), rules, o.AllowCacheTTL, o.DenyCacheTTL),
		},
	)
}

func reviewClient(o *genericoptions.DelegatingAuthorizationOptions) (authorizationclient.AuthorizationV1Interface, error) {
	config, err := command.RESTConfig(o.RemoteKubeConfigFile)
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.QPS = -1
	config.Timeout = o.ClientTimeout
	return authorizationclient.NewForConfig(config)
}

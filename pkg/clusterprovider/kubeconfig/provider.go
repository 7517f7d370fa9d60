// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig is the cluster provider of existing clusters. Each is admitted by a Secret with a kubeconfig of its admin, and becomes a
// profile; the Cluster with that profile stands for it. No cluster is created or deleted.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/command"
)

const (
	// SecretType is the type of the Secrets that admit clusters. They are in the provider's namespace, have the label clusters.openmcp.cloud/provider
	// with the provider's name, the annotation with the namespaces that may have the cluster, and a kubeconfig under the key of that name.
	SecretType corev1.SecretType = "clusters.clusterhub.dev/kubeconfig"

	// checkInterval is the interval of checks whether a cluster responds, and checkTimeout their timeout.
	checkInterval = 30 * time.Second
	checkTimeout  = 10 * time.Second
)

// Provider is the provider.
type Provider struct {
	hub             client.Client
	name, namespace string
}

var (
	_ clusterprovider.Provider   = &Provider{}
	_ clusterprovider.Withdrawer = &Provider{}
)

// Kind returns the command of the provider.
func Kind() clusterprovider.Kind {
	return clusterprovider.Kind{
		Name: "kubeconfig", Short: "Clusters that exist already, admitted by a Secret with a kubeconfig",
		New: func(_ context.Context, options clusterprovider.Options) (clusterprovider.Provider, error) {
			return New(options)
		},
	}
}

// New returns the provider.
func New(options clusterprovider.Options) (*Provider, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	hub, err := client.New(options.Hub, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &Provider{hub: hub, name: options.ProviderName, namespace: options.Namespace}, nil
}

// Profiles implements clusterprovider.Provider: one for each Secret.
func (p *Provider) Profiles(ctx context.Context) (profiles []clusterprovider.Profile, err error) {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err = p.hub.List(ctx, secrets, client.InNamespace(p.namespace), client.MatchingLabels{v1alpha1.ProviderLabel: p.name},
		client.MatchingFields{"type": string(SecretType)})
	for _, secret := range secrets.Items {
		profiles = append(profiles, clusterprovider.Profile{Config: secret.Name})
	}
	return profiles, err
}

// Ensure implements clusterprovider.Provider: it checks whether the cluster responds.
func (p *Provider) Ensure(
	ctx context.Context, cluster *v1alpha1.Cluster, profile clusterprovider.Profile,
) (state clusterprovider.State, err error) {
	state.RetryAfter = checkInterval
	secret, err := p.secret(ctx, profile.Config)
	if err != nil {
		return state, err
	}
	held, err := p.hold(ctx, cluster, secret)
	if err != nil {
		return state, err
	}
	state.Conditions = []metav1.Condition{held}
	if held.Status != metav1.ConditionTrue {
		state.Info = held.Message
		state.Withdrawn = held.Reason == reasonWithdrawn
		if state.Withdrawn && types.UID(secret.Annotations[HolderAnnotation]) == cluster.UID {
			state.Release = func(ctx context.Context) error { return p.withdraw(ctx, cluster, profile.Config) }
		}
		if held.Reason == reasonLeftovers {
			state.Former, state.RetryAfter = types.UID(secret.Annotations[HolderAnnotation]), 0
			state.Release = func(ctx context.Context) error { return p.assign(ctx, cluster, secret) }
		}
		return state, nil
	}
	config, err := configOf(secret)
	if err != nil {
		return state, err
	}
	state.Endpoints.Set(v1alpha1.APISERVER_ENDPOINT_EXTERNAL, config.Host)
	state.Version, err = serverVersion(ctx, config)
	if err != nil {
		state.Info, state.RetryAfter = fmt.Sprintf("the check of %s failed: %v", config.Host, err), checkInterval/10
		return state, nil
	}
	if want := cluster.Spec.Kubernetes.Version; want != "" && "v"+want != state.Version {
		state.Info = fmt.Sprintf("the cluster runs Kubernetes %s, expected %s: this provider does not change the version", state.Version, want)
		return state, nil
	}
	state.Ready = true
	state.Info = config.Host
	return state, nil
}

// serverVersion returns the version of a cluster that accepts us as its admin.
func serverVersion(ctx context.Context, config *rest.Config) (version string, err error) {
	config = rest.CopyConfig(config)
	config.Timeout = checkTimeout
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	info, err := c.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	everything := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"},
	}}
	review, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, everything, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if !review.Status.Allowed {
		return "", errors.New("the user of the kubeconfig is not a cluster admin: it must be allowed all verbs on all resources")
	}
	return info.GitVersion, nil
}

// Remove implements clusterprovider.Provider: the cluster is not changed, and others may get it.
func (p *Provider) Remove(ctx context.Context, cluster *v1alpha1.Cluster, profile clusterprovider.Profile) (bool, error) {
	err := p.release(ctx, cluster, profile.Config)
	return err == nil, err
}

// Connect implements clusterprovider.Provider.
func (p *Provider) Connect(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error) {
	profile := &v1alpha1.ClusterProfile{}
	if err := p.hub.Get(ctx, client.ObjectKey{Name: cluster.Spec.Profile}, profile); err != nil {
		return nil, err
	}
	secret, err := p.secret(ctx, profile.Spec.ProviderConfigRef.Name)
	if err != nil {
		return nil, err
	}
	return configOf(secret)
}

// secret returns the Secret that admits a cluster.
func (p *Provider) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := p.hub.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("the configuration %q: %w", name, err)
	}
	if secret.Type != SecretType || secret.Labels[v1alpha1.ProviderLabel] != p.name {
		return nil, fmt.Errorf("the configuration %q: the Secret must have the type %s and the label %s=%s",
			name, SecretType, v1alpha1.ProviderLabel, p.name)
	}
	return secret, nil
}

// configOf returns the client configuration for the cluster of a Secret.
func configOf(secret *corev1.Secret) (*rest.Config, error) {
	config, err := parse(secret.Data[v1alpha1.SecretKeyKubeconfig])
	if err != nil {
		return nil, fmt.Errorf("the configuration %q: key %s of the Secret: %w", secret.Name, v1alpha1.SecretKeyKubeconfig, err)
	}
	return config, nil
}

// parse reads a kubeconfig. Its content comes from the hub: it must not run programs here, or read files.
func parse(data []byte) (*rest.Config, error) {
	if len(data) == 0 {
		return nil, errors.New("it is missing or empty")
	}
	loaded, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("it is not a valid kubeconfig") // the error would quote it
	}
	if err := selfContained(loaded); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

func selfContained(config *api.Config) error {
	for name, user := range config.AuthInfos {
		switch {
		case user.Exec != nil || user.AuthProvider != nil:
			return fmt.Errorf("the user %q uses an exec plugin or an auth provider: embed a token, or a client certificate and its key", name)
		case user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "":
			return fmt.Errorf("the user %q refers to files: embed them, for example with kubectl config view --flatten", name)
		}
	}
	for name, cluster := range config.Clusters {
		// An admin's credentials are sent there.
		if cluster.InsecureSkipTLSVerify || !strings.HasPrefix(cluster.Server, "https://") {
			return fmt.Errorf("the cluster %q cannot be verified: use an https URL, without insecure-skip-tls-verify", name)
		}
		if err := command.CheckProxyURL(cluster.ProxyURL); err != nil {
			return fmt.Errorf("the cluster %q has an invalid proxy-url: it %w", name, err)
		}
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf("the cluster %q refers to a file: embed it, for example with kubectl config view --flatten", name)
		}
	}
	return nil
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// profilesInterval is the interval between calls for the profiles of a provider.
const profilesInterval = 5 * time.Second

// profiles publishes what a provider offers.
type profiles struct {
	hub.Identity
	provider clusterprovider.Provider
	client   client.Client
	events   events.EventRecorder
	// live reads what must not be stale.
	live client.Reader
}

// Start implements manager.Runnable.
func (p *profiles) Start(ctx context.Context) error {
	logger := ctrl.Log.WithName("profiles")
	ctx = ctrl.LoggerInto(ctx, logger)
	ticker := time.NewTicker(profilesInterval)
	defer ticker.Stop()
	for {
		if err := p.sync(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "Publishing the profiles failed and will be retried")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// sync creates, updates and deletes profiles until they match those that the provider offers. It changes only its own.
func (p *profiles) sync(ctx context.Context) error {
	offered, err := p.provider.Profiles(ctx)
	if err != nil {
		return fmt.Errorf("listing the profiles that the provider offers: %w", err)
	}
	existing := &v1alpha1.ClusterProfileList{}
	if err := p.client.List(ctx, existing); err != nil {
		return err
	}
	have := map[string]*v1alpha1.ClusterProfile{}
	for i := range existing.Items {
		have[existing.Items[i].Name] = &existing.Items[i]
	}
	var errs []error
	for _, profile := range offered {
		name := p.ProfileName(profile.Config)
		errs = append(errs, p.publish(ctx, name, profile, have[name]))
		delete(have, name)
	}
	for _, profile := range have {
		if p.own(profile) {
			errs = append(errs, p.withdraw(ctx, profile))
		}
	}
	return errors.Join(errs...)
}

// own reports whether this provider created a profile. One that only refers to the provider is not its own.
func (p *profiles) own(profile *v1alpha1.ClusterProfile) bool {
	for label, value := range p.OwnLabels() {
		if profile.Labels[label] != value {
			return false
		}
	}
	return profile.Spec.ProviderRef.Name == p.Name && profile.Name == p.ProfileName(profile.Spec.ProviderConfigRef.Name)
}

func (p *profiles) publish(ctx context.Context, name string, offered clusterprovider.Profile, have *v1alpha1.ClusterProfile) error {
	// The name of a profile becomes the value of a label.
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > validation.LabelValueMaxLength {
		return fmt.Errorf("configuration %q: the profile name %q must be a DNS subdomain of at most %d characters, got %d: %v",
			offered.Config, name, validation.LabelValueMaxLength, len(name), problems)
	}
	want := v1alpha1.ClusterProfileSpec{
		ProviderRef:       v1alpha1.LocalObjectReference{Name: p.Name},
		ProviderConfigRef: v1alpha1.LocalObjectReference{Name: offered.Config},
		SupportedVersions: append([]v1alpha1.SupportedK8sVersion{}, offered.Versions...),
	}
	if have == nil {
		profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: p.OwnLabels()}, Spec: want}
		err := p.client.Create(ctx, profile)
		if err == nil {
			ctrl.LoggerFrom(ctx).Info("Published a profile", "profile", name)
			conditionevents.Note(p.events, profile, corev1.EventTypeNormal, "Published", "Publish",
				fmt.Sprintf("the provider %q offers its configuration %q", p.Name, offered.Config))
		}
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache does not have it yet
		}
		return err
	}
	if !p.own(have) {
		return fmt.Errorf("the ClusterProfile %q exists and was not created by this provider: "+
			"delete it, or rename the configuration", name)
	}
	return hub.Patch(ctx, p.client, have, func() { have.Spec = want })
}

// withdraw deletes the profile of a deleted configuration, once no Cluster has it: a Cluster without its profile would have no provider.
func (p *profiles) withdraw(ctx context.Context, profile *v1alpha1.ClusterProfile) error {
	users := &v1alpha1.ClusterList{}
	if err := p.live.List(ctx, users, client.MatchingFields{hub.ByProfile: profile.Name}, client.Limit(1)); err != nil {
		return err
	}
	if len(users.Items) > 0 {
		ctrl.LoggerFrom(ctx).V(4).Info("Not deleting the profile of a deleted configuration: Clusters use it", "profile", profile.Name)
		return nil
	}
	uid := profile.UID
	err := p.client.Delete(ctx, profile, client.Preconditions{UID: &uid})
	if err == nil {
		ctrl.LoggerFrom(ctx).Info("Deleted a profile", "profile", profile.Name)
		conditionevents.Note(p.events, profile, corev1.EventTypeNormal, "Withdrawn", "Withdraw",
			fmt.Sprintf("the provider %q no longer offers its configuration, and no Cluster uses the profile", p.Name))
	}
	return client.IgnoreNotFound(err)
}

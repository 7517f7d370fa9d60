// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/agent/work/withdraw"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// AnnotationWorks specifies what happens to the objects of works when their Klusterlet is deleted: FateKeep, the default, orphans the objects;
// FateDelete deletes them. FateKeep is the default because a deletion may cause an outage.
const (
	AnnotationWorks = "operator.clusterhub.dev/works-on-deletion"
	FateKeep        = "Keep"
	FateDelete      = "Delete"
)

// withdrawal is the lifetime of the token with the rights of an agent.
const withdrawal = 10 * time.Minute

func fateOf(k *operatorv1.Klusterlet) (withdraw.Fate, error) {
	switch fate := k.Annotations[AnnotationWorks]; fate {
	case "", FateKeep:
		return withdraw.Keep, nil
	case FateDelete:
		return withdraw.Delete, nil
	default:
		return "", fmt.Errorf("the annotation %s must be %s or %s, not %q", AnnotationWorks, FateKeep, FateDelete, fate)
	}
}

// withdrawWorks ends the works of the agent, as far as possible now. No agent runs at that time. On a managed cluster
// elsewhere it acts as the cluster's admin. On the cluster of the Klusterlet it acts as the agent, which has rights to the objects of its works,
// unlike this program.
func (r *Reconciler) withdrawWorks(ctx context.Context, k *operatorv1.Klusterlet, at *cluster, via *outside) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(records.GroupVersion().WithKind(records.Kind + "List"))
	if err := at.client.List(ctx, list, client.Limit(1)); err != nil || len(list.Items) == 0 {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return at.explainedOrNil(err)
	}
	fate, err := fateOf(k)
	if err != nil {
		return waitsFor("the annotation: %v", err)
	}
	// The settings of the registration are irrelevant here, and may have become invalid.
	k = k.DeepCopy()
	k.Spec.RegistrationConfiguration, k.Spec.ClusterName = nil, ""
	p, err := planOf(k, r.image)
	if err != nil {
		return err
	}
	var config *rest.Config
	if via != nil {
		config = via.Config()
	} else {
		config, err = r.asAgent(ctx, k, p)
		if err != nil {
			return err
		}
	}
	cluster, err := withdraw.New(config)
	if err != nil {
		return at.explainedOrNil(err)
	}
	for {
		left := ""
		own, err := cluster.Some(ctx, p.AgentID())
		if err != nil || len(own) == 0 {
			return at.explainedOrNil(err)
		}
		for i := range own {
			waits, err := cluster.End(ctx, own[i], fate)
			if err != nil {
				return at.explainedOrNil(err)
			}
			if waits != "" {
				left = waits
			}
		}
		if left != "" && via != nil {
			left = via.Explain(errors.New(left)) // the cluster wrote parts of it
		}
		if left != "" {
			return waitsFor("%s", left)
		}
	}
}

func (c *cluster) explainedOrNil(err error) error {
	if err == nil {
		return nil
	}
	return c.explained(err)
}

// asAgent returns a configuration for the own cluster with the rights of the part that applies works. It recreates those that do not exist any more.
func (r *Reconciler) asAgent(ctx context.Context, k *operatorv1.Klusterlet, p *plan) (*rest.Config, error) {
	here := r.here(k)
	here.pods = "" // no pods exist any more, and another agent may have the namespace
	if err := here.apply(ctx, p.management); err != nil {
		return nil, err
	}
	parts := p.Parts()
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = p.Namespace, parts[len(parts)-1].ServiceAccount
	request := &authenticationv1.TokenRequest{}
	request.Spec.ExpirationSeconds = new(int64(withdrawal.Seconds()))
	if err := r.client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %s/%s to delete works: %w", account.Namespace, account.Name, err)
	}
	if request.Status.Token == "" {
		return nil, errors.New("the API server returned no token")
	}
	config := rest.AnonymousClientConfig(r.config)
	config.BearerToken = request.Status.Token
	return config, nil
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// The times for which answers are valid. A revoked permission stops counting after the first time at the latest; a new one is noticed after the
	// second.
	allowedFor, deniedFor = 30 * time.Second, 2 * time.Minute
	// maxAnswers is the maximum number of cached answers.
	maxAnswers = 10_000
)

// review is the question whether an author may get an EdgeService.
type review struct{ author, namespace, name string }

type cachedDecision struct {
	allowed bool
	at      time.Time
}

// reviews are the cached answers of the front.
type reviews struct {
	mu      sync.Mutex
	answers map[review]cachedDecision
}

// checkUse returns why the author of a policy or pattern may not use one of these services, and reports that in the status.
func (r *Reconciler) checkUse(ctx context.Context, key engine.Key, services []engine.Placed) (refusal string, err error) {
	for _, s := range services {
		refusal, err = r.checkUseOne(ctx, key, s)
		if refusal != "" || err != nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusals[key] != refusal {
		r.queue.AddAfter(statusRequest(key), gather)
	}
	r.refusals[key] = refusal
	if refusal == "" {
		delete(r.refusals, key)
	}
	return refusal, nil
}

func (r *Reconciler) checkUseOne(ctx context.Context, key engine.Key, s engine.Placed) (refusal string, err error) {
	if s.Org == key.Namespace {
		return "", nil
	}
	service := &edgev1alpha1.EdgeService{}
	name := types.NamespacedName{Namespace: s.Org, Name: edge.ServiceName(s.Name, s.Version, s.Arch)}
	if err := r.client.Get(ctx, name, service); kit.IgnoreGone(err) != nil {
		return "", err
	} else if err == nil && service.Spec.Public {
		return "", nil
	}
	// A policy that does not exist is refused with the same message.
	obj := deploymentOf(key)
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, obj); err != nil {
		return "", err
	}
	recorded := obj.GetAnnotations()[edgev1alpha1.AuthorAnnotation]
	who := author.Author{}
	if json.Unmarshal([]byte(recorded), &who) != nil || who.Username == "" {
		return fmt.Sprintf("the EdgeService %s of namespace %s is not public, and the author of the spec is not known: write the spec again, "+
			"such as with kubectl apply after a change", name.Name, name.Namespace), nil
	}
	allowed, err := r.review(ctx, review{recorded, name.Namespace, name.Name}, &who)
	if err != nil || allowed {
		return "", err
	}
	return fmt.Sprintf("the EdgeService %s of namespace %s does not exist, or it is not public and user %q, the author of the spec, may not get it",
		name.Name, name.Namespace, who.Username), nil
}

// deploymentOf returns an empty object of the kind.
func deploymentOf(key engine.Key) client.Object {
	if key.Pattern {
		return &edgev1alpha1.DeploymentPattern{}
	}
	return &edgev1alpha1.DeploymentPolicy{}
}

func (r *Reconciler) review(ctx context.Context, q review, who *author.Author) (bool, error) {
	now := r.clock.Now()
	r.reviews.mu.Lock()
	known, there := r.reviews.answers[q]
	r.reviews.mu.Unlock()
	if age := now.Sub(known.at); there && (known.allowed && age < allowedFor || !known.allowed && age < deniedFor) {
		return known.allowed, nil
	}
	// Permission (name: the EdgeService; namespace: of the service): a service in a different namespace is deployed for
	// the author of a DeploymentPolicy or DeploymentPattern.
	allowed, err := kit.Allowed(ctx, r.client, who, authorizationv1.ResourceAttributes{
		Verb: "get", Group: edgev1alpha1.GroupName, Resource: "edgeservices", Namespace: q.namespace, Name: q.name,
	})
	if err != nil {
		return false, err
	}
	r.reviews.mu.Lock()
	defer r.reviews.mu.Unlock()
	if len(r.reviews.answers) >= maxAnswers {
		maps.DeleteFunc(r.reviews.answers, func(_ review, a cachedDecision) bool { return now.Sub(a.at) >= allowedFor })
		if len(r.reviews.answers) >= maxAnswers {
			clear(r.reviews.answers)
		}
	}
	r.reviews.answers[q] = cachedDecision{allowed, now}
	return allowed, nil
}

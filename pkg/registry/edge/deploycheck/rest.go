// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploycheck evaluates DeployChecks: what a policy or pattern would deploy where. The rules are those of the controllers. Nothing is stored.
package deploycheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/lru"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
	validationv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/validation/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge/check"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/registry/pace"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

const (
	// longest is the timeout of a request.
	longest = 10 * time.Second
	// maxNodes is the maximum number of cached decoded nodes: decoding one costs more than the decision about it.
	maxNodes = 20_000
)

// Stored has the registries of the stored objects.
type Stored struct {
	Policies, Patterns                          rest.Getter
	Services, Nodes, Placements, Bindings, Sets rest.Lister
}

// REST evaluates checks.
type REST struct {
	rest.TableConvertor
	stored Stored
	// visible has the clusters, and their visibility for users.
	visible   *visibility.Reader
	pace      *pace.Pace
	nodes     *lru.Cache
	languages validation.Languages
}

var (
	_ rest.Storage              = &REST{}
	_ rest.Creater              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// New returns the registry. The reader reads the managedclusters of clusterview.
func New(stored Stored, visible *visibility.Reader) *REST {
	return &REST{
		TableConvertor: rest.NewDefaultTableConvertor(edge.Resource("deploychecks")),
		stored:         stored, visible: visible, pace: pace.New("deploy checks"), nodes: lru.New(maxNodes), languages: model.Languages(),
	}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &edge.DeployCheck{} }

// Destroy implements rest.Storage. The registries belong to others.
func (r *REST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return "deploycheck" }

// Create implements rest.Creater.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	asked, ok := obj.(*edge.DeployCheck)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T is not a DeployCheck", obj))
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(request.NamespaceValue(ctx), asked); err != nil {
		return nil, err
	}
	asked.ManagedFields, asked.Status = nil, edge.DeployCheckStatus{}
	versioned := &v1alpha1.DeployCheck{}
	if err := v1alpha1.Convert_edge_DeployCheck_To_v1alpha1_DeployCheck(asked, versioned, nil); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	errs := validationv1alpha1.Validate_DeployCheck(ctx, operation.Operation{Type: operation.Create}, nil, versioned, nil)
	if len(errs) == 0 {
		errs = validation.ValidateDeployCheck(asked, r.languages)
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("DeployCheck").GroupKind(), asked.Name, bounds.First(errs))
	}
	if createValidation != nil {
		if err := createValidation(ctx, asked.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	// A view that starts may take some time, which must not count for a namespace.
	if err := r.visible.Objects.Wait(ctx); err != nil {
		return nil, err
	}
	end, err := r.pace.Begin(ctx, asked.Namespace)
	if err != nil {
		return nil, err
	}
	defer end()
	bounded, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	w := &world{REST: r, ctx: bounded, who: who, asked: versioned}
	question, err := w.question()
	if err != nil {
		if ctx.Err() == nil && bounded.Err() != nil {
			return nil, apierrors.NewTimeoutError(fmt.Sprintf("the check takes longer than %s: select fewer nodes with nodeNames", longest), 0)
		}
		return nil, err
	}
	status, err := check.Answer(question)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return asked, v1alpha1.Convert_v1alpha1_DeployCheckStatus_To_edge_DeployCheckStatus(status, &asked.Status, nil)
}

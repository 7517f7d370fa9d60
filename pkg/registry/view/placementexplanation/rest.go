// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placementexplanation is the subresource explain of placements: why a placement chooses its clusters. The scheduler's own code computes it
// from the stored objects. It has the clusters that the reader sees, and nothing that depends on the others except the placement's result.
package placementexplanation

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
	"github.com/clusterhub/clusterhub/pkg/registry/pace"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

const (
	defaultLimit = 500
	maxLimit     = 10_000
	// longest is the timeout of an explanation.
	longest = 10 * time.Second
)

// Stored has the registries of the stored objects.
type Stored struct {
	Placements                        rest.Getter
	Bindings, Sets, Decisions, Scores rest.Lister
}

// REST explains placements.
type REST struct {
	rest.TableConvertor
	stored Stored
	// visible has the clusters, and their visibility for users.
	visible *visibility.Reader
	pace    *pace.Pace
	now     func() time.Time
}

var (
	_ rest.Storage           = &REST{}
	_ rest.GetterWithOptions = &REST{}
)

// New returns the registry. The reader reads the managedclusters of clusterview.
func New(stored Stored, visible *visibility.Reader) *REST {
	return &REST{
		TableConvertor: rest.NewDefaultTableConvertor(cluster.Resource("placements")),
		stored:         stored, visible: visible, pace: pace.New("explanations of placements"), now: time.Now,
	}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &cluster.PlacementExplanation{} }

// Destroy implements rest.Storage. The registries belong to others.
func (r *REST) Destroy() {}

// NewGetOptions implements rest.GetterWithOptions.
func (r *REST) NewGetOptions() (options runtime.Object, hasPath bool, path string) {
	return &cluster.PlacementExplainOptions{}, false, ""
}

// Get implements rest.GetterWithOptions.
func (r *REST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	asked, ok := options.(*cluster.PlacementExplainOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the options are a %T", options))
	}
	if err := check(asked); err != nil {
		return nil, err
	}
	found, err := r.stored.Placements.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	p := &v1beta1.Placement{}
	if err := v1beta1.Convert_cluster_Placement_To_v1beta1_Placement(found.(*cluster.Placement), p, nil); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if asked.Cluster != "" {
		// A user who does not see the cluster gets the error of the view, which does not reveal whether the cluster exists.
		if _, err := r.visible.Get(ctx, who, asked.Cluster, &metav1.GetOptions{}); err != nil {
			return nil, err
		}
	}
	// A view that starts may take some time, which must not count for a namespace.
	if err := r.visible.Objects.Wait(ctx); err != nil {
		return nil, err
	}
	end, err := r.pace.Begin(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer end()
	bounded, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	program := spec.Compile(&p.Spec)
	state, seen, err := r.state(bounded, who, program, p)
	if err == nil {
		explained := run.Explain(bounded, program, state)
		if err = bounded.Err(); err == nil {
			return show(p, explained, seen, asked), nil
		}
	}
	if ctx.Err() == nil && bounded.Err() != nil {
		return nil, apierrors.NewTimeoutError(fmt.Sprintf("explaining the placement takes longer than %s: use fewer loops in its CEL expressions, "+
			"or select clusters by labels before", longest), 0)
	}
	return nil, err
}

func check(asked *cluster.PlacementExplainOptions) error {
	switch {
	case asked.Limit < 0 || asked.Limit > maxLimit:
		return apierrors.NewBadRequest(fmt.Sprintf("limit: expected 1 to %d, got %d", maxLimit, asked.Limit))
	case asked.Cluster != "" && (asked.Limit != 0 || asked.Continue != ""):
		return apierrors.NewBadRequest("cluster: expected without limit and continue, which are for all clusters")
	}
	if asked.Limit == 0 {
		asked.Limit = defaultLimit
	}
	return nil
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revision ensures that a revision of a ManifestWorkReplicaSet has a template of that set: a user who rolls a set back to it writes its
// template with their own permissions.
package revision

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ReplicaSetRevision"

// Plugin rejects a new revision whose template is not the current one of its set, or whose set is not rolled out according to its status, whatever
// the permissions of the user. The registry ensures that stored revisions are immutable.
type Plugin struct {
	*admission.Handler
	// ReplicaSets gets the replica sets of the hub. If it is nil, no revision is admitted.
	ReplicaSets rest.Getter
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs the replica sets.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create)} }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	r, _, err := permission.Objects[work.ManifestWorkReplicaSetRevision](a, work.Resource("manifestworkreplicasetrevisions"))
	if r == nil {
		return err
	}
	if want := work.RevisionName(r.Spec.ReplicaSet, r.Spec.ReplicaSetUID, r.Spec.Revision); a.GetName() != want {
		return admission.NewForbidden(a, fmt.Errorf("the name must be %s, so that each generation of a set has at most one", want))
	}
	switch problem, err := p.problem(ctx, a.GetNamespace(), &r.Spec); {
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("%s cannot read the ManifestWorkReplicaSet %q: %w", PluginName, r.Spec.ReplicaSet, err))
	case problem != "":
		return admission.NewForbidden(a, fmt.Errorf("a revision must have the current template of a ManifestWorkReplicaSet that is rolled out: %s", problem))
	}
	return nil
}

// problem returns why the revision is not one of the set. It reads from the store: a cache may have a previous set.
func (p *Plugin) problem(ctx context.Context, namespace string, spec *work.ManifestWorkReplicaSetRevisionSpec) (string, error) {
	if p.ReplicaSets == nil {
		return "", errors.New("the server is still starting: try again in a few seconds")
	}
	found, err := p.ReplicaSets.Get(request.WithNamespace(ctx, namespace), spec.ReplicaSet, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("no ManifestWorkReplicaSet %q exists in the namespace", spec.ReplicaSet), nil
	}
	if err != nil {
		return "", err
	}
	set, ok := found.(*work.ManifestWorkReplicaSet)
	if !ok {
		return "", fmt.Errorf("it is a %T", found)
	}
	out := meta.FindStatusCondition(set.Status.Conditions, work.ManifestWorkReplicaSetConditionPlacementRolledOut)
	switch {
	case set.UID != spec.ReplicaSetUID:
		return "the set of this name has another UID", nil
	case set.DeletionTimestamp != nil:
		return "the set is being deleted", nil
	case set.Generation != spec.Revision:
		return fmt.Sprintf("the set has the generation %d, not %d", set.Generation, spec.Revision), nil
	case !equality.Semantic.DeepEqual(set.Spec.ManifestWorkTemplate, spec.ManifestWorkTemplate):
		return "the set has another manifestWorkTemplate", nil
	case out == nil || out.Status != metav1.ConditionTrue || out.ObservedGeneration != set.Generation:
		return fmt.Sprintf("its condition %s is not True for this generation", work.ManifestWorkReplicaSetConditionPlacementRolledOut), nil
	}
	return "", nil
}

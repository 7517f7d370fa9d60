// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// PurgeFlag is the name of the flag that deletes hub-operator, too.
const PurgeFlag = "purge-operator"

// AddPurgeFlag adds the flag.
func AddPurgeFlag(fs *pflag.FlagSet, purge *bool) {
	fs.BoolVar(purge, PurgeFlag, false, "Also remove hub-operator from the management cluster, if kubectl hub installed it and nothing needs it any more.")
}

// DeleteAndWait deletes an object that hub-operator reconciles, and waits until it is gone. state returns the part of its status that says why it
// still exists.
func (m *Client) DeleteAndWait(ctx context.Context, o client.Object, what string, state func() string) error {
	uid := o.GetUID()
	if err := m.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the %s: %w", what, m.Explain(err))
	}
	return m.Await(ctx, "the "+what+" to be gone", func(ctx context.Context) (bool, string, error) {
		err := m.Get(ctx, client.ObjectKeyFromObject(o), o)
		switch {
		case apierrors.IsNotFound(err), err == nil && o.GetUID() != uid:
			return true, "", nil
		case err != nil:
			return false, "", m.Explain(err)
		}
		why, err := m.OperatorState(ctx)
		return false, cmp.Or(why, state()), err
	})
}

// DeletionState returns what an object that is being deleted waits for.
func DeletionState(o client.Object, conditions []metav1.Condition) string {
	var all []string
	if since, err := time.Parse(time.RFC3339, o.GetAnnotations()[operatorv1.AnnotationEvictionTimestamp]); err == nil {
		all = append(all, "its cluster has been unreachable since "+since.Format(time.RFC3339))
	}
	for _, conditionType := range []string{operatorv1.ConditionReadyToApply, operatorv1.ConditionKlusterletApplied, operatorv1.ConditionKlusterletAvailable} {
		c := meta.FindStatusCondition(conditions, conditionType)
		if c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == o.GetGeneration() {
			all = append(all, ConditionMessage(*c))
			break
		}
	}
	if finalizers := o.GetFinalizers(); len(finalizers) > 0 {
		all = append(all, "its finalizers are "+command.Printable(strings.Join(finalizers, ", ")))
	}
	return strings.Join(all, "; ")
}

// PurgeOperator deletes hub-operator if requested, unless something needs it.
func (m *Client) PurgeOperator(ctx context.Context, wanted bool) (bool, error) {
	if !wanted {
		return false, nil
	}
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		return false, err
	}
	for _, list := range []client.ObjectList{&operatorv1.KlusterletList{}, &operatorv1.ClusterManagerList{}} {
		err := m.List(ctx, list, client.Limit(1))
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return false, m.Explain(err)
		}
		if meta.LenList(list) > 0 {
			m.Warn("hub-operator stays on the management cluster: Klusterlets or ClusterManagers still need it")
			return false, nil
		}
	}
	removed := false
	slices.Reverse(objects)
	for _, o := range objects {
		have, err := m.Objects.Get(ctx, o)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return removed, m.Explain(err)
		}
		if deployment := o.GetKind() == "Deployment"; deployment && have != nil && !kit.Owner.Owns(have) {
			return false, errors.New("hub-operator stays on the management cluster: kubectl hub did not install it, so remove it the way it was installed")
		}
		gone, err := m.Remove(ctx, o)
		if err != nil {
			return removed, err
		}
		removed = removed || gone
	}
	return removed, nil
}

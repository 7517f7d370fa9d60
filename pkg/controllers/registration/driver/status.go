// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// maxMessage bounds what of an error is shown: an event takes 1024 characters.
const maxMessage = 1000

// PatchConditions changes conditions of a cluster. A merge patch replaces the list, so it says which version of which
// cluster it is made for: conditions that others write meanwhile are not lost, and the patch is refused with a conflict.
func PatchConditions(ctx context.Context, c client.Client, cluster *clusterv1.ManagedCluster,
	change func(conditions *[]metav1.Condition)) (changed bool, err error) {
	conditions := cluster.DeepCopy().Status.Conditions
	change(&conditions)
	if equality.Semantic.DeepEqual(conditions, cluster.Status.Conditions) {
		return false, nil
	}
	patch := map[string]any{
		"metadata": map[string]any{"uid": cluster.UID, "resourceVersion": cluster.ResourceVersion},
		"status":   map[string]any{"conditions": conditions},
	}
	if cluster.UID == "" {
		delete(patch["metadata"].(map[string]any), "uid")
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return false, err
	}
	return true, c.Status().Patch(ctx, cluster.DeepCopy(), client.RawPatch(types.MergePatchType, data))
}

// Message is an error's text, as long as conditions and events may be.
func Message(err error) string {
	message := err.Error()
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + " …"
	}
	return message
}

// IsGone says that there is no object of the name, and not that the API is not served: then nobody knows.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// IsOutdated says that an object has changed or gone since it was read. That comes as an event, and with it the next try.
func IsOutdated(err error) bool {
	return apierrors.IsConflict(err) || IsGone(err)
}

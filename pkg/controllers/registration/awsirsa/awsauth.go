// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	awsAuthNamespace = metav1.NamespaceSystem
	awsAuthName      = "aws-auth"
	mapRoles         = "mapRoles"

	// editAttempts is how often an edit is tried while others edit the same ConfigMap.
	editAttempts = 5
)

// ensureMapping lets the role in by aws-auth.
func (d *Driver) ensureMapping(ctx context.Context, g grant) error {
	return d.editAWSAuth(ctx, func(document string) (string, error) {
		return setMapping(document, g.HubRoleARN(), g.cluster)
	})
}

// removeMapping keeps a role out. With the user name of nobody, an entry is ours if the role is.
func (d *Driver) removeMapping(ctx context.Context, g grant, mine bool) error {
	return d.editAWSAuth(ctx, func(document string) (string, error) {
		return dropMapping(document, g.HubRoleARN(), g.cluster, mine)
	})
}

// editAWSAuth writes what has changed, and nothing else. The document is "" where there is none.
func (d *Driver) editAWSAuth(ctx context.Context, edit func(document string) (string, error)) error {
	d.awsAuth.Lock()
	defer d.awsAuth.Unlock()
	configMaps := d.kube.CoreV1().ConfigMaps(awsAuthNamespace)
	var err error
	for range editAttempts {
		var found *corev1.ConfigMap
		found, err = configMaps.Get(ctx, awsAuthName, metav1.GetOptions{})
		exists := err == nil
		if err != nil && !apierrors.IsNotFound(err) {
			return kubeError(err)
		}
		if !exists {
			found = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: awsAuthNamespace, Name: awsAuthName}}
		}
		var document string
		document, err = edit(found.Data[mapRoles])
		if err != nil {
			return terminal(kubeError(err))
		}
		if document == found.Data[mapRoles] {
			return nil
		}
		if found.Data == nil {
			found.Data = map[string]string{}
		}
		found.Data[mapRoles] = document
		if exists {
			_, err = configMaps.Update(ctx, found, metav1.UpdateOptions{})
		} else {
			_, err = configMaps.Create(ctx, found, metav1.CreateOptions{})
		}
		// Somebody else was faster: to change it, to make it, or to delete it.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return kubeError(err)
	}
	return nil
}

func kubeError(err error) error {
	wrapped := fmt.Errorf("the ConfigMap %s/%s: %w", awsAuthNamespace, awsAuthName, err)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return terminal(wrapped)
	}
	return wrapped
}

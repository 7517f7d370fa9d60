// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
)

const (
	awsAuthNamespace = metav1.NamespaceSystem
	awsAuthName      = "aws-auth"
	mapRoles         = "mapRoles"

	// editAttempts is the number of attempts of an edit while others edit the same ConfigMap.
	editAttempts = 5
	// gatherTime is the time for which the first edit waits for others to be written with it.
	gatherTime = 50 * time.Millisecond
)

// errNoAWSAuth names the command that creates the ConfigMap: RBAC cannot limit the right to create to one name, so the hub does not have it.
var errNoAWSAuth = driver.Terminal(fmt.Errorf("the ConfigMap %[1]s/%[2]s does not exist, and the hub may not create it: "+
	"kubectl create configmap %[2]s --namespace %[1]s", awsAuthNamespace, awsAuthName))

// awsAuth writes the edits of many clusters to the ConfigMap that they share: one update has all edits that came while the previous one was in
// progress.
type awsAuth struct {
	kube kubernetes.Interface

	mu      sync.Mutex
	waiting []*awsAuthEdit
	writing bool
}

type awsAuthEdit struct {
	change func(*mapRolesDocument) error
	// missing is the result if the ConfigMap does not exist.
	missing error
	result  chan error
}

// ensure adds the role to aws-auth.
func (a *awsAuth) ensure(ctx context.Context, g grant) error {
	return a.edit(ctx, errNoAWSAuth, func(m *mapRolesDocument) error { return m.set(g.MappedRoleARN(), g.cluster) })
}

// remove removes a role from aws-auth. If the role is ours, an entry that names no cluster is ours too.
func (a *awsAuth) remove(ctx context.Context, g grant, mine bool) error {
	return a.edit(ctx, nil, func(m *mapRolesDocument) error {
		m.drop(g.MappedRoleARN(), g.cluster, mine)
		return nil
	})
}

// edit returns when the edit has been written. If its context ends, the edit may be written nevertheless, but before any later one.
func (a *awsAuth) edit(ctx context.Context, missing error, change func(*mapRolesDocument) error) error {
	e := &awsAuthEdit{change: change, missing: missing, result: make(chan error, 1)}
	a.mu.Lock()
	a.waiting = append(a.waiting, e)
	if !a.writing {
		a.writing = true
		go a.write()
	}
	a.mu.Unlock()
	select {
	case err := <-e.result:
		return err
	case <-ctx.Done():
		return awsAuthError(ctx.Err())
	}
}

// write writes until no edits are waiting.
func (a *awsAuth) write() {
	for {
		time.Sleep(gatherTime)
		a.mu.Lock()
		edits := a.waiting
		a.waiting, a.writing = nil, len(edits) > 0
		a.mu.Unlock()
		if len(edits) == 0 {
			return
		}
		a.apply(edits)
	}
}

// apply writes edits together, and sends each its result.
func (a *awsAuth) apply(edits []*awsAuthEdit) {
	// This is not the context of an edit: the others would end with it.
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var err error
	for range editAttempts {
		edits, err = a.try(ctx, edits)
		// The ConfigMap was changed or deleted concurrently.
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	if (tooLarge(err) || errors.Is(err, errBroken)) && len(edits) > 1 {
		// Edits that cannot be written must not make the others fail.
		half := len(edits) / 2
		a.apply(edits[:half])
		a.apply(edits[half:])
		return
	}
	for _, e := range edits {
		e.result <- awsAuthError(err)
	}
}

// try writes edits, and returns those that have no result yet.
func (a *awsAuth) try(ctx context.Context, edits []*awsAuthEdit) (left []*awsAuthEdit, err error) {
	configMaps := a.kube.CoreV1().ConfigMaps(awsAuthNamespace)
	found, err := configMaps.Get(ctx, awsAuthName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		for _, e := range edits {
			e.result <- e.missing
		}
		return nil, nil
	}
	if err != nil {
		return edits, err
	}
	document, err := readMapRoles(found.Data[mapRoles])
	if err != nil {
		// EKS admits no role of a broken document, but may do so once it is repaired, so the edit is retried.
		return edits, driver.Terminal(err)
	}
	for _, e := range edits {
		if err := e.change(document); err != nil {
			e.result <- driver.Terminal(awsAuthError(err))
			continue
		}
		left = append(left, e)
	}
	text, err := document.write()
	if err != nil {
		return left, driver.Terminal(err)
	}
	if text == found.Data[mapRoles] {
		return left, nil
	}
	return left, a.update(ctx, found, text)
}

func (a *awsAuth) update(ctx context.Context, found *corev1.ConfigMap, text string) error {
	if found.Data == nil {
		found.Data = map[string]string{}
	}
	found.Data[mapRoles] = text
	_, err := a.kube.CoreV1().ConfigMaps(awsAuthNamespace).Update(ctx, found, metav1.UpdateOptions{})
	return err
}

func tooLarge(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

func awsAuthError(err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("the ConfigMap %s/%s: %w", awsAuthNamespace, awsAuthName, err)
	if apierrors.IsForbidden(err) || tooLarge(err) {
		return driver.Terminal(wrapped)
	}
	return wrapped
}

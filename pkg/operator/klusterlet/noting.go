// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/remote"
)

// noting is a client that reports which objects are read and written. Use it for objects on which decisions are based: an object that is read for
// display only must not count as reconciled.
type noting struct {
	client.Client
	saw func(id remote.ID, o metav1.Object)
}

// Get implements client.Reader.
func (n noting) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := n.Client.Get(ctx, key, o, options...)
	switch {
	case err == nil:
		n.saw(remote.IDOf(o), o)
	case apierrors.IsNotFound(err):
		n.saw(remote.ID{GroupKind: remote.IDOf(o).GroupKind, NamespacedName: key}, nil)
	}
	return err
}

// Apply implements client.Writer.
func (n noting) Apply(ctx context.Context, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	err := n.Client.Apply(ctx, applied, options...)
	if o, ok := applied.(client.Object); ok && err == nil { // the response is decoded into it
		n.saw(remote.IDOf(o), o)
	}
	return err
}

// Create implements client.Writer.
func (n noting) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	err := n.Client.Create(ctx, o, options...)
	if err == nil {
		n.saw(remote.IDOf(o), o)
	}
	return err
}

// Update implements client.Writer.
func (n noting) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	err := n.Client.Update(ctx, o, options...)
	if err == nil {
		n.saw(remote.IDOf(o), o)
	}
	return err
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// CheckName validates a name that also names a namespace on the management cluster.
func CheckName(flag, name, namespace string) error {
	if why := validation.IsDNS1123Label(name); len(why) > 0 {
		return fmt.Errorf("--%s: %q is not a DNS label: %s", flag, name, strings.Join(why, "; "))
	}
	if over := len(namespace) - validation.DNS1123LabelMaxLength; over > 0 {
		return fmt.Errorf("--%s must be set to a name of at most %d characters: %s would be the name of its namespace, and is too long",
			flag, len(name)-over, namespace)
	}
	return nil
}

// NewKubeconfigSecret returns a Secret with a kubeconfig for hub-operator or for what it runs.
func NewKubeconfigSecret(namespace, name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{operatorv1.KeyKubeconfig: kubeconfig},
	}
}

// ToUnstructured converts Secrets to objects that can be applied.
func ToUnstructured(secrets ...*corev1.Secret) (all []*unstructured.Unstructured, err error) {
	for _, secret := range secrets {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
		if err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
		all = append(all, &unstructured.Unstructured{Object: object})
	}
	return all, nil
}

// CheckObjectRights checks the permissions to create an object for hub-operator, and its secrets.
func (m *Client) CheckObjectRights(ctx context.Context, resource, namespace, what string) error {
	var rights []authorizationv1.ResourceAttributes
	for _, verb := range []string{"get", "list", "create", "patch"} {
		rights = append(rights, authorizationv1.ResourceAttributes{Verb: verb, Group: operatorv1.GroupName, Resource: resource})
	}
	rights = append(rights, authorizationv1.ResourceAttributes{Verb: "get", Resource: "namespaces"})
	for _, verb := range []string{"get", "create", "patch"} {
		rights = append(rights, authorizationv1.ResourceAttributes{Verb: verb, Resource: "secrets", Namespace: namespace})
	}
	return m.CheckRights(ctx, rights, what, "have an admin of it run this command")
}

// ApplyObject creates an object, or updates it if this program has created it.
func (m *Client) ApplyObject(ctx context.Context, o *unstructured.Unstructured) error {
	have, err := m.Objects.Observe(ctx, o)
	if err == nil {
		err = m.Objects.Apply(ctx, o, have)
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", remote.IDOf(o), m.Explain(err))
	}
	if have == nil {
		_, _ = fmt.Fprintln(m.ErrOut, kit.Created(o))
	}
	return nil
}

// ApplySecrets waits until hub-operator has created the namespace: hub-operator deletes only a namespace that it has created.
func (m *Client) ApplySecrets(ctx context.Context, of string, secrets []*unstructured.Unstructured) error {
	namespace := &corev1.Namespace{}
	name := secrets[0].GetNamespace()
	err := m.Await(ctx, "hub-operator to create Namespace "+name+" for "+of, func(ctx context.Context) (bool, string, error) {
		err := m.Get(ctx, client.ObjectKey{Name: name}, namespace)
		switch {
		case err == nil && namespace.DeletionTimestamp.IsZero():
			return true, "", nil
		case err == nil:
			return false, "an earlier one is being deleted", nil
		case !apierrors.IsNotFound(err):
			return false, "", m.Explain(err)
		}
		state, err := m.OperatorState(ctx)
		return false, state, err
	})
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if err := m.ApplyObject(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

// CheckSecret returns an error if a kubeconfig exists that is for another server or is not ours.
func (m *Client) CheckSecret(ctx context.Context, namespace, name, of, server, other string) error {
	secret := &corev1.Secret{}
	if err := m.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return m.Explain(client.IgnoreNotFound(err))
	}
	if now := kit.ServerOf(secret.Data[operatorv1.KeyKubeconfig]); now != "" && now != server {
		return fmt.Errorf("%s has a Secret %s for %s, not for %s%s. If it is the same cluster at another address, change the Secret %s/%[2]s",
			of, name, command.Printable(now), server, kit.Prefixed(": ", other), namespace)
	}
	if !kit.Owner.Owns(secret) {
		return m.Explain(&remote.NotOurs{Object: remote.IDOf(secret), Owner: kit.Owner})
	}
	return nil
}

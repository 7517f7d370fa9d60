// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterhub/clusterhub/pkg/agent/management"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
)

// authorize is called with the lock held.
func (w *World) authorize(user, verb, resource, namespace string) error {
	if w.Refuse != nil {
		if err := w.Refuse(user, verb, resource); err != nil {
			return err
		}
	}
	allowed := w.rights.Bootstrap
	if user != BootstrapUser {
		allowed = rights.Rules{}
	}
	if user != BootstrapUser && w.Granted {
		allowed = w.rights.Hub
	}
	if !allows(allowed, verb, resource, namespace == ClusterName, "") {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", fmt.Errorf("%s may not %s", user, verb))
	}
	return nil
}

// Own returns the managed cluster for its agent, with the rights that the agent has there, and no others, even if it is also the management cluster.
func (w *World) Own() *spoke.Cluster {
	client := w.limited(w.Spoke, func(r rights.Rights) rights.Rules { return r.Own })
	return &spoke.Cluster{Client: ownClient{client, w.Spoke.Discovery()}, Watching: client, Namespace: Namespace}
}

// Home returns the management cluster for the agent, with the rights that the agent has there.
func (w *World) Home() *management.Cluster {
	client := w.limited(w.Management, func(r rights.Rights) rights.Rules { return r.Management })
	return &management.Cluster{Client: client, Namespace: Namespace}
}

// limited returns a client of a cluster with the agent's rights that of selects.
func (w *World) limited(cluster *kubefake.Clientset, of func(rights.Rights) rights.Rules) *kubefake.Clientset {
	client := &kubefake.Clientset{}
	client.AddReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if err := w.authorizeOwn(action, of); err != nil {
			return true, nil, err
		}
		object, err := cluster.Invokes(action, nil)
		return true, object, err
	})
	return client
}

// ownClient also has the version of the cluster, which every user may read.
type ownClient struct {
	*kubefake.Clientset
	discovery discovery.DiscoveryInterfaces
}

func (c ownClient) Discovery() discovery.DiscoveryInterfaces { return c.discovery }

func (w *World) authorizeOwn(action clienttesting.Action, of func(rights.Rights) rights.Rules) error {
	name := "" // for RBAC, an object that does not exist yet has no name
	if named, ok := action.(interface{ GetName() string }); ok {
		name = named.GetName()
	} else if update, ok := action.(clienttesting.UpdateAction); ok && action.GetVerb() == "update" {
		object, err := meta.Accessor(update.GetObject())
		if err != nil {
			return err
		}
		name = object.GetName()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if resource := action.GetResource().Resource; !allows(of(w.rights), action.GetVerb(), resource, action.GetNamespace() == Namespace, name) {
		return apierrors.NewForbidden(action.GetResource().GroupResource(), name,
			fmt.Errorf("no part of the agent states that it may %s %s", action.GetVerb(), resource))
	}
	return nil
}

// Grant gives the agent the declared rights, and no others. On the hub it has them once it is accepted.
func (w *World) Grant(stated rights.Rights) { w.Set(func() { w.rights = stated }) }

// allows reports whether rules allow a request. home is whether the request is in the namespace that some of the rules are for.
func allows(rules rights.Rules, verb, resource string, home bool, name string) bool {
	all := rules.Cluster
	if home {
		all = slices.Concat(all, rules.Namespace)
	}
	return slices.ContainsFunc(all, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Verbs, verb) && slices.Contains(rule.Resources, resource) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name))
	})
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

// clusterTarget is a cluster in which a command creates objects.
type clusterTarget struct {
	client.Client
	*global
	config *rest.Config
	// objects applies the objects of this program.
	objects *remote.Applier
	// what describes the cluster for the user, and next says what to check if it cannot be reached.
	what, next string
}

// targetScheme has all kinds that commands read and write as typed objects.
var targetScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	must(kubescheme.AddToScheme(scheme))
	must(operatorv1.AddToScheme(scheme))
	return scheme
}()

// byUs is the owner of objects with the label.
var byUs = remote.Owner{Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}}

// target returns the cluster that the flags select.
func (g *global) target(what, next string) (*clusterTarget, error) {
	config, err := g.restConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: %s. kubectl config get-contexts shows all contexts", err, next)
	}
	return g.targetAt(config, what, next)
}

func (g *global) targetAt(config *rest.Config, what, next string) (*clusterTarget, error) {
	// All requests except watches have a time limit.
	if config.Timeout == 0 {
		config.Timeout = 30 * time.Second
	}
	c, err := client.New(rest.CopyConfig(config), client.Options{Scheme: targetScheme})
	if err != nil {
		return nil, fmt.Errorf("configuring the connection to %s: %w", what, err)
	}
	objects := &remote.Applier{Client: c, Owner: byUs, Strategy: remote.ServerSideApply(deploy.ManagedBy)}
	return &clusterTarget{Client: c, global: g, config: config, objects: objects, what: what, next: next}, nil
}

// explain explains the error of a request to the cluster.
func (t *clusterTarget) explain(err error) error {
	if theirs := (*remote.NotOurs)(nil); errors.As(err, &theirs) {
		return fmt.Errorf("%s already exists and was not created by kubectl hub: delete it, or let kubectl hub change it by adding the label %s",
			theirs.Object, labels.Set(theirs.Owner.Labels))
	}
	return unreachable(t.what+" "+t.config.Host, err, t.next)
}

// remove deletes an object that this program has created, and reports whether it did.
func (t *clusterTarget) remove(ctx context.Context, o client.Object) (bool, error) {
	have, err := t.objects.Get(ctx, o)
	if err != nil {
		return false, t.explain(err)
	}
	ours, err := t.objects.Delete(ctx, have)
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", remote.IDOf(o), t.explain(err))
	}
	if ours {
		_, _ = fmt.Fprintln(t.ErrOut, outcome(o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), "deleted"))
	}
	return ours, nil
}

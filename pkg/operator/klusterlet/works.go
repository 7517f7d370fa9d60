// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/agent/work/withdraw"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
)

// AnnotationWorks specifies what happens to the objects of works when their Klusterlet is deleted: FateKeep, the default, orphans the objects;
// FateDelete deletes them. FateKeep is the default because a deletion may cause an outage.
const (
	AnnotationWorks = "operator.clusterhub.dev/works-on-deletion"
	FateKeep        = "Keep"
	FateDelete      = "Delete"
)

// withdrawal is the lifetime of the token with the rights of an agent.
const withdrawal = 10 * time.Minute

// worksFinalizer ends the works of an agent when its Klusterlet is deleted and no agent runs any more.
type worksFinalizer struct {
	pass *pass
	// cluster is the cluster with the works.
	cluster *cluster
	// connection is the connection to a managed cluster that does not run the pods: it has the rights of the cluster's admin. If it is nil, the works
	// are on the cluster of the Klusterlet. There the finalizer uses the rights of the agent, which has rights to the objects of its works, unlike this
	// program.
	connection *connection
}

// run ends the works, as far as possible now.
func (f worksFinalizer) run(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(plan.Records.GroupVersion().WithKind(plan.Records.Kind + "List"))
	if err := f.cluster.client.List(ctx, list, client.Limit(1)); err != nil || len(list.Items) == 0 {
		return f.explained(client.IgnoreNotFound(err))
	}
	fate, err := f.fate()
	if err != nil {
		return waitsFor("the annotation: %v", err)
	}
	// The settings of the registration are irrelevant here, and may have become invalid.
	k := f.pass.klusterlet.DeepCopy()
	k.Spec.RegistrationConfiguration, k.Spec.ClusterName = nil, ""
	desired, err := plan.New(k, f.pass.image)
	if err != nil {
		return err
	}
	var config *rest.Config
	if f.connection != nil {
		config = f.connection.Config()
	} else {
		config, err = f.agentConfig(ctx, desired)
		if err != nil {
			return err
		}
	}
	cluster, err := withdraw.New(config)
	if err != nil {
		return f.explained(err)
	}
	for {
		left := ""
		own, err := cluster.Some(ctx, desired.AgentID())
		if err != nil || len(own) == 0 {
			return f.explained(err)
		}
		for i := range own {
			waits, err := cluster.End(ctx, own[i], fate)
			if err != nil {
				return f.explained(err)
			}
			if waits != "" {
				left = waits
			}
		}
		if left != "" && f.connection != nil {
			left = f.connection.Explain(errors.New(left)) // the cluster wrote parts of it
		}
		if left != "" {
			return waitsFor("%s", left)
		}
	}
}

// fate returns what happens to the objects of the works.
func (f worksFinalizer) fate() (withdraw.Fate, error) {
	switch fate := f.pass.klusterlet.Annotations[AnnotationWorks]; fate {
	case "", FateKeep:
		return withdraw.Keep, nil
	case FateDelete:
		return withdraw.Delete, nil
	default:
		return "", fmt.Errorf("the annotation %s must be %s or %s, not %q", AnnotationWorks, FateKeep, FateDelete, fate)
	}
}

func (f worksFinalizer) explained(err error) error {
	if err == nil {
		return nil
	}
	return f.cluster.explained(err)
}

// agentConfig returns a configuration for the own cluster with the rights of the part that applies works. It recreates those that do not exist any
// more.
func (f worksFinalizer) agentConfig(ctx context.Context, p *plan.Plan) (*rest.Config, error) {
	own := *f.cluster
	own.pods = "" // no pods exist any more, and another agent may have the namespace
	if err := own.apply(ctx, p.Management); err != nil {
		return nil, err
	}
	parts := p.Parts()
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = p.Namespace, parts[len(parts)-1].ServiceAccount
	request := &authenticationv1.TokenRequest{}
	request.Spec.ExpirationSeconds = new(int64(withdrawal.Seconds()))
	if err := f.pass.client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %s/%s to delete works: %w", account.Namespace, account.Name, err)
	}
	if request.Status.Token == "" {
		return nil, errors.New("the API server returned no token")
	}
	config := rest.AnonymousClientConfig(f.pass.config)
	config.BearerToken = request.Status.Token
	return config, nil
}

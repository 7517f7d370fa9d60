// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator"
)

// ofOperator are the controllers of hub-operator. They are off unless --controllers names them.
var ofOperator = operator.NewOptions().Controllers

// hubOperator runs controllers of hub-operator with its identity: with its ServiceAccount, and while it holds the Lease of hub-operator. So its
// permissions are not those of hub-controller-manager, and a hub-operator beside it does no harm: only one of them acts.
type hubOperator struct {
	*operator.Options
	config *rest.Config
}

var _ ctrlmanager.LeaderElectionRunnable = &hubOperator{}

// operator returns nil if no controller of hub-operator runs in this process.
func (o *Options) operator(config *rest.Config) *hubOperator {
	options := *o.Operator
	options.Controllers = slices.DeleteFunc(slices.Clone(ofOperator), func(name string) bool { return !o.runs(name) })
	if len(options.Controllers) == 0 {
		return nil
	}
	options.HealthAddress, options.Metrics.Address = "0", "0" // this process has its own
	elects := &options.LeaderElection
	elects.LeaseDuration, elects.RenewDeadline, elects.RetryPeriod = o.LeaderElection.LeaseDuration, o.LeaderElection.RenewDeadline, o.LeaderElection.RetryPeriod
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operator.User}
	return &hubOperator{Options: &options, config: config}
}

// rights returns the permission of hub-controller-manager to impersonate hub-operator.
func (o *hubOperator) rights() []kit.Right {
	return []kit.Right{kit.On(corev1.SchemeGroupVersion, "serviceaccounts", "impersonate").Named(operator.ServiceAccount).In(operator.Namespace)}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: of several processes, the leader becomes hub-operator, too.
func (o *hubOperator) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. A process that may not act as hub-operator waits for that, while the other controllers run.
func (o *hubOperator) Start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(o.config)
	if err != nil {
		return err
	}
	logger, last := klog.FromContext(ctx), ""
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil && err.Error() != last {
			last = err.Error()
			logger.Info("Waiting for permission to act as hub-operator: check that artifacts/deploy/operator-in-hub is applied", "controllers", o.Controllers, "reason", last)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil // the context has ended
	}
	return o.RunWith(ctx, o.config)
}

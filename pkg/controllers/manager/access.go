// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/controllers/access/accessrequest"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterprotection"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterscheduler"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/unattendedclusters"
)

// The controllers of access that openMCP's own operator has, too, by the names that it gives them.
const (
	accessRequestController = "accessrequest"
	schedulerController     = "scheduler"
)

var controllersOfAccess = []string{accessRequestController, schedulerController}

// AccessOptions say what is done for requests of clusters.openmcp.cloud.
type AccessOptions struct {
	// Controllers are the names of those that are on.
	Controllers []string
	// AccessRequestSelector is a label selector of the AccessRequests that are prepared.
	AccessRequestSelector string
	// Scheduler says how ClusterRequests are granted, and who may ask for what.
	Scheduler clusterscheduler.Options
}

func newAccessOptions() AccessOptions {
	return AccessOptions{Controllers: slices.Clone(controllersOfAccess)}
}

func (o *AccessOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Controllers, "access-controllers", o.Controllers,
		"Controllers of clusters.openmcp.cloud that run here: "+strings.Join(controllersOfAccess, ", ")+". Leave out those that "+
			"another program has, such as openMCP's own operator. Clusters are kept until their AccessRequests are gone in any case.")
	fs.StringVar(&o.AccessRequestSelector, "access-request-selector", o.AccessRequestSelector,
		"Label selector of the AccessRequests that are prepared and deleted in time; empty selects all.")
	o.Scheduler.AddFlags(fs)
}

func (o *AccessOptions) validate() (errs []error) {
	for _, name := range o.Controllers {
		if !slices.Contains(controllersOfAccess, name) {
			errs = append(errs, fmt.Errorf("--access-controllers: there is no controller %q, only %s", name, strings.Join(controllersOfAccess, ", ")))
		}
	}
	if _, err := labels.Parse(o.AccessRequestSelector); err != nil {
		errs = append(errs, fmt.Errorf("--access-request-selector: %w", err))
	}
	if _, err := o.Scheduler.Load(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// setup adds the controllers of access. The configuration of the scheduler is nil without files.
func (o *AccessOptions) setup(ctx context.Context, mgr ctrl.Manager, live *clusterscheduler.LiveConfig) error {
	if err := clusterprotection.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	if err := unattendedclusters.SetupWithManager(mgr); err != nil {
		return err
	}
	if slices.Contains(o.Controllers, schedulerController) {
		if err := clusterscheduler.SetupWithManager(mgr, live); err != nil {
			return err
		}
	}
	if !slices.Contains(o.Controllers, accessRequestController) {
		return nil
	}
	selector, err := labels.Parse(o.AccessRequestSelector)
	if err != nil {
		return err
	}
	return accessrequest.SetupWithManager(ctx, mgr, accessrequest.Options{
		Selector: selector, Policy: live.Policy, PolicyChanges: live.Changes(),
	})
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/clusterhub/clusterhub/pkg/controllers/access/accessrequest"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterscheduler"
)

// The controllers of access that openMCP's own operator has, too, with the names that it gives them.
const (
	accessRequestController = "accessrequest"
	schedulerController     = "scheduler"
)

var controllersOfAccess = []string{accessRequestController, schedulerController}

// AccessOptions are the settings of the controllers for clusters.openmcp.cloud.
type AccessOptions struct {
	// Controllers are the names of the enabled controllers.
	Controllers []string
	// Requests are the settings for AccessRequests.
	Requests accessrequest.Flags
	// Scheduler has the settings for ClusterRequests, and the access policy.
	Scheduler clusterscheduler.Options
}

func newAccessOptions() AccessOptions {
	return AccessOptions{Controllers: slices.Clone(controllersOfAccess)}
}

func (o *AccessOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Controllers, "access-controllers", o.Controllers,
		"Comma-separated list of the controllers of clusters.openmcp.cloud to run: "+strings.Join(controllersOfAccess, ", ")+". Omit those "+
			"that another program runs, such as openMCP's own operator. In any case, Clusters are not deleted before their AccessRequests.")
	o.Requests.AddFlags(fs)
	o.Scheduler.AddFlags(fs)
}

func (o *AccessOptions) validate() (errs []error) {
	for _, name := range o.Controllers {
		if !slices.Contains(controllersOfAccess, name) {
			errs = append(errs, fmt.Errorf("--access-controllers: unknown controller %q, use one of %s", name, strings.Join(controllersOfAccess, ", ")))
		}
	}
	if err := o.Requests.Validate(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.Scheduler.Load(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func (o *AccessOptions) runs(controller string) bool {
	return slices.Contains(o.Controllers, controller)
}

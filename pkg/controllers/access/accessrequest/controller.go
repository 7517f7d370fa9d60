// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterprotection"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// Flags are the flags of the controller.
type Flags struct {
	// Selector is a label selector of the AccessRequests that are prepared.
	Selector string
}

// AddFlags adds the flags.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.Selector, "access-request-selector", f.Selector,
		"The label selector of the AccessRequests that are prepared, and deleted when they expire. If empty, all are selected.")
}

// Validate returns an error if the flags are invalid.
func (f *Flags) Validate() error {
	if _, err := labels.Parse(f.Selector); err != nil {
		return fmt.Errorf("--access-request-selector: %w", err)
	}
	return nil
}

// Controller returns the name, the setup and the permissions of the controller.
func (f *Flags) Controller(options Options) kit.Controller {
	access := v1alpha1.SchemeGroupVersion
	return kit.Controller{
		Name: reporter,
		Setup: func(ctx context.Context, mgr ctrl.Manager) (err error) {
			options.Selector, err = labels.Parse(f.Selector)
			if err != nil {
				return err
			}
			if err := expose(ctx, mgr); err != nil {
				return err
			}
			return SetupWithManager(ctx, mgr, options)
		},
		Rights: append(clusterprotection.ToProtect(),
			kit.On(access, "accessrequests", "list", "watch", "patch", "delete"),
			kit.On(access, "accessrequests/status", "patch"),
			kit.On(access, "clusterrequests", "get", "list", "watch"),
			kit.On(access, "clusters", "list", "watch"),
			kit.On(access, "clusterprofiles", "list", "watch"),
			// The policy uses the namespace of a request.
			kit.On(corev1.SchemeGroupVersion, "namespaces", "get"),
			kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch"),
		),
	}
}

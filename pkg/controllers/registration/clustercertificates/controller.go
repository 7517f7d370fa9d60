// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// Options are the settings of the controller.
type Options struct {
	// BootstrapUsers may request first certificates, in addition to the users of bootstrap tokens.
	BootstrapUsers []string
	// TrustedUsers are the BootstrapUsers who may also request them for a cluster that was accepted before.
	TrustedUsers []string
	// MaxLifetime is the longest lifetime of a certificate that is approved without an admin.
	MaxLifetime time.Duration
}

// minLifetime is the shortest lifetime that the API of certificate requests allows.
const minLifetime = 10 * time.Minute

const bootstrapFlag = "bootstrap-identities"

// AddFlags adds the flags of the controller.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.BootstrapUsers, bootstrapFlag, o.BootstrapUsers,
		"Comma-separated list of users who may request the first certificate of an accepted cluster, in addition to those of bootstrap "+
			"tokens, "+registration.BootstrapServiceAccount+" and the users who are approved automatically.")
	fs.DurationVar(&o.MaxLifetime, "max-certificate-duration", o.MaxLifetime,
		"The maximum lifetime of an agent's certificate that is approved without an admin. An agent that requests no lifetime gets that of "+
			"the signer, which counts as one year: if the maximum is less, agents must request a lifetime.")
}

// Validate returns the errors of the flags.
func (o *Options) Validate() (errs []error) {
	if o.MaxLifetime < minLifetime {
		errs = append(errs, fmt.Errorf("--max-certificate-duration must be at least %s, which is the shortest that can be requested, "+
			"not %s", minLifetime, o.MaxLifetime))
	}
	for _, user := range o.BootstrapUsers {
		if err := agentcsr.CheckNamed(bootstrapFlag, user); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Controller returns the name, the setup and the permissions of the controller.
func (o Options) Controller() kit.Controller {
	requests := certificatesv1.SchemeGroupVersion
	setup := func(ctx context.Context, mgr ctrl.Manager) error { return SetupWithManager(ctx, mgr, o) }
	return kit.Controller{Name: reporter, Setup: setup, Rights: []kit.Right{
		// delete is for pending requests of one requester beyond a limit.
		kit.On(requests, "certificatesigningrequests", "list", "watch", "delete"),
		kit.On(requests, "certificatesigningrequests/approval", "update"),
		kit.On(requests, "signers", "approve").Named(registration.SignerName),
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "get", "list", "watch"),
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters/status", "patch"),
		// patch is for the key of a cluster's agent.
		kit.On(corev1.SchemeGroupVersion, "configmaps", "get", "list", "watch", "patch").In(record.Namespace),
		// Events about requests and clusters, which are in no namespace.
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch").In("default"),
	}}
}

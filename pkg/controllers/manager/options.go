// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager assembles hub-controller-manager: its flags, leader election, health and metrics endpoints, and the controllers.
//
// The controllers start once the process leads and the API server serves what they watch. Until then the process waits and logs what for, so that
// hub-apiserver and hub-controller-manager can be started in any order.
package manager

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/metrics"
	"github.com/clusterhub/clusterhub/pkg/operator"
)

const (
	// DefaultClusterSet is the feature gate of the sets "default" and "global".
	DefaultClusterSet featuregate.Feature = "DefaultClusterSet"

	// leaseName is the default name of the Lease of the leader.
	leaseName = "hub-controller-manager"
)

// The groups of controllers. Each can be a process of its own, with exactly the permissions that it needs.
const (
	setsControllers         = "sets"
	placementsControllers   = "placements"
	worksControllers        = "works"
	edgeControllers         = "edge"
	accessControllers       = "access"
	registrationControllers = "registration"
	certificatesControllers = "certificates"
)

var allControllers = []string{setsControllers, placementsControllers, worksControllers, edgeControllers, accessControllers, registrationControllers, certificatesControllers}

// everything selects all groups in --controllers.
const everything = "*"

// Options are hub-controller-manager's flags.
type Options struct {
	// Kubeconfig is the file with the connection to the hub; if it is empty, the pod's own identity is used.
	Kubeconfig string
	// QPS is the rate of requests to the hub per second in the long run, Burst the maximum number at once.
	QPS   float32
	Burst int

	// Controllers are the groups that run in this process.
	Controllers []string

	LeaderElection LeaderElectionOptions
	Registration   RegistrationOptions
	Access         AccessOptions
	// Operator is for the controllers of hub-operator, if they run in this process.
	Operator *operator.Options

	// HealthAddress is host:port of plain HTTP; "0" turns it off.
	HealthAddress string
	Metrics       metrics.Options

	FeatureGate featuregate.MutableVersionedFeatureGate
	Logs        *logsapi.LoggingConfiguration
}

// LeaderElectionOptions are the settings of the leader election.
type LeaderElectionOptions = command.LeaderElection

// NewOptions returns the defaults.
func NewOptions() *Options {
	gate := featuregate.NewFeatureGate()
	utilruntime.Must(gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		DefaultClusterSet:          {Default: true, PreRelease: featuregate.Alpha},
		ManagedClusterAutoApproval: {Default: false, PreRelease: featuregate.Alpha},
		work.NilExecutorValidating: {Default: false, PreRelease: featuregate.Alpha},
	}))
	utilruntime.Must(logsapi.AddFeatureGates(gate))
	return &Options{
		// A cluster that joins takes about fifteen requests. Fleets join at once, and the hub protects itself by priority and fairness.
		QPS:   500,
		Burst: 1000,

		Controllers:    slices.Clone(allControllers),
		LeaderElection: command.NewLeaderElection(leaseName, "clusterhub-system"),
		Registration:   newRegistrationOptions(),
		Access:         newAccessOptions(),
		Operator:       operator.NewOptions(),
		HealthAddress:  "127.0.0.1:8081",
		Metrics:        metrics.Options{Address: "127.0.0.1:8080"},
		FeatureGate:    gate,
		Logs:           logsapi.NewLoggingConfiguration(),
	}
}

// Flags returns the flags, grouped for --help.
func (o *Options) Flags() (fss cliflag.NamedFlagSets) {
	o.addClientFlags(fss.FlagSet("client"))
	o.addControllersFlag(fss.FlagSet("controllers"))
	o.LeaderElection.AddFlags(fss.FlagSet("leader election"))
	o.addEndpointFlags(fss.FlagSet("endpoints"))
	o.Registration.addFlags(fss.FlagSet("registration"))
	o.Access.addFlags(fss.FlagSet("access"))
	o.Operator.AddControllerFlags(fss.FlagSet("klusterlets and clustermanagers"))
	o.FeatureGate.AddFlag(fss.FlagSet("features"))
	logsapi.AddFlags(o.Logs, fss.FlagSet("logs"))
	return fss
}

func (o *Options) addClientFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"The path to the kubeconfig of the hub's kube-apiserver. Inside a cluster, the default is the local cluster and the "+
			"service account of the pod.")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "The maximum number of requests per second that the controllers send.")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, "The maximum number of requests that the controllers send at once.")
}

func (o *Options) addControllersFlag(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers,
		"Comma-separated list of the controllers to run in this process: "+strings.Join(allControllers, ", ")+". Omit those that another "+
			"process runs; the two processes require different names of their Leases. "+everything+" means all of these. It does not include those "+
			"for a hub that is also a management cluster: "+strings.Join(ofOperator, ", ")+". These are the controllers of hub-operator, whose "+
			"ServiceAccount and Lease they use: only one hub-operator is active, in whichever process.")
}

func (o *Options) runs(controllers string) bool {
	return slices.Contains(o.Controllers, controllers) || slices.Contains(o.Controllers, everything) && slices.Contains(allControllers, controllers)
}

func (o *Options) addEndpointFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress,
		"The address on which /healthz and /readyz are served over plain HTTP. Port 0 selects a free port. The address 0 disables the endpoint.")
	o.Metrics.AddFlags(fs, "the hub's kube-apiserver")
}

// Validate returns all errors of the flags at once.
func (o *Options) Validate() error {
	var errs []error
	if o.Kubeconfig == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		errs = append(errs, errors.New("--kubeconfig must name the kubeconfig of the hub's kube-apiserver when "+
			"hub-controller-manager runs outside of a cluster"))
	}
	if o.QPS <= 0 || o.Burst <= 0 {
		errs = append(errs, fmt.Errorf("--kube-api-qps and --kube-api-burst must be above 0, not %v and %d",
			o.QPS, o.Burst))
	}
	known := slices.Concat(allControllers, ofOperator, []string{everything})
	for _, name := range o.Controllers {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("--controllers: unknown controller %q, use one of %s", name, strings.Join(known, ", ")))
		}
	}
	if len(o.Controllers) == 0 {
		errs = append(errs, fmt.Errorf("--controllers must name at least one of %s", strings.Join(allControllers, ", ")))
	}
	if o.LeaderElection.Enabled {
		errs = append(errs, o.LeaderElection.Validate()...)
	}
	errs = append(errs, o.Metrics.Validate()...)
	errs = append(errs, o.Registration.validate(o.FeatureGate.Enabled(ManagedClusterAutoApproval))...)
	errs = append(errs, o.Access.validate()...)
	if slices.ContainsFunc(ofOperator, o.runs) {
		errs = append(errs, o.Operator.ValidateControllers()...)
	}
	return utilerrors.NewAggregate(errs)
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator assembles hub-operator: its flags, leader election, health and metrics endpoints, and the controllers that install
// hubs and agents.
package operator

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/metrics"
	metricsmanager "github.com/clusterhub/clusterhub/pkg/command/metrics/manager"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/clustermanager"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet"
)

// The identity of hub-operator on its cluster, as in its manifests.
const (
	ServiceAccount = "hub-operator"
	Namespace      = "clusterhub-operator"
	User           = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
)

// Options are hub-operator's flags.
type Options struct {
	// Kubeconfig is the path of the kubeconfig of the management cluster; if empty, the pod's own identity is used.
	Kubeconfig string
	// QPS is the sustained rate of requests per second to the management cluster, and Burst the maximum burst.
	QPS   float32
	Burst int

	// Controllers are the names of the enabled controllers.
	Controllers     []string
	ClusterManagers clustermanager.Options
	Klusterlets     klusterlet.Options

	LeaderElection command.LeaderElection

	// HealthAddress is host:port of plain HTTP; "0" disables it.
	HealthAddress string
	Metrics       metrics.Options

	FeatureGate featuregate.MutableVersionedFeatureGate
	Logs        *logsapi.LoggingConfiguration
}

// all returns all controllers. Add new ones here.
func (o *Options) all() []kit.Controller {
	return []kit.Controller{
		o.ClusterManagers.Controller(),
		o.Klusterlets.Controller(),
	}
}

func (o *Options) names() (names []string) {
	for _, controller := range o.all() {
		names = append(names, controller.Name)
	}
	return names
}

// enabled returns the controllers of this process.
func (o *Options) enabled() []kit.Controller {
	return slices.DeleteFunc(o.all(), func(c kit.Controller) bool { return !slices.Contains(o.Controllers, c.Name) })
}

// Rights returns the rights that a process with these flags needs on the management cluster.
func (o *Options) Rights() (rights []kit.Right) {
	for _, controller := range o.enabled() {
		rights = append(rights, controller.Rights...)
	}
	for _, asked := range metricsmanager.CreatedResources(o.Metrics) {
		rights = append(rights, kit.On(asked.GroupVersion(), asked.Resource, "create"))
	}
	if elects := o.LeaderElection; elects.Enabled {
		for _, right := range []kit.Right{
			kit.On(coordinationv1.SchemeGroupVersion, "leases", "create"),
			kit.On(coordinationv1.SchemeGroupVersion, "leases", "get", "update").Named(elects.Name),
			// Changes of the leader are recorded as events of the older API.
			kit.On(corev1.SchemeGroupVersion, "events", "create", "patch"),
		} {
			rights = append(rights, right.In(elects.Namespace))
		}
	}
	return rights
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	gate := featuregate.NewFeatureGate()
	utilruntime.Must(logsapi.AddFeatureGates(gate))
	o := &Options{
		// A new Klusterlet takes about fifty requests.
		QPS:            100,
		Burst:          200,
		LeaderElection: command.NewLeaderElection("hub-operator", Namespace),
		HealthAddress:  "127.0.0.1:8083",
		Metrics:        metrics.Options{Address: "127.0.0.1:8084"},
		FeatureGate:    gate,
		Logs:           logsapi.NewLoggingConfiguration(),
	}
	o.Controllers = o.names()
	return o
}

// Flags returns the flags, grouped for --help.
func (o *Options) Flags() (fss cliflag.NamedFlagSets) {
	fs := fss.FlagSet("client")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"The path to the kubeconfig of the management cluster, which has the ClusterManagers and Klusterlets, and runs the pods. Inside a "+
			"cluster, the default is the local cluster and the service account of the pod.")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "The maximum number of requests per second that are sent to the management cluster.")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, "The maximum number of requests that are sent to the management cluster at once.")
	o.addControllerFlags(fss.FlagSet("controllers"))
	o.LeaderElection.AddFlags(fss.FlagSet("leader election"))
	fs = fss.FlagSet("endpoints")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress,
		"The address on which /healthz and /readyz are served over plain HTTP. Port 0 selects a free port. The address 0 disables the endpoint.")
	o.Metrics.AddFlags(fs, "the management cluster")
	o.FeatureGate.AddFlag(fss.FlagSet("features"))
	logsapi.AddFlags(o.Logs, fss.FlagSet("logs"))
	return fss
}

func (o *Options) addControllerFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "Comma-separated list of the controllers to run: "+strings.Join(o.names(), ", ")+".")
	o.AddControllerFlags(fs)
}

// AddControllerFlags adds the flags of the controllers, wherever they run.
func (o *Options) AddControllerFlags(fs *pflag.FlagSet) {
	o.ClusterManagers.AddFlags(fs)
	o.Klusterlets.AddFlags(fs)
}

// ValidateControllers returns all errors of these flags.
func (o *Options) ValidateControllers() []error {
	return append(o.ClusterManagers.Validate(), o.Klusterlets.Validate()...)
}

// Validate returns all errors of the flags.
func (o *Options) Validate() error {
	var errs []error
	if o.Kubeconfig == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		errs = append(errs, errors.New("--kubeconfig must name the kubeconfig of the management cluster when hub-operator runs outside of a cluster"))
	}
	if o.QPS <= 0 || o.Burst <= 0 {
		errs = append(errs, fmt.Errorf("--kube-api-qps and --kube-api-burst must be above 0, not %v and %d", o.QPS, o.Burst))
	}
	for _, name := range o.Controllers {
		if !slices.Contains(o.names(), name) {
			errs = append(errs, fmt.Errorf("--controllers: there is no %q, only %s", name, strings.Join(o.names(), ", ")))
		}
	}
	if len(o.Controllers) == 0 {
		errs = append(errs, fmt.Errorf("--controllers must name at least one of %s", strings.Join(o.names(), ", ")))
	}
	if o.LeaderElection.Enabled {
		errs = append(errs, o.LeaderElection.Validate()...)
	}
	errs = append(errs, o.ValidateControllers()...)
	errs = append(errs, o.Metrics.Validate()...)
	return utilerrors.NewAggregate(errs)
}

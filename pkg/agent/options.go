// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/hubs"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/edge"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/labels"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/work"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/command/metrics"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// annotationPrefix is the prefix of the annotations that flags may set on the ManagedCluster.
const annotationPrefix = registration.AgentAnnotationPrefix

// Options are hub-agent's flags.
type Options struct {
	Spoke spoke.Options

	// Registration makes the agent join its cluster to the hub and maintain the registration, and Works.Enabled makes it apply works. At least one is
	// set.
	Registration bool
	// HubKubeconfigDir is the folder with the identity that another process gets, for a process without Registration. If it is empty, the identity is
	// read from registration.HubKubeconfigSecret.
	HubKubeconfigDir string

	// BootstrapKubeconfig is the path of the kubeconfig for a cluster that has no identity on the hub yet. If it is empty, the secret
	// registration.BootstrapSecret is read.
	BootstrapKubeconfig string
	// Hubs are the bootstrap kubeconfigs of an agent with several hubs, which has no BootstrapKubeconfig.
	Hubs hubs.Options
	// ClusterName is the cluster's name on the hub. The default is the name in the secret, and otherwise the cluster's ID.
	ClusterName string
	// ServerURL is the https URL of the cluster's API server, for the hub's users, and ServerCAFile the path of its CA certificates, PEM.
	ServerURL    string
	ServerCAFile string
	// Addresses are additional addresses, in the format of registration.ParseAddresses.
	Addresses string
	// ClusterAnnotations are set on the ManagedCluster; their names begin with annotationPrefix.
	ClusterAnnotations map[string]string
	// ClusterLabels are the labels of the ManagedCluster.
	ClusterLabels labels.Options
	// LeaseSeconds is the lease duration of a new cluster. Afterwards the hub's value is used.
	LeaseSeconds int32
	Claims       status.Claims
	// Works configures whether and how ManifestWorks are applied to the cluster.
	Works work.Options
	// Edge configures whether and how the cluster is an edge node.
	Edge edge.Options

	// Auth is the name of the driver by which the cluster gets its identity, one of Drivers.
	Auth    string
	Drivers identity.Drivers

	// HealthAddress is the host:port of the health checks, plain HTTP; "0" turns them off.
	HealthAddress string
	Metrics       metrics.Options

	FeatureGate featuregate.MutableVersionedFeatureGate
	Logs        *logsapi.LoggingConfiguration
}

// drivers returns all drivers. A new one is one more element here.
func drivers() identity.Drivers { return identity.Drivers{csr.New(), awsirsa.New()} }

// NewOptions returns the defaults.
func NewOptions() *Options {
	gate := featuregate.NewFeatureGate()
	utilruntime.Must(logsapi.AddFeatureGates(gate))
	utilruntime.Must(gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		work.RawFeedback: {Default: false, PreRelease: featuregate.Alpha},
	}))
	return &Options{
		Spoke:         spoke.NewOptions(),
		Registration:  true,
		Hubs:          hubs.NewOptions(),
		LeaseSeconds:  registration.DefaultLeaseSeconds,
		Claims:        status.Claims{Most: 20},
		Works:         work.NewOptions(),
		Edge:          edge.NewOptions(),
		Auth:          csr.Name,
		Drivers:       drivers(),
		HealthAddress: "127.0.0.1:8082",
		Metrics:       metrics.Options{Address: metrics.Off},
		FeatureGate:   gate,
		Logs:          logsapi.NewLoggingConfiguration(),
	}
}

// logFlags is the group of the flags that subcommands also have.
const logFlags = "logs"

// Flags returns the flags, grouped for --help.
func (o *Options) Flags() (fss cliflag.NamedFlagSets) {
	o.Spoke.AddFlags(fss.FlagSet("managed cluster"))
	o.addClusterFlags(fss.FlagSet("managed cluster"))
	o.addRegistrationFlags(fss.FlagSet("registration"))
	o.Works.AddFlags(fss.FlagSet("works"))
	fss.FlagSet("works").StringVar(&o.HubKubeconfigDir, "hub-kubeconfig-dir", o.HubKubeconfigDir,
		"The directory with the cluster's identity on the hub, with --registration=false: the mounted Secret "+registration.HubKubeconfigSecret+
			". It may be empty or missing until the cluster has an identity, and is reloaded when it changes. The default is to read the Secret in "+
			"--namespace.")
	o.Edge.AddFlags(fss.FlagSet("edge"))
	fs := fss.FlagSet("endpoints")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress,
		"The address on which /healthz and /readyz are served over plain HTTP. Port 0 selects a free port. The address 0 disables the endpoint.")
	o.Metrics.AddFlags(fs, "the cluster that the agent runs in, the managed cluster or with --detached the management cluster,")
	o.FeatureGate.AddFlag(fss.FlagSet("features"))
	logsapi.AddFlags(o.Logs, fss.FlagSet(logFlags))
	return fss
}

func (o *Options) addClusterFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ClusterName, "cluster-name", o.ClusterName,
		"The name of the cluster on the hub, a DNS label. The default is the name that it already has there, and for a new "+
			"cluster the UID of its namespace kube-system.")
	fs.StringVar(&o.ServerURL, "cluster-server-url", o.ServerURL,
		"The https URL of the managed cluster's API server, for users of the hub.")
	fs.StringVar(&o.ServerCAFile, "cluster-ca-file", o.ServerCAFile,
		"The path to a PEM file with the certificate authorities that verify --cluster-server-url. The default is the root certificates of the system.")
	fs.StringVar(&o.Addresses, "cluster-addresses", o.Addresses,
		"The addresses of the managed cluster's API server in addition to --cluster-server-url, for users of the hub, as a JSON list: "+
			`[{"url": "https://…", "caBundle": "…"}, …]. A caBundle is PEM in base64. The default is the root certificates of the system. At most `+
			fmt.Sprint(registration.MaxAddresses)+".")
	fs.StringToStringVar(&o.ClusterAnnotations, "cluster-annotations", o.ClusterAnnotations,
		"Comma-separated list of key=value annotations of the ManagedCluster. Their keys must begin with "+annotationPrefix+".")
	fs.StringToStringVar(&o.ClusterLabels.Labels, "cluster-labels", o.ClusterLabels.Labels,
		"Comma-separated list of key=value labels of the ManagedCluster. They are set once the hub has accepted the cluster, and removed when they "+
			"are no longer in the list. The hub decides which keys an agent may set.")
	fs.BoolVar(&o.ClusterLabels.Detect, "detect-cluster-labels", o.ClusterLabels.Detect,
		"If true, the ManagedCluster is labelled with the region, the cloud and the vendor, detected from the nodes and the version of the cluster ("+
			strings.Join(registration.DefaultAgentLabels(), ", ")+"). Unknown values are omitted.")
	fs.Int32Var(&o.LeaseSeconds, "lease-duration-seconds", o.LeaseSeconds,
		"The lease duration of a cluster that is new to the hub, in seconds. Later, the value on the hub is used.")
	fs.IntVar(&o.Claims.Most, "max-custom-cluster-claims", o.Claims.Most,
		"The maximum number of ClusterClaims of the managed cluster that are sent to the hub, in addition to those that the agent creates itself and those "+
			"of --reserved-cluster-claim-suffixes.")
	fs.StringSliceVar(&o.Claims.Reserved, "reserved-cluster-claim-suffixes", o.Claims.Reserved,
		"Comma-separated list of suffixes of the names of ClusterClaims that are sent to the hub in addition to --max-custom-cluster-claims. The hub "+
			"accepts "+fmt.Sprint(cluster.MaxClusterClaims)+" ClusterClaims of a cluster in total.")
}

func (o *Options) addRegistrationFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Registration, "registration", o.Registration,
		"If true, the agent joins the cluster to the hub, and maintains the registration. If false, --works must be set: then works are applied with "+
			"the identity that another hub-agent gets.")
	fs.StringVar(&o.BootstrapKubeconfig, "bootstrap-kubeconfig", o.BootstrapKubeconfig,
		"The path to the kubeconfig of the hub for a cluster that has no identity yet. The default is the key "+
			registration.KeyKubeconfig+" of the Secret "+registration.BootstrapSecret+" in --namespace. It is reloaded when it changes.")
	o.Hubs.AddFlags(fs)
	var known []string
	for _, driver := range o.Drivers {
		known = append(known, driver.Names()[0]+" ("+driver.Summary()+")")
		driver.AddFlags(fs)
	}
	fs.StringVar(&o.Auth, "registration-auth", o.Auth, "The type of the cluster's identity: "+strings.Join(known, " or ")+".")
}

// Validate returns all errors of the flags at once.
func (o *Options) Validate() error {
	errs := o.Spoke.Validate(o.needsManagement())
	if !o.Registration && !o.Works.Enabled {
		errs = append(errs, errors.New("--registration=false needs --works: otherwise there is nothing to do"))
	}
	if o.Registration && o.HubKubeconfigDir != "" {
		errs = append(errs, errors.New("--hub-kubeconfig-dir needs --registration=false: otherwise the agent gets an identity itself"))
	}
	if !o.Registration && o.BootstrapKubeconfig != "" {
		errs = append(errs, errors.New("--bootstrap-kubeconfig must not be set with --registration=false: it is for getting an identity"))
	}
	errs = append(errs, o.validateHubs()...)
	if o.ClusterName != "" {
		errs = append(errs, validateName(o.ClusterName)...)
	}
	errs = append(errs, o.validateServer()...)
	errs = append(errs, o.validateScope()...)
	errs = append(errs, o.validateEdge()...)
	for name := range o.ClusterAnnotations {
		if err := registration.CheckClusterAnnotation(name); err != nil {
			errs = append(errs, fmt.Errorf("--cluster-annotations: %w", err))
		}
	}
	errs = append(errs, o.ClusterLabels.Validate()...)
	errs = append(errs, o.Works.Validate()...)
	if o.Works.UpgradeRepository != "" && o.Spoke.Detached {
		errs = append(errs, errors.New("--upgrade-repository must not be set with --detached: the agent's Deployment is on another cluster than its works"))
	}
	errs = append(errs, o.Metrics.Validate()...)
	if o.LeaseSeconds <= 0 {
		errs = append(errs, fmt.Errorf("--lease-duration-seconds must be above 0, not %d", o.LeaseSeconds))
	}
	if o.Claims.Most < 0 {
		errs = append(errs, fmt.Errorf("--max-custom-cluster-claims must be at least 0, not %d", o.Claims.Most))
	}
	if slices.Contains(o.Claims.Reserved, "") {
		errs = append(errs, errors.New("--reserved-cluster-claim-suffixes must not have an empty one, which all names end with"))
	}
	chosen := o.Drivers.Named(o.Auth)
	var known []string
	for _, driver := range o.Drivers {
		known = append(known, driver.Names()[0])
		errs = append(errs, driver.Validate(driver == chosen)...)
	}
	if chosen == nil {
		errs = append(errs, fmt.Errorf("--registration-auth must be %s, not %q", strings.Join(known, " or "), o.Auth))
	}
	return utilerrors.NewAggregate(errs)
}

// needsManagement reports whether the process needs the management cluster: it stores its state there, reads the identity that is a part of the state, or
// authenticates and authorizes clients of metrics there.
func (o *Options) needsManagement() bool {
	return o.Registration || o.HubKubeconfigDir == "" || o.Metrics.AuthenticatesClients()
}

func validateName(name string) []error {
	if why := validation.IsDNS1123Label(name); len(why) > 0 {
		return []error{fmt.Errorf("--cluster-name: %q is not a DNS label: %s", name, strings.Join(why, "; "))}
	}
	if err := registration.CheckName(name); err != nil {
		return []error{fmt.Errorf("--cluster-name: %w", err)}
	}
	return nil
}

// validateScope returns errors for flags that an agent with rights in one namespace must not have.
func (o *Options) validateScope() (errs []error) {
	if !o.Spoke.NamespaceScoped {
		return nil
	}
	if o.Registration && o.ClusterName == "" {
		errs = append(errs, errors.New("--namespace-scoped needs --cluster-name: the default is the cluster's id, and the agent has no right to read it"))
	}
	if o.ClusterLabels.Detect {
		errs = append(errs, errors.New("--detect-cluster-labels must not be set with --namespace-scoped: it needs the right to list nodes"))
	}
	if o.Works.Namespace != "" && o.Works.Namespace != o.Spoke.Namespace {
		errs = append(errs, fmt.Errorf("--works-namespace must be %q or not be set with --namespace-scoped, not %q: the agent has rights in --namespace alone",
			o.Spoke.Namespace, o.Works.Namespace))
	}
	return errs
}

// validateHubs returns the errors of the flags of an agent with several hubs.
func (o *Options) validateHubs() (errs []error) {
	errs = o.Hubs.Validate()
	if len(o.Hubs.Files) == 0 {
		return errs
	}
	if o.BootstrapKubeconfig != "" {
		errs = append(errs, fmt.Errorf("--bootstrap-kubeconfig must not be set with --%s: name its file there", hubs.FlagFiles))
	}
	if !o.Registration {
		errs = append(errs, fmt.Errorf("--%s must not be set with --registration=false: it is for getting an identity", hubs.FlagFiles))
	}
	if chosen := o.Drivers.Named(o.Auth); chosen != nil && chosen.Names()[0] != csr.Name {
		errs = append(errs, fmt.Errorf("--%s needs --registration-auth=%s: an identity by %s is for one hub", hubs.FlagFiles, csr.Name, o.Auth))
	}
	return errs
}

// validateEdge returns the errors of the flags of an edge node.
func (o *Options) validateEdge() (errs []error) {
	errs = o.Edge.Validate()
	if !o.Edge.Enabled {
		return errs
	}
	if !o.Registration {
		errs = append(errs, errors.New("--edge needs --registration: the agent that registers the cluster reports its facts"))
	}
	if o.works().Namespace == "" && slices.Contains(o.Spoke.Own(), o.Edge.Namespace) {
		errs = append(errs, fmt.Errorf("--edge-namespace must not be %q, which is the agent's own: services that can read Secrets there could act as the agent",
			o.Edge.Namespace))
	}
	return errs
}

func (o *Options) validateServer() (errs []error) {
	if _, err := o.addresses(); err != nil {
		errs = append(errs, err)
	}
	if o.ServerURL == "" {
		if o.ServerCAFile != "" {
			errs = append(errs, errors.New("--cluster-ca-file needs --cluster-server-url"))
		}
		return errs
	}
	if err := registration.CheckAddress(clusterv1.ClientConfig{URL: o.ServerURL}); err != nil {
		errs = append(errs, fmt.Errorf("--cluster-server-url: %w", err))
	}
	if _, err := o.serverCA(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// cluster returns the ManagedCluster's configuration from the flags.
func (o *Options) cluster() (*hub.ClusterConfig, error) {
	ca, err := o.serverCA()
	if err != nil {
		return nil, err
	}
	more, err := o.addresses()
	return &hub.ClusterConfig{Name: o.ClusterName, ServerURL: o.ServerURL, ServerCA: ca, Addresses: more, Annotations: o.ClusterAnnotations,
		LeaseSeconds: o.LeaseSeconds}, err
}

func (o *Options) addresses() ([]clusterv1.ClientConfig, error) {
	if o.Addresses == "" {
		return nil, nil
	}
	all, err := registration.ParseAddresses(o.Addresses)
	if err != nil {
		return nil, fmt.Errorf("--cluster-addresses %w", err)
	}
	return all, nil
}

func (o *Options) serverCA() ([]byte, error) {
	if o.ServerCAFile == "" {
		return nil, nil
	}
	ca, err := os.ReadFile(o.ServerCAFile)
	if err != nil {
		return nil, fmt.Errorf("--cluster-ca-file: %w", err)
	}
	if _, err := cert.ParseCertsPEM(ca); err != nil {
		return nil, fmt.Errorf("--cluster-ca-file: %s has no PEM certificates", o.ServerCAFile)
	}
	return ca, nil
}

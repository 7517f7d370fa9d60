// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net/url"
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

	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// annotationPrefix begins the annotations that an agent may be told to put on its cluster.
	annotationPrefix    = registration.AgentAnnotationPrefix
	defaultLeaseSeconds = 60

	authCSR = "csr"
	authAWS = "awsirsa"
	// authAWSOfSeed is the same, as the specification of the registration spells it.
	authAWSOfSeed = "aws-irsa"
)

// Options are hub-agent's flags.
type Options struct {
	Spoke SpokeOptions

	// BootstrapKubeconfig is the file with the way to the hub for a cluster that has no identity yet. Without it the secret
	// registration.BootstrapSecret is read.
	BootstrapKubeconfig string
	// ClusterName is the cluster's name on the hub. The default is that of the secret, and then the cluster's id.
	ClusterName string
	// ServerURL is the https address of the cluster's API server, for the hub's users, and ServerCAFile the PEM file by which
	// it is trusted.
	ServerURL    string
	ServerCAFile string
	// ClusterAnnotations are put on the ManagedCluster; their names begin with annotationPrefix.
	ClusterAnnotations map[string]string
	// LeaseSeconds is the lease duration that the cluster is made with. Afterwards the hub's counts.
	LeaseSeconds int32
	MaxClaims    int

	// Auth is how the cluster gets its identity: csr or awsirsa.
	Auth string
	// CertSeconds is the life of certificates that is asked for; 0 leaves it to the hub.
	CertSeconds     int32
	HubARN          string
	ManagedARN      string
	EKSTokenCommand string

	// HealthAddress and MetricsAddress are host:port of plain HTTP; "0" turns one off.
	HealthAddress  string
	MetricsAddress string

	FeatureGate featuregate.MutableVersionedFeatureGate
	Logs        *logsapi.LoggingConfiguration
}

// SpokeOptions are the way to the agent's own cluster.
type SpokeOptions struct {
	// Kubeconfig is a file; the pod's own identity is used when it is empty.
	Kubeconfig string
	// Namespace is where the agent keeps its secret.
	Namespace string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	gate := featuregate.NewFeatureGate()
	utilruntime.Must(logsapi.AddFeatureGates(gate))
	return &Options{
		Spoke:           SpokeOptions{Namespace: registration.AgentNamespace},
		LeaseSeconds:    defaultLeaseSeconds,
		MaxClaims:       20,
		Auth:            authCSR,
		EKSTokenCommand: tokenCommandOwn,
		HealthAddress:   "127.0.0.1:8082",
		MetricsAddress:  "0",
		FeatureGate:     gate,
		Logs:            logsapi.NewLoggingConfiguration(),
	}
}

// logFlags is the group of the flags that subcommands have, too.
const logFlags = "logs"

// Flags returns the flags, grouped for --help.
func (o *Options) Flags() (fss cliflag.NamedFlagSets) {
	o.Spoke.addFlags(fss.FlagSet("managed cluster"))
	o.addClusterFlags(fss.FlagSet("managed cluster"))
	o.addRegistrationFlags(fss.FlagSet("registration"))
	fs := fss.FlagSet("endpoints")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress,
		"Address of /healthz and /readyz, plain HTTP. Port 0 is any free port, the address 0 is none.")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress,
		"Address of /metrics, plain HTTP for whoever reaches it. Port 0 is any free port, the address 0 is none.")
	o.FeatureGate.AddFlag(fss.FlagSet("features"))
	logsapi.AddFlags(o.Logs, fss.FlagSet(logFlags))
	return fss
}

func (o *SpokeOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "spoke-kubeconfig", o.Kubeconfig,
		"Path of the kubeconfig of the managed cluster. Inside a cluster, the default is that cluster and the pod's "+
			"service account.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace on the managed cluster of the agent's secrets. It has to exist.")
}

func (o *Options) addClusterFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ClusterName, "cluster-name", o.ClusterName,
		"Name of the cluster on the hub, a DNS label. The default is the name that it has there already, and for a new "+
			"cluster the UID of its namespace kube-system.")
	fs.StringVar(&o.ServerURL, "cluster-server-url", o.ServerURL,
		"https URL of the managed cluster's API server, for users of the hub.")
	fs.StringVar(&o.ServerCAFile, "cluster-ca-file", o.ServerCAFile,
		"PEM file with the certificates by which --cluster-server-url is trusted. The default is the system's roots.")
	fs.StringToStringVar(&o.ClusterAnnotations, "cluster-annotations", o.ClusterAnnotations,
		"Annotations of the ManagedCluster, k=v,…; their names have to begin with "+annotationPrefix+".")
	fs.Int32Var(&o.LeaseSeconds, "lease-duration-seconds", o.LeaseSeconds,
		"Lease duration of a cluster that is new to the hub. Afterwards the one on the hub counts.")
	fs.IntVar(&o.MaxClaims, "max-custom-cluster-claims", o.MaxClaims,
		"How many ClusterClaims of the managed cluster are told to the hub, beside those that the agent makes itself.")
}

func (o *Options) addRegistrationFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.BootstrapKubeconfig, "bootstrap-kubeconfig", o.BootstrapKubeconfig,
		"Path of the kubeconfig of the hub for a cluster that has no identity yet. The default is the key "+
			registration.KeyKubeconfig+" of the secret "+registration.BootstrapSecret+" in --namespace.")
	fs.StringVar(&o.Auth, "registration-auth", o.Auth,
		"How the cluster gets its identity: "+authCSR+" (a client certificate) or "+authAWS+" (AWS IAM; also spelled "+
			authAWSOfSeed+").")
	fs.Int32Var(&o.CertSeconds, "client-cert-expiration-seconds", o.CertSeconds,
		"Life of client certificates to ask for, at least 600. 0 leaves it to the hub.")
	fs.StringVar(&o.HubARN, "hub-cluster-arn", o.HubARN, "ARN of the hub's EKS cluster, for "+authAWS+".")
	fs.StringVar(&o.HubARN, "eks-hub-cluster-arn", o.HubARN, "The same as --hub-cluster-arn.")
	fs.StringVar(&o.ManagedARN, "managed-cluster-arn", o.ManagedARN, "ARN of the managed EKS cluster, for "+authAWS+".")
	fs.StringVar(&o.EKSTokenCommand, "eks-token-command", o.EKSTokenCommand,
		"Command by which the kubeconfig in the secret gets tokens, for "+authAWS+": "+tokenCommandOwn+" (hub-agent "+
			"eks-token) or "+tokenCommandAWS+" (aws eks get-token).")
}

// Validate returns every error of the flags at once.
func (o *Options) Validate() error {
	errs := o.Spoke.validate()
	if o.ClusterName != "" {
		errs = append(errs, validateName(o.ClusterName)...)
	}
	errs = append(errs, o.validateServer()...)
	for name := range o.ClusterAnnotations {
		if !strings.HasPrefix(name, annotationPrefix) {
			errs = append(errs, fmt.Errorf("--cluster-annotations: %q must begin with %s", name, annotationPrefix))
		}
	}
	if o.LeaseSeconds <= 0 {
		errs = append(errs, fmt.Errorf("--lease-duration-seconds must be above 0, not %d", o.LeaseSeconds))
	}
	if o.MaxClaims < 0 {
		errs = append(errs, fmt.Errorf("--max-custom-cluster-claims must not be below 0, as %d is", o.MaxClaims))
	}
	if o.CertSeconds != 0 && o.CertSeconds < 600 {
		errs = append(errs, fmt.Errorf("--client-cert-expiration-seconds must be 0 or at least 600, not %d", o.CertSeconds))
	}
	switch o.Auth {
	case authCSR:
	case authAWS, authAWSOfSeed:
		if _, err := o.roles(); err != nil {
			errs = append(errs, err)
		}
		if !slices.Contains([]string{tokenCommandOwn, tokenCommandAWS}, o.EKSTokenCommand) {
			errs = append(errs, fmt.Errorf("--eks-token-command must be %s or %s, not %q", tokenCommandOwn, tokenCommandAWS,
				o.EKSTokenCommand))
		}
	default:
		errs = append(errs, fmt.Errorf("--registration-auth must be %s or %s, not %q", authCSR, authAWS, o.Auth))
	}
	return utilerrors.NewAggregate(errs)
}

func (o *SpokeOptions) validate() (errs []error) {
	if o.Kubeconfig == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		errs = append(errs, errors.New("--spoke-kubeconfig must name the kubeconfig of the managed cluster when hub-agent "+
			"runs outside of it"))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace must not be empty"))
	}
	return errs
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

func (o *Options) validateServer() (errs []error) {
	if o.ServerURL == "" {
		if o.ServerCAFile != "" {
			errs = append(errs, errors.New("--cluster-ca-file needs --cluster-server-url"))
		}
		return errs
	}
	if u, err := url.Parse(o.ServerURL); err != nil || u.Scheme != "https" || u.Host == "" {
		errs = append(errs, fmt.Errorf("--cluster-server-url must be an https URL, not %q", o.ServerURL))
	}
	if _, err := o.serverCA(); err != nil {
		errs = append(errs, err)
	}
	return errs
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

// roles are the IAM roles of the cluster.
func (o *Options) roles() (irsa.Identity, error) {
	hub, err := irsa.ParseClusterARN(o.HubARN)
	if err != nil {
		return irsa.Identity{}, fmt.Errorf("--hub-cluster-arn: %w", err)
	}
	managed, err := irsa.ParseClusterARN(o.ManagedARN)
	if err != nil {
		return irsa.Identity{}, fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	roles, err := irsa.NewIdentity(hub, managed)
	if err != nil {
		return irsa.Identity{}, fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	return roles, nil
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/clusteracceptance"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/clustercertificates"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/csr"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/leftoverclusters"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// ManagedClusterAutoApproval is the feature gate of clusters that are accepted without an admin.
const ManagedClusterAutoApproval featuregate.Feature = "ManagedClusterAutoApproval"

// DriverOptions are what the constructors of registration drivers may need.
type DriverOptions struct {
	// Hub is the way to the hub's kube-apiserver, and Cached reads what the controllers watch.
	Hub    *rest.Config
	Cached client.Reader
	// CheckInterval is how often what a cluster was granted is checked; 0 is never.
	CheckInterval time.Duration

	AutoApprovedCSRIdentities []string
	AutoApprovedARNPatterns   []string
	HubClusterARN             string
	EKSAccess                 string
	AWSResourceTags           map[string]string
}

// NewDriver makes a driver, or says what of the options is wrong. It asks nobody.
type NewDriver func(context.Context, DriverOptions) (driver.Driver, error)

// builtinDrivers are the drivers by their names.
func builtinDrivers() map[string]NewDriver {
	return map[string]NewDriver{
		csr.Name: func(_ context.Context, o DriverOptions) (driver.Driver, error) {
			return csr.New(o.Cached, o.AutoApprovedCSRIdentities), nil
		},
		awsirsa.Name: newAWSIRSA,
	}
}

func newAWSIRSA(ctx context.Context, o DriverOptions) (driver.Driver, error) {
	hub, err := irsa.ParseClusterARN(o.HubClusterARN)
	if err != nil {
		return nil, fmt.Errorf("--hub-cluster-arn: %w", err)
	}
	config, err := awsirsa.LoadConfig(ctx, hub.Region)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(o.Hub)
	if err != nil {
		return nil, err
	}
	return awsirsa.New(awsirsa.Config{
		HubClusterARN: o.HubClusterARN, AWS: config, Access: awsirsa.Access(o.EKSAccess), Kube: client, Tags: o.AWSResourceTags,
		ApprovedARNPatterns: o.AutoApprovedARNPatterns, CheckInterval: o.CheckInterval,
	})
}

// otherSpellings are the names of drivers in specifications that upstream did not keep.
var otherSpellings = map[string]string{"aws-irsa": awsirsa.Name}

// RegistrationOptions say how clusters register.
type RegistrationOptions struct {
	// Drivers are the names of those that are enabled; without any, this process leaves registration to another.
	Drivers []string
	// Known are the drivers that can be enabled.
	Known map[string]NewDriver

	DriftCheckInterval        time.Duration
	AutoApprovedCSRIdentities []string
	AutoApprovedARNPatterns   []string
	HubClusterARN             string
	EKSAccess                 string
	AWSResourceTags           []string

	// The flags of single controllers.
	Acceptance   clusteracceptance.Options
	Leftovers    leftoverclusters.Options
	Certificates clustercertificates.Options
}

func newRegistrationOptions() RegistrationOptions {
	return RegistrationOptions{
		Drivers: []string{csr.Name}, Known: builtinDrivers(), DriftCheckInterval: time.Hour, EKSAccess: "access-entry",
		Certificates: clustercertificates.Options{MaxLifetime: 365 * 24 * time.Hour},
	}
}

func (o *RegistrationOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Drivers, "registration-drivers", o.Drivers,
		"How clusters may register: "+strings.Join(o.known(), ", ")+", or several of them. Of several that handle a cluster, the "+
			"first counts. Empty leaves registration to another process.")
	o.Acceptance.AddFlags(fs)
	o.Leftovers.AddFlags(fs)
	o.Certificates.AddFlags(fs)
	fs.DurationVar(&o.DriftCheckInterval, "drift-check-interval", o.DriftCheckInterval,
		"How often the hub checks and repairs what it made for a cluster outside of the hub, such as IAM roles. 0 means never.")
	fs.StringSliceVar(&o.AutoApprovedCSRIdentities, "auto-approved-csr-identities", o.AutoApprovedCSRIdentities,
		"Users whose certificate requests get the cluster accepted without an admin. Needs the feature gate "+
			string(ManagedClusterAutoApproval)+".")
	fs.StringSliceVar(&o.AutoApprovedARNPatterns, "auto-approved-arn-patterns", o.AutoApprovedARNPatterns,
		"Regular expressions of the ARNs of EKS clusters that are accepted without an admin, if the cluster's name is what the "+
			"group (?P<name>…) matches or, without that group, the name of the EKS cluster. Needs the feature gate "+
			string(ManagedClusterAutoApproval)+".")
	fs.StringVar(&o.HubClusterARN, "hub-cluster-arn", o.HubClusterARN,
		"ARN of the EKS cluster that the hub runs on. The driver awsirsa needs it.")
	fs.StringVar(&o.EKSAccess, "eks-access", o.EKSAccess,
		"How EKS is told of a cluster's role: access-entry, or aws-auth for hubs that authenticate by that ConfigMap.")
	fs.StringSliceVar(&o.AWSResourceTags, "aws-resource-tags", o.AWSResourceTags,
		"Tags of what is made in AWS, such as team=platform.")
}

func (o *RegistrationOptions) known() []string { return slices.Sorted(maps.Keys(o.Known)) }

// enabled are the names of the drivers as the drivers spell them, each once.
func (o *RegistrationOptions) enabled() (enabled []string) {
	for _, name := range o.Drivers {
		name = strings.TrimSpace(name)
		if spelled, ok := otherSpellings[name]; ok {
			name = spelled
		}
		if name != "" && !slices.Contains(enabled, name) {
			enabled = append(enabled, name)
		}
	}
	return enabled
}

func (o *RegistrationOptions) validate(autoApproval bool) (errs []error) {
	for _, name := range o.enabled() {
		if _, ok := o.Known[name]; !ok {
			errs = append(errs, fmt.Errorf("--registration-drivers: there is no driver %q; there are: %s", name, strings.Join(o.known(), ", ")))
		}
	}
	if o.Leftovers.TTL < 0 || o.DriftCheckInterval < 0 {
		errs = append(errs, fmt.Errorf("--leftover-ttl and --drift-check-interval must not be below 0, not %s and %s",
			o.Leftovers.TTL, o.DriftCheckInterval))
	}
	if err := o.Certificates.Validate(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.tags(); err != nil {
		errs = append(errs, err)
	}
	for _, user := range slices.Concat(o.Certificates.BootstrapUsers, o.AutoApprovedCSRIdentities) {
		if !agentcsr.MayBeNamed(user) {
			errs = append(errs, fmt.Errorf("--bootstrap-identities and --auto-approved-csr-identities: %q is a user of Kubernetes or of the "+
				"hub itself, whose requests hub-certificate-approver may not approve: name another user", user))
		}
	}
	if !autoApproval && len(o.AutoApprovedCSRIdentities)+len(o.AutoApprovedARNPatterns) > 0 {
		errs = append(errs, fmt.Errorf("--auto-approved-csr-identities and --auto-approved-arn-patterns need "+
			"--feature-gates=%s=true", ManagedClusterAutoApproval))
	}
	return errs
}

func (o *RegistrationOptions) tags() (map[string]string, error) {
	tags := map[string]string{}
	for _, tag := range o.AWSResourceTags {
		key, value, ok := strings.Cut(tag, "=")
		if !ok || key == "" || value == "" {
			return nil, fmt.Errorf("--aws-resource-tags: %q is not of the form key=value", tag)
		}
		if _, twice := tags[key]; twice {
			return nil, fmt.Errorf("--aws-resource-tags: the key %q is there twice", key)
		}
		tags[key] = value
	}
	return tags, nil
}

// drivers makes the drivers that are enabled.
func (o *RegistrationOptions) drivers(ctx context.Context, hub *rest.Config, cached client.Reader) (driver.Drivers, error) {
	tags, err := o.tags()
	if err != nil {
		return nil, err
	}
	options := DriverOptions{
		Hub: hub, Cached: cached, CheckInterval: o.DriftCheckInterval,
		AutoApprovedCSRIdentities: o.AutoApprovedCSRIdentities, AutoApprovedARNPatterns: o.AutoApprovedARNPatterns,
		HubClusterARN: o.HubClusterARN, EKSAccess: o.EKSAccess, AWSResourceTags: tags,
	}
	var drivers driver.Drivers
	for _, name := range o.enabled() {
		construct, ok := o.Known[name]
		if !ok {
			return nil, fmt.Errorf("there is no registration driver %q", name)
		}
		driver, err := construct(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("registration driver %s: %w", name, err)
		}
		drivers = append(drivers, driver)
	}
	return drivers, nil
}

// ofClusters keeps out of the caches what belongs to no cluster.
func ofClusters() map[client.Object]cache.ByObject {
	labelled, err := labels.NewRequirement(registration.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is no label: a mistake in the program
	}
	only := cache.ByObject{Label: labels.NewSelector().Add(*labelled)}
	return map[client.Object]cache.ByObject{
		&corev1.Namespace{}:                         only,
		&rbacv1.ClusterRole{}:                       only,
		&rbacv1.ClusterRoleBinding{}:                only,
		&rbacv1.RoleBinding{}:                       only,
		&coordinationv1.Lease{}:                     only,
		&certificatesv1.CertificateSigningRequest{}: only,
	}
}

// newMapper maps kinds to resources as the hub's kube-apiserver says. Of the kinds in ofClusters it is not asked: caches are
// set up before it can be reached, and every kube-apiserver serves them.
func newMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	known.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	known.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	known.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	known.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	known.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, dynamic}}, nil
}

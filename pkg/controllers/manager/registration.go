// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
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
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/clustercertificates"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/csr"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/leftoverclusters"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// ManagedClusterAutoApproval is the feature gate for accepting clusters without an admin.
const ManagedClusterAutoApproval featuregate.Feature = driver.AutoApprovalGate

// otherSpellings are the names of drivers in specifications that upstream did not keep.
var otherSpellings = map[string]string{"aws-irsa": awsirsa.Name}

// RegistrationOptions are the settings of registration.
type RegistrationOptions struct {
	// Drivers are the names of the enabled drivers; without any, this process leaves registration to another.
	Drivers []string
	// Kinds are the drivers that can be enabled, with their flags.
	Kinds []driver.Factory
	// csr is one of them: users that it accepts without an admin may also request certificates.
	csr *csr.Factory

	DriftCheckInterval time.Duration

	// The flags of single controllers.
	AgentRoles   agentroles.Options
	Leftovers    leftoverclusters.Options
	Certificates clustercertificates.Options
}

func newRegistrationOptions() RegistrationOptions {
	byCertificate := &csr.Factory{}
	return RegistrationOptions{
		Drivers: []string{csr.Name}, DriftCheckInterval: time.Hour,
		// A new driver is added to this list.
		Kinds: []driver.Factory{byCertificate, awsirsa.NewKind()}, csr: byCertificate,
		AgentRoles: agentroles.NewOptions(), Certificates: clustercertificates.Options{MaxLifetime: 365 * 24 * time.Hour},
	}
}

func (o *RegistrationOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Drivers, "registration-drivers", o.Drivers,
		"Comma-separated list of the drivers with which clusters may register: "+strings.Join(o.known(), ", ")+". If several handle a cluster, "+
			"the first one is used. If empty, this process does not handle registration.")
	o.AgentRoles.AddFlags(fs)
	o.Leftovers.AddFlags(fs)
	o.Certificates.AddFlags(fs)
	fs.DurationVar(&o.DriftCheckInterval, "drift-check-interval", o.DriftCheckInterval,
		"The interval at which the hub checks and repairs the objects that it created for a cluster outside of the hub, such as IAM roles. "+
			"0 disables the checks.")
	for _, kind := range o.Kinds {
		kind.AddFlags(fs)
	}
}

func (o *RegistrationOptions) known() (names []string) {
	for _, kind := range o.Kinds {
		names = append(names, kind.Name())
	}
	slices.Sort(names)
	return names
}

// kind returns a driver that can be enabled, or nil.
func (o *RegistrationOptions) kind(name string) driver.Factory {
	for _, kind := range o.Kinds {
		if kind.Name() == name {
			return kind
		}
	}
	return nil
}

// enabled returns the names of the enabled drivers in their own spelling, without duplicates.
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
		if o.kind(name) == nil {
			errs = append(errs, fmt.Errorf("--registration-drivers: unknown driver %q, use one of %s", name, strings.Join(o.known(), ", ")))
		}
	}
	if o.Leftovers.TTL < 0 || o.DriftCheckInterval < 0 {
		errs = append(errs, fmt.Errorf("--leftover-ttl and --drift-check-interval must not be below 0, not %s and %s",
			o.Leftovers.TTL, o.DriftCheckInterval))
	}
	errs = append(errs, o.AgentRoles.Validate()...)
	errs = append(errs, o.Certificates.Validate()...)
	for _, kind := range o.Kinds {
		errs = append(errs, kind.Validate(autoApproval)...)
	}
	return errs
}

// drivers returns the enabled drivers.
func (o *RegistrationOptions) drivers(ctx context.Context, hub *rest.Config, cached client.Reader) (driver.Drivers, error) {
	options := driver.Options{Hub: hub, Cached: cached, CheckInterval: o.DriftCheckInterval}
	var drivers driver.Drivers
	for _, name := range o.enabled() {
		kind := o.kind(name)
		if kind == nil {
			return nil, fmt.Errorf("unknown registration driver %q", name)
		}
		driver, err := kind.New(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("registration driver %s: %w", name, err)
		}
		drivers = append(drivers, driver)
	}
	return drivers, nil
}

// ofClusters limits the caches to objects of clusters.
func ofClusters() map[client.Object]cache.ByObject {
	labelled, err := labels.NewRequirement(registration.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		panic(err) // an invalid label is a bug
	}
	only := cache.ByObject{Label: labels.NewSelector().Add(*labelled)}
	return map[client.Object]cache.ByObject{
		&corev1.Namespace{}: only,
		// A process may read no other ConfigMaps.
		&corev1.ConfigMap{}:                         {Namespaces: map[string]cache.Config{record.Namespace: {LabelSelector: only.Label}}},
		&rbacv1.ClusterRole{}:                       only,
		&rbacv1.ClusterRoleBinding{}:                only,
		&rbacv1.RoleBinding{}:                       only,
		&coordinationv1.Lease{}:                     only,
		&certificatesv1.CertificateSigningRequest{}: only,
	}
}

// newMapper maps kinds to resources by discovery of the hub's kube-apiserver, except for the kinds in ofClusters: caches are set up before the
// server can be reached, and every kube-apiserver serves them.
func newMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	known.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	// A cache of some namespaces needs the mapping of lists, too.
	known.Add(corev1.SchemeGroupVersion.WithKind("ConfigMapList"), meta.RESTScopeNamespace)
	known.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	known.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	known.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	known.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	known.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, dynamic}}, nil
}

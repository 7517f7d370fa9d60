// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentroles

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const name = "agentroles"

// The ways in which agents get their rights outside of the namespaces of their clusters.
const (
	// Shared is one role for all agents.
	Shared = "shared"
	// PerCluster is a role for each cluster, with the name of the cluster in its rules.
	PerCluster = "per-cluster"
)

// PerClusterComponent is the component of artifacts/deploy with the permissions that PerCluster needs.
const PerClusterComponent = "per-cluster-roles"

// Options are the flags of the controller.
type Options struct {
	// Roles is Shared or PerCluster.
	Roles string
	// ListCSRs lets agents list and watch the certificate requests of the whole hub, as agents of upstream do.
	ListCSRs bool
	// Service is the Service of hub-apiserver, as NAMESPACE/NAME.
	Service string
}

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{Roles: Shared, Service: "clusterhub-system/hub-apiserver"}
}

const (
	rolesFlag   = "agent-roles"
	serviceFlag = "hub-apiserver-service"
)

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Roles, rolesFlag, o.Roles,
		"The way in which the agents of accepted clusters get their rights outside of their namespaces: shared uses one ClusterRole for all "+
			"clusters, while hub-apiserver serves them, and per-cluster one ClusterRole for each cluster, which requires the rights of "+
			"artifacts/deploy/"+PerClusterComponent+".")
	fs.BoolVar(&o.ListCSRs, "agents-list-csrs", o.ListCSRs,
		"If true, the agents of accepted clusters may list and watch all certificate signing requests of the hub. Open Cluster "+
			"Management's agents do so, hub-agent does not.")
	fs.StringVar(&o.Service, serviceFlag, o.Service,
		"The Service of hub-apiserver, as NAMESPACE/NAME. The shared ClusterRole is bound only while all APIServices of "+clusterv1.GroupName+
			" refer to it, and the ClusterRole for works only while those of "+workv1.GroupName+" do so, too.")
}

// Validate returns the errors of the flags.
func (o Options) Validate() (errs []error) {
	if o.Roles != Shared && o.Roles != PerCluster {
		errs = append(errs, fmt.Errorf("--%s must be %s or %s, not %q", rolesFlag, Shared, PerCluster, o.Roles))
	}
	if namespace, name, _ := strings.Cut(o.Service, "/"); namespace == "" || name == "" || strings.Contains(name, "/") {
		errs = append(errs, fmt.Errorf("--%s must be NAMESPACE/NAME of a Service, not %q", serviceFlag, o.Service))
	}
	return errs
}

// Controller returns the name, the setup and the permissions of the controller.
func (o Options) Controller() kit.Controller {
	setup := func(_ context.Context, mgr ctrl.Manager) error { return SetupWithManager(mgr, o) }
	rbac := rbacv1.SchemeGroupVersion
	return kit.Controller{Name: name, Setup: setup, Rights: []kit.Right{
		kit.On(apiregistrationv1.SchemeGroupVersion, "apiservices", "list", "watch"),
		kit.On(rbac, "clusterrolebindings", "get", "list", "watch", "delete"),
		// Apply creates an object by its name, so these permissions can be limited to names.
		kit.On(rbac, "clusterrolebindings", "create", "patch").Named(ClusterRole, ListCSRsClusterRole, WorksClusterRole),
		kit.On(rbac, "clusterroles", "bind").Named(ClusterRole, ListCSRsClusterRole, WorksClusterRole),
		// To find clusters that have roles of their own, and those that need one.
		kit.On(rbac, "clusterroles", "get", "list", "watch"),
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch"),
		kit.On(corev1.SchemeGroupVersion, "configmaps", "list", "watch").In(record.Namespace),
	}}
}

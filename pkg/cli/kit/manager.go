// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

// Manager is the registration configuration of hub-controller-manager, as far as its Deployment shows it.
type Manager struct {
	// Drivers are the enabled drivers, or csr if none are set.
	Drivers []string
	Stated  bool
	HubARN  string
	// RolePath and Boundary apply to the roles that it creates.
	RolePath, Boundary string
}

// Manager reads the Deployment. It returns nil if the Deployment does not exist or the user may not get it: a hub can run in other ways.
func (h *HubClient) Manager(ctx context.Context) *Manager {
	deployment, err := h.Kube.AppsV1().Deployments(deploy.ManagerNamespace).Get(ctx, deploy.Manager, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	m := &Manager{}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name != deploy.Manager {
			continue
		}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.ParseErrorsAllowlist.UnknownFlags = true
		fs.StringSliceVar(&m.Drivers, "registration-drivers", []string{AuthCSR}, "")
		fs.StringVar(&m.HubARN, "hub-cluster-arn", "", "")
		fs.StringVar(&m.RolePath, RolePathFlag, "", "")
		fs.StringVar(&m.Boundary, BoundaryFlag, "", "")
		if fs.Parse(slices.Concat(container.Command, container.Args)) == nil {
			m.Stated = fs.Changed("registration-drivers")
			return m
		}
	}
	return nil
}

// Unhandled returns why nothing would register a cluster. It returns "" if that is not known: other programs may register it with a driver of their
// own, or in place of the hub.
func (m *Manager) Unhandled(cluster *clusterv1.ManagedCluster) string {
	by := RegistrationOf(cluster)
	if m == nil || len(m.Drivers) == 0 || slices.Contains(m.Drivers, by) ||
		slices.ContainsFunc(m.Drivers, func(d string) bool { return d != AuthCSR && d != AuthAWS }) {
		return ""
	}
	return fmt.Sprintf("it registers by %s, but %s runs with --registration-drivers=%s: it gets no identity until that includes %[1]s", by, deploy.Manager,
		command.Printable(strings.Join(m.Drivers, ",")))
}

// CheckARN rejects an ARN that no hub can accept. m may be nil.
func (m *Manager) CheckARN(cluster *clusterv1.ManagedCluster) error {
	managed, err := irsa.ParseClusterARN(ARNOf(cluster))
	if err == nil && m != nil && m.HubARN != "" {
		var hub irsa.ClusterARN
		hub, err = irsa.ParseClusterARN(m.HubARN)
		if err == nil {
			_, err = irsa.NewIdentity(hub, managed)
		}
	}
	if err != nil {
		return fmt.Errorf("managed cluster %s cannot register by AWS IAM: %w: delete it, and let it join again", cluster.Name, err)
	}
	return nil
}

// Runs reports whether hub-controller-manager runs with the drivers and, for AWS, with these options for roles.
func (m *Manager) Runs(drivers []string, hubARN, rolePath, boundary string) bool {
	return m != nil && !slices.ContainsFunc(drivers, func(d string) bool { return !slices.Contains(m.Drivers, d) }) &&
		(!slices.Contains(drivers, AuthAWS) || m.HubARN == hubARN && cmp.Or(m.RolePath, "/") == cmp.Or(rolePath, "/") && m.Boundary == boundary)
}

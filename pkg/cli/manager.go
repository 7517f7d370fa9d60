// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

// manager is the registration configuration of hub-controller-manager, as far as its Deployment shows it.
type manager struct {
	// drivers are the enabled drivers, or csr if none are set.
	drivers []string
	stated  bool
	hubARN  string
	// rolePath and boundary apply to the roles that it creates.
	rolePath, boundary string
}

// manager reads the Deployment. It returns nil if the Deployment does not exist or the user may not get it: a hub can run in other ways.
func (h *hub) manager(ctx context.Context) *manager {
	deployment, err := h.kube.AppsV1().Deployments(deploy.ManagerNamespace).Get(ctx, deploy.Manager, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	m := &manager{}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name != deploy.Manager {
			continue
		}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.ParseErrorsAllowlist.UnknownFlags = true
		fs.StringSliceVar(&m.drivers, "registration-drivers", []string{authCSR}, "")
		fs.StringVar(&m.hubARN, "hub-cluster-arn", "", "")
		fs.StringVar(&m.rolePath, rolePathFlag, "", "")
		fs.StringVar(&m.boundary, boundaryFlag, "", "")
		if fs.Parse(slices.Concat(container.Command, container.Args)) == nil {
			m.stated = fs.Changed("registration-drivers")
			return m
		}
	}
	return nil
}

// unhandled returns why nothing would register a cluster. It returns "" if that is not known: other programs may register it with a driver of their
// own, or in place of the hub.
func (m *manager) unhandled(cluster *clusterv1.ManagedCluster) string {
	by := registrationOf(cluster)
	if m == nil || len(m.drivers) == 0 || slices.Contains(m.drivers, by) ||
		slices.ContainsFunc(m.drivers, func(d string) bool { return d != authCSR && d != authAWS }) {
		return ""
	}
	return fmt.Sprintf("it registers by %s, but %s runs with --registration-drivers=%s: it gets no identity until that includes %[1]s", by, deploy.Manager,
		command.Printable(strings.Join(m.drivers, ",")))
}

// checkARN rejects an ARN that no hub can accept. m may be nil.
func (m *manager) checkARN(cluster *clusterv1.ManagedCluster) error {
	managed, err := irsa.ParseClusterARN(arnOf(cluster))
	if err == nil && m != nil && m.hubARN != "" {
		var hub irsa.ClusterARN
		hub, err = irsa.ParseClusterARN(m.hubARN)
		if err == nil {
			_, err = irsa.NewIdentity(hub, managed)
		}
	}
	if err != nil {
		return fmt.Errorf("managed cluster %s cannot register by AWS IAM: %w: delete it, and let it join again", cluster.Name, err)
	}
	return nil
}

// runs reports whether hub-controller-manager runs with the drivers and, for AWS, with these options for roles.
func (m *manager) runs(drivers []string, hubARN, rolePath, boundary string) bool {
	return m != nil && !slices.ContainsFunc(drivers, func(d string) bool { return !slices.Contains(m.drivers, d) }) &&
		(!slices.Contains(drivers, authAWS) || m.hubARN == hubARN && cmp.Or(m.rolePath, "/") == cmp.Or(rolePath, "/") && m.boundary == boundary)
}

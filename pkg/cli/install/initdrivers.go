// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

const (
	printFlag = "print"
	// roleAnnotation names the IAM role of the pods of a ServiceAccount for EKS.
	roleAnnotation = "eks.amazonaws.com/role-arn"
	// ownHubFor bounds the time to read ClusterManagers, which only explains another error.
	ownHubFor = 5 * time.Second
)

// registering is the desired configuration of hub-controller-manager.
type registering struct {
	drivers []string
	hubARN  string
	// role is the ARN that it assumes, if AWS is among the drivers. making are the flags for the creation of roles.
	role   string
	making []string
}

// configureDrivers configures the drivers of hub-controller-manager, or prints how to do that, unless they are already set. The default is
// certificates.
func (o *initOptions) configureDrivers(ctx context.Context, h *kit.HubClient) error {
	m := h.Manager(ctx)
	rolePath, boundary := o.rolePath, o.boundary
	if m != nil {
		rolePath, boundary = cmp.Or(rolePath, m.RolePath), cmp.Or(boundary, m.Boundary)
	}
	if o.upstream && slices.Contains(o.auths, kit.AuthAWS) && cmp.Or(rolePath, "/") != "/" {
		o.Warn("Open Cluster Management's agents expect their roles at the path /, so they cannot join by %s a hub that creates them at %s", kit.AuthAWS, rolePath)
	}
	if m.Runs(o.auths, o.hubARN, rolePath, boundary) || m == nil && slices.Equal(o.auths, []string{kit.AuthCSR}) {
		return nil
	}
	r := registering{drivers: o.auths, hubARN: o.hubARN}
	if m != nil && m.Stated { // keep the drivers that are set; for each cluster the first that handles it is used
		r.drivers = slices.Concat(slices.DeleteFunc(slices.Clone(o.auths), func(d string) bool { return slices.Contains(m.Drivers, d) }), m.Drivers)
	}
	if hub, err := irsa.ParseClusterARN(o.hubARN); err == nil && slices.Contains(r.drivers, kit.AuthAWS) {
		r.role = irsa.CreatorRoleARN(hub)
		if cmp.Or(rolePath, "/") != "/" {
			r.making = append(r.making, "--"+kit.RolePathFlag+"="+rolePath)
		}
		if boundary != "" {
			r.making = append(r.making, "--"+kit.BoundaryFlag+"="+boundary)
		}
	}
	changed, err := o.configure(ctx, h, m, &r)
	if err != nil {
		return err
	}
	o.explain(&r, changed)
	return nil
}

// explain prints how to configure hub-controller-manager or, if it is configured, how to keep it so.
func (o *initOptions) explain(r *registering, changed bool) {
	how := kit.Prefixed(" ", command.Printable(strings.Join(r.making, " ")))
	flags := "--registration-drivers=" + strings.Join(r.drivers, ",") + kit.Prefixed(" --hub-cluster-arn=", r.hubARN) + how
	text := fmt.Sprintf("%s must run with %s. Use this kustomization.yaml beside the folder artifacts of Clusterhub", deploy.Manager, flags)
	switch {
	case changed:
		text = fmt.Sprintf("%s now runs with %s. Set the same in its source, or the next deployment reverts it: use this kustomization.yaml beside the folder artifacts "+
			"of Clusterhub", deploy.Manager, flags)
	case o.printOnly:
		text += " (with --" + printFlag + " the hub is not changed)"
	}
	_, _ = fmt.Fprintf(o.ErrOut, "%s:\n\n%s\n", text, deploy.RegistrationKustomization(r.drivers, r.hubARN, r.role, r.making...))
	if r.role != "" {
		_, _ = fmt.Fprintf(o.ErrOut, "kubectl hub iam-role --hub-cluster-arn %s%s --oidc-provider ISSUER prints how to create that role.\n\n", r.hubARN, how)
	}
}

// configure changes the Deployment of hub-controller-manager and its ServiceAccount, unless another program manages them. A change that would affect
// the permissions of clusters that have joined is left to an admin.
func (o *initOptions) configure(ctx context.Context, h *kit.HubClient, m *kit.Manager, r *registering) (changed bool, err error) {
	if o.printOnly || m == nil || r.role == "" || !slices.Contains(o.auths, kit.AuthAWS) {
		return false, nil
	}
	deployment, err := h.Kube.AppsV1().Deployments(deploy.ManagerNamespace).Get(ctx, deploy.Manager, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("getting the Deployment %s: %w", deploy.Manager, err)
	}
	if why := notToConfigure(deployment, m, r, o.rolePath, o.boundary); why != "" {
		o.Warn("%s is not changed: %s", deploy.Manager, why)
		return false, nil
	}
	// Change the account first: pods get the role when they start.
	err = o.setRole(ctx, h, deployment.Spec.Template.Spec.ServiceAccountName, r.role)
	if err == nil {
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			now, err := h.Kube.AppsV1().Deployments(deploy.ManagerNamespace).Get(ctx, deploy.Manager, metav1.GetOptions{})
			if err != nil {
				return err
			}
			setFlags(now, r)
			_, err = h.Kube.AppsV1().Deployments(deploy.ManagerNamespace).Update(ctx, now, metav1.UpdateOptions{FieldManager: string(kit.FieldOwner)})
			return err
		})
	}
	if apierrors.IsForbidden(err) {
		o.Warn("%s is not changed: %v", deploy.Manager, err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("changing %s: %w", deploy.Manager, err)
	}
	return true, nil
}

// notToConfigure returns why an admin must make the change, or "".
func notToConfigure(deployment *appsv1.Deployment, m *kit.Manager, r *registering, rolePath, boundary string) string {
	labels := deployment.Labels
	switch by := labels[deploy.LabelManagedBy]; {
	case labels[operatorv1.LabelClusterManager] != "":
		return fmt.Sprintf("it belongs to the ClusterManager %s: set its spec.registrationConfiguration.registrationDrivers", command.Printable(labels[operatorv1.LabelClusterManager]))
	case by == "Helm":
		return "it is deployed by Helm: set the values of the chart"
	case m.HubARN != "" && m.HubARN != r.hubARN:
		return "it runs with --hub-cluster-arn=" + m.HubARN + ", with which clusters may have registered"
	case rolePath != "" && m.HubARN != "" && cmp.Or(m.RolePath, "/") != rolePath, boundary != "" && m.Boundary != "" && m.Boundary != boundary:
		return "clusters may have registered with roles of another path or boundary"
	}
	for _, c := range deployment.Spec.Template.Spec.Containers {
		if c.Name == deploy.Manager && slices.ContainsFunc(c.Command, func(arg string) bool { return strings.HasPrefix(arg, "--registration-drivers") }) {
			return "its command has the flags, which would override its args or be overridden by them"
		}
	}
	return ""
}

// setRole sets the role of the pods of hub-controller-manager. It does not replace a role that is already set.
func (o *initOptions) setRole(ctx context.Context, h *kit.HubClient, name, role string) error {
	accounts := h.Kube.CoreV1().ServiceAccounts(deploy.ManagerNamespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		account, err := accounts.Get(ctx, cmp.Or(name, metav1.NamespaceDefault), metav1.GetOptions{})
		if err != nil {
			return err
		}
		switch have := account.Annotations[roleAnnotation]; {
		case have == role:
			return nil
		case have != "":
			o.Warn("ServiceAccount %s/%s already has the role %s, which is not changed", account.Namespace, account.Name, have)
			return nil
		case account.Name != deploy.Manager:
			o.Warn("%s runs with the ServiceAccount %s, which others may use, too: set its role %s yourself, by the annotation %s", deploy.Manager, account.Name, role, roleAnnotation)
			return nil
		}
		metav1.SetMetaDataAnnotation(&account.ObjectMeta, roleAnnotation, role)
		_, err = accounts.Update(ctx, account, metav1.UpdateOptions{FieldManager: string(kit.FieldOwner)})
		return err
	})
}

// setFlags replaces the flags for drivers of the container, in either spelling of a flag.
func setFlags(deployment *appsv1.Deployment, r *registering) {
	flags := append([]string{"--registration-drivers=" + strings.Join(r.drivers, ","), "--hub-cluster-arn=" + r.hubARN}, r.making...)
	for i := range deployment.Spec.Template.Spec.Containers {
		c := &deployment.Spec.Template.Spec.Containers[i]
		if c.Name != deploy.Manager {
			continue
		}
		var args []string
		for j := 0; j < len(c.Args); j++ {
			name, _, joined := strings.Cut(c.Args[j], "=")
			if !slices.ContainsFunc(flags, func(flag string) bool { return strings.HasPrefix(flag, name+"=") }) {
				args = append(args, c.Args[j])
			} else if !joined {
				j++ // its value is the next argument
			}
		}
		c.Args = append(args, flags...)
	}
}

// ownHub returns what prevents a ClusterManager from making a hub of this cluster. It returns "" if there is no ClusterManager, or none that the user
// may get.
func (o *initOptions) ownHub(ctx context.Context) string {
	config, err := o.RESTConfig()
	if err != nil {
		return ""
	}
	config.Timeout = ownHubFor
	c, err := client.New(config, client.Options{Scheme: kit.Scheme})
	if err != nil {
		return ""
	}
	all := &operatorv1.ClusterManagerList{}
	if err := c.List(ctx, all); err != nil {
		return ""
	}
	for i := range all.Items {
		cm := &all.Items[i]
		if cm.IsDetached() || !cm.DeletionTimestamp.IsZero() {
			continue
		}
		if why := whyNot(cm.Status.Conditions, cm.Generation, operatorv1.ConditionClusterManagerApplied, operatorv1.ConditionClusterManagerAvailable); why != "" {
			return fmt.Sprintf("the ClusterManager %s, which deploys the hub here, reports: %s", cm.Name, why)
		}
	}
	return ""
}

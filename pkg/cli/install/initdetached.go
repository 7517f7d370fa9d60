// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	nameFlag          = "name"
	serverAddressFlag = "server-address"
	// upstreamAgents is the component of a hub that Open Cluster Management's agents can join.
	upstreamAgents = "upstream-agents"
)

// outsideHub are the flags of init for a hub whose servers run on another cluster.
type outsideHub struct {
	management.ModeFlags
	operator management.OperatorFlags
	hub      management.Source
	name     string
	address  string

	host string
	port int64
}

func (o *outsideHub) addTo(cmd *cobra.Command, version string) {
	fs := cmd.Flags()
	o.hub = management.Source{Flag: management.HubKubeconfigFlag, What: "the hub"}
	o.AddModeTo(cmd, "Where the servers of the hub run: "+management.ModeDefault+" is on the hub, where they must already run, "+management.ModeDetached+" on a management cluster, "+
		"in the namespace <name>-open-cluster-management-hub there, and "+management.ModeHosted+" in the namespace <name> there, as Open Cluster Management has it.")
	o.AddManagementTo(fs)
	fs.StringVar(&o.hub.File, management.HubKubeconfigFlag, "", "File with the kubeconfig of an admin of the cluster that becomes the hub, for --"+management.ModeFlag+"="+management.ModeDetached+
		". hub-operator creates accounts with fewer rights by it. It must not need a program or files of this machine to authenticate.")
	fs.StringVar(&o.hub.Context, "hub-context", "", "Context of --"+management.HubKubeconfigFlag+". Defaults to its current context.")
	fs.StringVar(&o.name, nameFlag, "", "Name of the ClusterManager on the management cluster, for --"+management.ModeFlag+"="+management.ModeDetached+".")
	fs.StringVar(&o.address, serverAddressFlag, "", "HOST or HOST:PORT at which the kube-apiserver of the hub reaches hub-apiserver, for --"+management.ModeFlag+"="+management.ModeDetached+
		". Defaults to the name of its Service on the management cluster, which a kube-apiserver that runs there can resolve. The port defaults to 443.")
	o.operator.AddTo(fs, version)
}

func (o *outsideHub) validate(init *initOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if !o.IsOutside() {
		if o.hub.File != "" || o.hub.Context != "" || o.name != "" || o.address != "" {
			return fmt.Errorf("--%s, --hub-context, --%s and --%s are for --%s=%s", management.HubKubeconfigFlag, nameFlag, serverAddressFlag, management.ModeFlag, management.ModeDetached)
		}
		return nil
	}
	if o.name == "" {
		return fmt.Errorf("--%s must be set: the name of the ClusterManager on the management cluster", nameFlag)
	}
	if err := management.CheckName(nameFlag, o.name, o.namespace()); err != nil {
		return err
	}
	if !slices.Equal(init.auths, []string{kit.AuthCSR}) {
		return fmt.Errorf("--registration-auth must be %s with --%s=%s: for others, set spec.registrationConfiguration.registrationDrivers of the ClusterManager, and run "+
			"kubectl hub get token --registration-auth=%s", kit.AuthCSR, management.ModeFlag, o.Mode, kit.AuthAWS)
	}
	if err := o.parseAddress(); err != nil {
		return err
	}
	if err := o.operator.Validate(); err != nil {
		return err
	}
	return o.hub.Read()
}

func (o *outsideHub) parseAddress() error {
	if o.address == "" {
		return nil
	}
	o.host, o.port = o.address, 443
	if host, port, err := net.SplitHostPort(o.address); err == nil && !strings.Contains(o.address, "/") {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return fmt.Errorf("--%s: the port must be a number from 1 to 65535, not %q", serverAddressFlag, port)
		}
		o.host, o.port = host, int64(number)
	}
	if net.ParseIP(o.host) == nil && len(validation.IsDNS1123Subdomain(o.host)) > 0 || kit.IsLoopback("https://"+net.JoinHostPort(o.host, "443")) {
		return fmt.Errorf("--%s must be HOST or HOST:PORT, where the host is a DNS name in lower case or an IP address that the hub reaches, not %q", serverAddressFlag, o.address)
	}
	return nil
}

// namespace returns the namespace of the servers on the management cluster.
func (o *outsideHub) namespace() string {
	c := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	c.Spec.DeployOption.Mode = o.InstallMode()
	return c.ServerNamespace()
}

// desired returns the ClusterManager with only the fields that init sets.
func (o *initOptions) desired() *unstructured.Unstructured {
	spec := map[string]any{"deployOption": map[string]any{"mode": string(o.outside.InstallMode())}}
	ours := map[string]any{}
	if o.outside.address != "" {
		ours["apiServer"] = map[string]any{"address": map[string]any{"host": o.outside.host, "port": o.outside.port}}
	}
	if o.upstream {
		ours["components"] = []any{upstreamAgents}
	}
	if len(ours) > 0 {
		spec["clusterhub"] = ours
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": operatorv1.SchemeGroupVersion.String(), "kind": "ClusterManager",
		"metadata": map[string]any{"name": o.outside.name},
		"spec":     spec,
	}}
}

// runOutside runs all checks before it creates anything, and can be run again wherever it was interrupted.
func (o *initOptions) runOutside(ctx context.Context) error {
	m, err := management.Connect(ctx, o.Options, &o.outside.ModeFlags)
	if err != nil {
		return err
	}
	if err := o.outside.hub.Try(ctx, o.Options); err != nil {
		return err
	}
	if o.outside.hub.ClusterUID == m.UID {
		return fmt.Errorf("--%s and the management cluster are the same cluster: install the hub there as docs/operating.md says, and leave out --%s, or choose another "+
			"--%s", management.HubKubeconfigFlag, management.ModeFlag, management.ContextFlag)
	}
	plan, err := m.PlanOperator(ctx, &o.outside.operator)
	if err != nil {
		return err
	}
	if err := m.CheckObjectRights(ctx, "clustermanagers", o.outside.namespace(), "make it a hub"); err != nil {
		return err
	}
	if err := checkClusterManager(ctx, m, o); err != nil {
		return err
	}
	secrets, err := management.ToUnstructured(management.NewKubeconfigSecret(o.outside.namespace(), operatorv1.ExternalHubKubeconfig, o.outside.hub.Data))
	if err != nil {
		return err
	}
	if err := m.InstallOperator(ctx, plan, "ClusterManager", &operatorv1.ClusterManagerList{}); err != nil {
		return err
	}
	if err := m.ApplyObject(ctx, o.desired()); err != nil {
		return err
	}
	if err := m.ApplySecrets(ctx, "ClusterManager "+o.outside.name, secrets); err != nil {
		return err
	}
	if err := awaitClusterManager(ctx, m, o.outside.name); err != nil {
		return err
	}
	h, err := kit.NewHub(o.outside.hub.Config)
	if err != nil {
		return err
	}
	if err := o.tryCertificate(ctx, h); err != nil {
		o.Warn("the hub issues no client certificates, so no cluster can join by %s: %v", kit.AuthCSR, err)
	}
	return o.print(ctx, h, fmt.Sprintf("The hub %s is prepared for clusters to join. Its servers run on the management cluster, in the namespace %s.\n\n",
		o.outside.name, o.outside.namespace()))
}

// checkClusterManager returns an error if a ClusterManager of that name exists and is for something else.
func checkClusterManager(ctx context.Context, m *management.Client, o *initOptions) error {
	have, name := &operatorv1.ClusterManager{}, o.outside.name
	err := m.Get(ctx, client.ObjectKey{Name: name}, have)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return m.CheckSecret(ctx, o.outside.namespace(), operatorv1.ExternalHubKubeconfig, "the ClusterManager "+name, o.outside.hub.Parsed.Server(), "")
	case err != nil:
		return m.Explain(err)
	}
	other := fmt.Sprintf("choose another name by --%s, or run kubectl hub clean --%[1]s=%s first", nameFlag, name)
	switch {
	case !have.DeletionTimestamp.IsZero():
		return fmt.Errorf("the ClusterManager %s is being deleted: wait until it is gone, or choose another name by --%s", name, nameFlag)
	case have.Mode() != o.outside.InstallMode():
		return fmt.Errorf("the ClusterManager %s has the mode %s, which cannot be changed: %s", name, have.Mode(), other)
	case !kit.Owner.Owns(have):
		return m.Explain(&remote.NotOurs{Object: remote.IDOf(o.desired()), Owner: kit.Owner})
	}
	return m.CheckSecret(ctx, o.outside.namespace(), operatorv1.ExternalHubKubeconfig, "the ClusterManager "+name, o.outside.hub.Parsed.Server(), other)
}

// awaitClusterManager waits until the hub serves its API.
func awaitClusterManager(ctx context.Context, m *management.Client, name string) error {
	return m.Await(ctx, "the hub "+name+" to be available", func(ctx context.Context) (bool, string, error) {
		c := &operatorv1.ClusterManager{}
		if err := m.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return false, "", m.Explain(err)
		}
		state := whyNot(c.Status.Conditions, c.Generation, operatorv1.ConditionReadyToApply, operatorv1.ConditionClusterManagerApplied,
			operatorv1.ConditionClusterManagerAvailable)
		if state == "" {
			return true, "", nil
		}
		if c.Status.ObservedGeneration != c.Generation {
			why, err := m.OperatorState(ctx)
			return false, cmp.Or(why, state), err
		}
		// The pod has more details than the conditions.
		why, err := m.DeploymentState(ctx, client.ObjectKey{Namespace: c.ServerNamespace(), Name: deploy.APIServer})
		return false, cmp.Or(kit.Prefixed("hub-apiserver does not run: ", why), state), err
	})
}

// whyNot returns the message of the first condition that is False, in the given order; the last one must be True. It ignores conditions of an earlier
// generation.
func whyNot(conditions []metav1.Condition, generation int64, order ...string) string {
	for i, conditionType := range order {
		c := management.CurrentCondition(conditions, generation, conditionType)
		if c.Status == metav1.ConditionFalse {
			return management.ConditionMessage(c)
		}
		if i == len(order)-1 && c.Status != metav1.ConditionTrue {
			return cmp.Or(management.ConditionMessage(c), management.NotReconciled)
		}
	}
	return ""
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

const (
	nameFlag          = "name"
	serverAddressFlag = "server-address"
	// upstreamAgents is the component of a hub that Open Cluster Management's agents can join.
	upstreamAgents = "upstream-agents"
)

// outsideHub are the flags of init for a hub whose servers run on another cluster.
type outsideHub struct {
	outside
	operator operatorOptions
	hub      source
	name     string
	address  string

	host string
	port int64
}

func (o *outsideHub) addTo(cmd *cobra.Command, version string) {
	fs := cmd.Flags()
	o.hub = source{flag: hubKubeconfigFlag, what: "the hub"}
	o.addModeTo(cmd, "Where the servers of the hub run: "+modeDefault+" is on the hub, where they must already run, "+modeDetached+" on a management cluster, "+
		"in the namespace <name>-open-cluster-management-hub there, and "+modeHosted+" in the namespace <name> there, as Open Cluster Management has it.")
	o.addManagementTo(fs)
	fs.StringVar(&o.hub.file, hubKubeconfigFlag, "", "File with the kubeconfig of an admin of the cluster that becomes the hub, for --"+modeFlag+"="+modeDetached+
		". hub-operator creates accounts with fewer rights by it. It must not need a program or files of this machine to authenticate.")
	fs.StringVar(&o.hub.context, "hub-context", "", "Context of --"+hubKubeconfigFlag+". Defaults to its current context.")
	fs.StringVar(&o.name, nameFlag, "", "Name of the ClusterManager on the management cluster, for --"+modeFlag+"="+modeDetached+".")
	fs.StringVar(&o.address, serverAddressFlag, "", "HOST or HOST:PORT at which the kube-apiserver of the hub reaches hub-apiserver, for --"+modeFlag+"="+modeDetached+
		". Defaults to the name of its Service on the management cluster, which a kube-apiserver that runs there can resolve. The port defaults to 443.")
	o.operator.addTo(fs, version)
}

func (o *outsideHub) validate(init *initOptions) error {
	if err := o.outside.validate(); err != nil {
		return err
	}
	if !o.isOutside() {
		if o.hub.file != "" || o.hub.context != "" || o.name != "" || o.address != "" {
			return fmt.Errorf("--%s, --hub-context, --%s and --%s are for --%s=%s", hubKubeconfigFlag, nameFlag, serverAddressFlag, modeFlag, modeDetached)
		}
		return nil
	}
	if o.name == "" {
		return fmt.Errorf("--%s must be set: the name of the ClusterManager on the management cluster", nameFlag)
	}
	if err := checkOutsideName(nameFlag, o.name, o.namespace()); err != nil {
		return err
	}
	if !slices.Equal(init.auths, []string{authCSR}) {
		return fmt.Errorf("--registration-auth must be %s with --%s=%s: for others, set spec.registrationConfiguration.registrationDrivers of the ClusterManager, and run "+
			"kubectl hub get token --registration-auth=%s", authCSR, modeFlag, o.mode, authAWS)
	}
	if err := o.parseAddress(); err != nil {
		return err
	}
	if err := o.operator.validate(); err != nil {
		return err
	}
	return o.hub.read()
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
	if net.ParseIP(o.host) == nil && len(validation.IsDNS1123Subdomain(o.host)) > 0 || isLoopback("https://"+net.JoinHostPort(o.host, "443")) {
		return fmt.Errorf("--%s must be HOST or HOST:PORT, where the host is a DNS name in lower case or an IP address that the hub reaches, not %q", serverAddressFlag, o.address)
	}
	return nil
}

// namespace returns the namespace of the servers on the management cluster.
func (o *outsideHub) namespace() string {
	c := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	c.Spec.DeployOption.Mode = o.apiMode()
	return c.ServerNamespace()
}

// wanted returns the ClusterManager with only the fields that init sets.
func (o *initOptions) wanted() *unstructured.Unstructured {
	spec := map[string]any{"deployOption": map[string]any{"mode": string(o.outside.apiMode())}}
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
	m, err := managementCluster(ctx, o.tokenOptions.global, &o.outside.outside)
	if err != nil {
		return err
	}
	if err := o.outside.hub.try(ctx, o.global); err != nil {
		return err
	}
	if o.outside.hub.cluster == m.uid {
		return fmt.Errorf("--%s and the management cluster are the same cluster: install the hub there as docs/operating.md says, and leave out --%s, or choose another "+
			"--%s", hubKubeconfigFlag, modeFlag, managementContextFlag)
	}
	plan, err := m.planOperator(ctx, &o.outside.operator)
	if err != nil {
		return err
	}
	if err := m.mayRun(ctx, "clustermanagers", o.outside.namespace(), "make it a hub"); err != nil {
		return err
	}
	if err := checkClusterManager(ctx, m, o); err != nil {
		return err
	}
	secrets, err := asUnstructured(secretWith(o.outside.namespace(), operatorv1.ExternalHubKubeconfig, o.outside.hub.data))
	if err != nil {
		return err
	}
	if err := m.install(ctx, plan, "ClusterManager", &operatorv1.ClusterManagerList{}); err != nil {
		return err
	}
	if err := m.make(ctx, o.wanted()); err != nil {
		return err
	}
	if err := m.makeSecrets(ctx, "ClusterManager "+o.outside.name, secrets); err != nil {
		return err
	}
	if err := awaitClusterManager(ctx, m, o.outside.name); err != nil {
		return err
	}
	h, err := newHub(o.outside.hub.config)
	if err != nil {
		return err
	}
	if err := o.tryCertificate(ctx, h); err != nil {
		o.warn("the hub issues no client certificates, so no cluster can join by %s: %v", authCSR, err)
	}
	return o.print(ctx, h, fmt.Sprintf("The hub %s is prepared for clusters to join. Its servers run on the management cluster, in the namespace %s.\n\n",
		o.outside.name, o.outside.namespace()))
}

// checkClusterManager returns an error if a ClusterManager of that name exists and is for something else.
func checkClusterManager(ctx context.Context, m *management, o *initOptions) error {
	have, name := &operatorv1.ClusterManager{}, o.outside.name
	err := m.Get(ctx, client.ObjectKey{Name: name}, have)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return m.checkSecret(ctx, o.outside.namespace(), operatorv1.ExternalHubKubeconfig, "the ClusterManager "+name, o.outside.hub.parsed.Server(), "")
	case err != nil:
		return m.explain(err)
	}
	other := fmt.Sprintf("choose another name by --%s, or run kubectl hub clean --%[1]s=%s first", nameFlag, name)
	switch {
	case !have.DeletionTimestamp.IsZero():
		return fmt.Errorf("the ClusterManager %s is being deleted: wait until it is gone, or choose another name by --%s", name, nameFlag)
	case have.Mode() != o.outside.apiMode():
		return fmt.Errorf("the ClusterManager %s has the mode %s, which cannot be changed: %s", name, have.Mode(), other)
	case !byUs.Owns(have):
		return m.explain(&remote.NotOurs{Object: remote.IDOf(o.wanted()), Owner: byUs})
	}
	return m.checkSecret(ctx, o.outside.namespace(), operatorv1.ExternalHubKubeconfig, "the ClusterManager "+name, o.outside.hub.parsed.Server(), other)
}

// awaitClusterManager waits until the hub serves its API.
func awaitClusterManager(ctx context.Context, m *management, name string) error {
	return m.await(ctx, "the hub "+name+" to be available", func(ctx context.Context) (bool, string, error) {
		c := &operatorv1.ClusterManager{}
		if err := m.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return false, "", m.explain(err)
		}
		state := whyNot(c.Status.Conditions, c.Generation, operatorv1.ConditionReadyToApply, operatorv1.ConditionClusterManagerApplied,
			operatorv1.ConditionClusterManagerAvailable)
		if state == "" {
			return true, "", nil
		}
		if c.Status.ObservedGeneration != c.Generation {
			why, err := m.operatorState(ctx)
			return false, cmp.Or(why, state), err
		}
		// The pod has more details than the conditions.
		why, err := m.podOf(ctx, client.ObjectKey{Namespace: c.ServerNamespace(), Name: deploy.APIServer})
		return false, cmp.Or(after("hub-apiserver does not run: ", why), state), err
	})
}

// whyNot returns the message of the first condition that is False, in the given order; the last one must be True. It ignores conditions of an earlier
// generation.
func whyNot(conditions []metav1.Condition, generation int64, order ...string) string {
	for i, conditionType := range order {
		c := conditionNow(conditions, generation, conditionType)
		if c.Status == metav1.ConditionFalse {
			return saidBy(c)
		}
		if i == len(order)-1 && c.Status != metav1.ConditionTrue {
			return cmp.Or(saidBy(c), notReconciled)
		}
	}
	return ""
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package join has the commands that run on a managed cluster, or for it: join, unjoin, agent install and uninstall, and get klusterlets.
package join

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// clusterCAFile is the file in pods with the certificate authority of their own cluster.
const clusterCAFile = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

type joinOptions struct {
	*kit.Options
	kit.WaitFlags
	out         *kit.Format
	way         wayToHub
	clusterName string
	auth        string
	hubARN      string
	managedARN  string
	rolePath    string
	serverURL   string
	image       string
	// labels and detect are the agent's flags of these names.
	labels map[string]string
	detect bool
	works  worksOptions
	pods   podOptions
	// upgradable allows works to upgrade the agent.
	upgradable bool

	// namespace is the agent's. scoped limits its permissions to that namespace. edge are its flags as an edge node.
	namespace string
	scoped    bool
	edge      []string

	// detached is for clusters that run no pods.
	detached detachedOptions

	roles *irsa.Identity
}

func newJoinOptions(opts *kit.Options) *joinOptions {
	return &joinOptions{Options: opts, out: kit.NewFormat("text", "json", "yaml"), auth: kit.AuthCSR, image: kit.ImageOf(kit.AgentImage, opts.Version),
		namespace: registration.AgentNamespace, detached: detachedOptions{ModeFlags: management.ModeFlags{Mode: management.ModeDefault}}}
}

// NewCommand returns the command join.
func NewCommand(opts *kit.Options) *cobra.Command {
	o := newJoinOptions(opts)
	cmd := &cobra.Command{
		Use:   "join --hub-token TOKEN --hub-apiserver URL --cluster-name NAME",
		Short: "Join the managed cluster to a hub",
		Long: "join checks that the hub accepts the token, and then deploys hub-agent to the managed cluster. kubectl hub init and " +
			"kubectl hub get token print the command to run. Afterwards, the hub must accept the cluster.\n\n" +
			"The token is sent only to a server with a trusted certificate: one issued by the authority in --ca-data or --ca-file or, " +
			"without these flags, by an authority that this machine trusts. This cannot be turned off.\n\n" +
			"With --mode=detached the cluster runs no pods: hub-operator runs its agent on a management cluster, which " +
			"--management-context names. It reaches the managed cluster by --managed-kubeconfig, which becomes a Secret of the management cluster.",
		Example: kit.Example(`
kubectl hub join --hub-token … --hub-apiserver https://hub.example.com --ca-data … --cluster-name c1 --wait
kubectl hub join --works=admin --works-namespaces=team-a,team-b --hub-token … --hub-apiserver … --cluster-name c1
kubectl hub join --registration-auth=awsirsa --eks-hub-cluster-arn arn:aws:eks:eu-west-1:123456789012:cluster/hub …
kubectl hub join --mode=detached --management-context mgmt --managed-kubeconfig c1.kubeconfig --hub-token … --hub-apiserver … --cluster-name c1 --wait`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.works.inSome = cmd.Flags().Changed(worksNamespacesFlag)
			o.detached.ownImage = cmd.Flags().Changed("image")
			if err := o.setRegistry(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.addTo(cmd)
	o.detached.addTo(cmd, opts.Version)
	return cmd
}

// addTo adds the flags of all agents that run on their cluster.
func (o *joinOptions) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.way.addTo(fs)
	fs.StringVar(&o.clusterName, "cluster-name", "", "Name of the cluster on the hub: a DNS label, at most 63 characters, that no other cluster has.")
	fs.StringVar(&o.auth, "registration-auth", o.auth, "How the cluster proves its identity: "+kit.AuthCSR+" (a certificate) or "+kit.AuthAWS+
		" (AWS IAM; also spelled "+kit.AuthAWSOfSeed+").")
	kit.AddHubARNFlags(fs, &o.hubARN, "ARN of the hub's EKS cluster, for "+kit.AuthAWS+".")
	fs.StringVar(&o.managedARN, "managed-cluster-arn", "",
		"ARN of the managed EKS cluster, for "+kit.AuthAWS+". Defaults to the name of the cluster in the kubeconfig.")
	kit.AddRolePathFlag(fs, &o.rolePath, "The default is /.")
	fs.StringVar(&o.serverURL, "cluster-server-url", "",
		"https URL of the cluster's API server, for users of the hub. Defaults to the one in the kubeconfig, unless it is an address of "+
			"this machine.")
	fs.StringToStringVar(&o.labels, "cluster-labels", nil,
		"Labels that the agent sets on its ManagedCluster, k=v,…, and removes again after a join without them. The hub decides which "+
			"keys an agent may set.")
	fs.BoolVar(&o.detect, "detect-cluster-labels", false, "The agent also labels its ManagedCluster with the region, the cloud and the "+
		"vendor that the nodes and the version of the cluster show.")
	o.works.addTo(cmd)
	fs.StringVar(&o.image, "image", o.image, "Image of hub-agent.")
	o.pods.addTo(cmd)
	o.addUpgradable(fs)
	o.AddWait(fs, "the cluster has joined; the hub must accept it first")
	o.out.AddTo(cmd)
	cmd.Flag("output").Usage =
		"Format of the result: text or json; yaml prints what would be deployed, including the token and credentials, and deploys nothing."
	kit.Must(cmd.RegisterFlagCompletionFunc("registration-auth",
		cobra.FixedCompletions([]string{kit.AuthCSR, kit.AuthAWS}, cobra.ShellCompDirectiveNoFileComp)))
}

func (o *joinOptions) validate() error {
	if o.clusterName == "" {
		return errors.New("--cluster-name must be set: it is the cluster's name on the hub")
	}
	if why := validation.IsDNS1123Label(o.clusterName); len(why) > 0 {
		return fmt.Errorf("--cluster-name: %q is not a DNS label: %s", o.clusterName, strings.Join(why, "; "))
	}
	if err := registration.CheckName(o.clusterName); err != nil {
		return fmt.Errorf("--cluster-name: %w", err)
	}
	if err := o.detached.validate(o); err != nil {
		return err
	}
	if o.image == "" && !o.detached.IsOutside() {
		return fmt.Errorf("--image must be set to an image of hub-agent: there is no default for version %s of this program", o.Version)
	}
	if strings.ContainsFunc(o.image, unicode.IsSpace) {
		return fmt.Errorf("--image must be the name of an image, not %q", o.image)
	}
	auth, err := kit.NormalizeAuth(o.auth)
	if err != nil {
		return err
	}
	o.auth = auth
	if err := o.validateARNs(); err != nil {
		return err
	}
	if err := o.validateServerURL(); err != nil {
		return err
	}
	if errs := registration.CheckClusterLabels(o.labels); len(errs) > 0 {
		return fmt.Errorf("--cluster-labels: %w", errors.Join(errs...))
	}
	return errors.Join(o.works.validate(), o.pods.validate(), o.validateUpgradable(), o.ValidateTimeout(), o.way.validate())
}

func (o *joinOptions) validateServerURL() error {
	if o.serverURL != "" {
		u, err := url.Parse(o.serverURL)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("--cluster-server-url must be an https URL, not %q", o.serverURL)
		}
		return nil
	}
	if o.detached.IsOutside() {
		return nil // the kubeconfig of the managed cluster is read later
	}
	config, err := o.RESTConfig()
	if err != nil {
		return nil // printing manifests needs no kubeconfig; otherwise this is an error later
	}
	if strings.HasPrefix(config.Host, "https://") && !kit.IsLoopback(config.Host) {
		o.serverURL = config.Host
	}
	return nil
}

func (o *joinOptions) validateARNs() error {
	if o.auth == kit.AuthCSR {
		if o.hubARN != "" || o.managedARN != "" || o.rolePath != "" {
			return fmt.Errorf("--eks-hub-cluster-arn, --managed-cluster-arn and --%s are for --registration-auth=%s", kit.RolePathFlag, kit.AuthAWS)
		}
		return nil
	}
	if o.hubARN == "" {
		return fmt.Errorf("--eks-hub-cluster-arn must be set with --registration-auth=%s: the ARN of the hub's EKS cluster", kit.AuthAWS)
	}
	hubCluster, err := irsa.ParseClusterARN(o.hubARN)
	if err != nil {
		return fmt.Errorf("--eks-hub-cluster-arn: %w", err)
	}
	if o.managedARN == "" {
		o.managedARN = o.ContextARN()
	}
	if o.managedARN == "" {
		return fmt.Errorf("--managed-cluster-arn must be set with --registration-auth=%s: the cluster in the kubeconfig does not have "+
			"an ARN as its name", kit.AuthAWS)
	}
	managed, err := irsa.ParseClusterARN(o.managedARN)
	if err != nil {
		return fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	roles, err := irsa.NewIdentity(hubCluster, managed)
	if err != nil {
		return fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	roles.HubPath, err = irsa.ParseRolePath(o.rolePath)
	if err != nil {
		return fmt.Errorf("--%s: %w", kit.RolePathFlag, err)
	}
	o.roles = &roles
	return nil
}

func (o *joinOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	if o.detached.IsOutside() {
		return o.runDetached(ctx)
	}
	return o.deploy(ctx, nil)
}

// deploy deploys the agent after all checks have passed. check may be nil.
func (o *joinOptions) deploy(ctx context.Context, check func(*managed, []*unstructured.Unstructured) error) error {
	known, err := o.way.try(ctx, o.clusterName, o.auth)
	if err != nil {
		return err
	}
	agent, err := o.agent()
	if err != nil {
		return err
	}
	objects, err := agent.Objects()
	if err != nil {
		return err
	}
	if o.out.Value == "yaml" {
		return printManifests(o.Out, objects)
	}
	m, err := managedCluster(o.Options, o.namespace)
	if err != nil {
		return err
	}
	m.scoped = o.scoped
	if check != nil {
		if err := check(m, objects); err != nil {
			return err
		}
	}
	if err := m.checkFree(ctx, o, known); err != nil {
		return err
	}
	if err := m.checkWorks(ctx, &o.works); err != nil {
		return err
	}
	if err := m.deploy(ctx, objects); err != nil {
		return err
	}
	accept := "kubectl hub accept --clusters " + o.clusterName
	if o.Wait {
		if err := m.awaitJoined(ctx, o.clusterName, accept); err != nil {
			return err
		}
	}
	return o.print(accept)
}

// isEdge reports whether the agent makes an edge node of the cluster.
func (o *joinOptions) isEdge() bool { return len(o.edge) > 0 || o.scoped }

func (o *joinOptions) print(accept string) error {
	works, worksSaid := o.works.result()
	worksSaid += o.upgradeHint()
	result := struct {
		Name         string      `json:"name"`
		Namespace    string      `json:"namespace,omitempty"`
		Hub          string      `json:"hub-apiserver"`
		Registration string      `json:"registration"`
		RoleARN      string      `json:"roleARN,omitempty"`
		Works        worksResult `json:"works"`
		Joined       bool        `json:"joined"`
		Next         string      `json:"next,omitempty"`
	}{Name: o.clusterName, Hub: o.way.server, Registration: o.auth, Works: works, Joined: o.Wait}
	if o.isEdge() {
		result.Namespace = o.namespace
	}
	role := ""
	if o.roles != nil {
		result.RoleARN = o.roles.ManagedRoleARN()
		role = fmt.Sprintf("It uses the IAM role %s, which must exist.\n", result.RoleARN)
	}
	if o.Wait {
		return o.out.Print(o.Out, result, "Cluster %s has joined the hub %s.\n%s\n", o.clusterName, o.way.server, worksSaid)
	}
	result.Next = accept
	return o.out.Print(o.Out, result, "The agent of cluster %s is deployed.\n%s\n%sOn the hub, accept it:\n\n    %s\n",
		o.clusterName, worksSaid, role, accept)
}

func (o *joinOptions) agent() (deploy.Agent, error) {
	kubeconfig, err := o.way.kubeconfig()
	if err != nil {
		return deploy.Agent{}, err
	}
	agent := deploy.Agent{
		Image:      o.image,
		Args:       []string{deploy.ClusterNameFlag + o.clusterName, "--registration-auth=" + o.auth},
		Kubeconfig: kubeconfig,
		Hub:        o.way.server + "\n" + o.way.proxyURL + "\n" + string(o.way.ca),
		Works:      o.works.deployed(),
		Scoped:     o.scoped,
		Upgradable: o.upgradable,
		Pod:        deploy.AgentPod{PullSecrets: o.pods.pullSecrets, Resources: o.pods.resources()},
		PullConfig: o.pods.pullConfig,
	}
	if o.namespace != registration.AgentNamespace {
		agent.Namespace = o.namespace
	}
	if o.scoped {
		agent.Works = deploy.Works{} // its scope gives it the permissions of o.works in its namespace
	}
	if o.upgradable && !o.scoped && agent.Works.Role == "" {
		return deploy.Agent{}, fmt.Errorf("--%s needs --%s=%s or --%[2]s=%[4]s: works upgrade the agent", upgradableFlag, worksFlag, worksAdmin, worksClusterAdmin)
	}
	agent.Args = append(agent.Args, o.edge...)
	if o.serverURL != "" {
		agent.Args = append(agent.Args, "--cluster-server-url="+o.serverURL, "--cluster-ca-file="+clusterCAFile)
	}
	if len(o.labels) > 0 {
		var set []string
		for _, key := range slices.Sorted(maps.Keys(o.labels)) {
			set = append(set, key+"="+o.labels[key])
		}
		agent.Args = append(agent.Args, "--cluster-labels="+strings.Join(set, ","))
	}
	if o.detect {
		agent.Args = append(agent.Args, "--detect-cluster-labels")
	}
	if o.roles != nil {
		agent.Args = append(agent.Args, "--hub-cluster-arn="+o.roles.Hub.String(), "--managed-cluster-arn="+o.roles.Managed.String())
		if o.roles.HubPath != "" {
			agent.Args = append(agent.Args, "--hub-role-path="+o.roles.HubPath.String())
		}
		agent.RoleARN = o.roles.ManagedRoleARN()
	}
	return agent, nil
}

func printManifests(out io.Writer, objects []*unstructured.Unstructured) error {
	printer := &printers.YAMLPrinter{}
	for _, o := range objects {
		if err := printer.PrintObj(o, out); err != nil {
			return err
		}
	}
	return nil
}

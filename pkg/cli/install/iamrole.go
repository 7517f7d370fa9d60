// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	accessEntry = "access-entry"
	awsAuth     = "aws-auth"
	// hubServiceAccount is the ServiceAccount of artifacts/deploy.
	hubServiceAccount = "clusterhub-system/hub-controller-manager"

	accessPolicyName = "clusterhub"
)

// tagKeyForm matches the keys of tags that IAM accepts.
var tagKeyForm = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/+@-]{1,128}$`)

// oidcProviderForm matches an issuer without "https://": a host and a path.
var oidcProviderForm = regexp.MustCompile(`^[0-9A-Za-z.-]+(:[0-9]+)?(/[0-9A-Za-z._~/-]*)?$`)

// iamRole is a role that an admin of AWS creates, in the account of the cluster that acts as it.
type iamRole struct {
	Name         string              `json:"roleName"`
	ARN          string              `json:"roleARN"`
	Tags         map[string]string   `json:"tags,omitempty"`
	TrustPolicy  irsa.PolicyDocument `json:"trustPolicy"`
	AccessPolicy irsa.PolicyDocument `json:"accessPolicy"`
}

type iamRoleOptions struct {
	*kit.Options
	out             *kit.Format
	hubARN          string
	managedARN      string
	oidcProvider    string
	serviceAccounts []string
	hubAccess       string
	tags            []string
	rolePath        string
	boundary        string
}

// NewIAMRoleCommand returns the command iam-role.
func NewIAMRoleCommand(opts *kit.Options) *cobra.Command {
	o := &iamRoleOptions{Options: opts, out: kit.NewFormat("text", "json")}
	cmd := &cobra.Command{
		Use:   "iam-role --hub-cluster-arn ARN [--managed-cluster-arn ARN] --oidc-provider ISSUER",
		Short: "Print the commands that create the IAM role of the hub or of a managed cluster, for registration by AWS IAM",
		Long: "iam-role prints the commands of the aws CLI that create the IAM role of the hub's controller or, with " +
			"--managed-cluster-arn, of the cluster's agent. Run them with credentials of the account that the cluster is in. " +
			"It sends no requests and changes nothing.\n\n" +
			"The issuer of an EKS cluster: aws eks describe-cluster --name NAME --query cluster.identity.oidc.issuer",
		Example: kit.Example(`
kubectl hub iam-role --hub-cluster-arn arn:aws:eks:eu-west-1:123456789012:cluster/hub --oidc-provider https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE
kubectl hub iam-role --hub-cluster-arn arn:aws:eks:eu-west-1:123456789012:cluster/hub --managed-cluster-arn arn:aws:eks:eu-west-1:210987654321:cluster/c1 --oidc-provider …`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	fs := cmd.Flags()
	kit.AddHubARNFlags(fs, &o.hubARN, "ARN of the hub's EKS cluster.")
	fs.StringVar(&o.managedARN, "managed-cluster-arn", "", "ARN of the managed EKS cluster, for the role of its agent.")
	fs.StringVar(&o.oidcProvider, "oidc-provider", "",
		"OIDC issuer of the hub's EKS cluster or, with --managed-cluster-arn, of the managed one. IAM must have it as an OIDC provider.")
	fs.StringSliceVar(&o.serviceAccounts, "service-account", nil, "Service accounts that may assume the role, as NAMESPACE/NAME,…; for the agent of a "+
		"Klusterlet, those of its two parts. Defaults to "+hubServiceAccount+", or "+registration.AgentNamespace+"/"+registration.AgentServiceAccount+".")
	fs.StringVar(&o.hubAccess, "eks-access", accessEntry,
		"How the hub gives roles access to EKS, as set for hub-controller-manager: "+accessEntry+" or "+awsAuth+".")
	fs.StringSliceVar(&o.tags, "aws-resource-tags", nil,
		"Tags of the objects that the hub creates in AWS, as set for hub-controller-manager: the hub's role may set these tags and its own.")
	kit.AddRolePathFlag(fs, &o.rolePath, "The default is /.")
	fs.StringVar(&o.boundary, kit.BoundaryFlag, "", "ARN of the permissions boundary of the roles that the hub creates, as set for hub-controller-manager: "+
		"the hub's role may create no roles without it.")
	o.out.AddTo(cmd)
	kit.Must(cmd.RegisterFlagCompletionFunc("eks-access",
		cobra.FixedCompletions([]string{accessEntry, awsAuth}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (o *iamRoleOptions) run() error {
	role, err := o.role()
	if err != nil {
		return err
	}
	return o.out.Print(o.Out, role, "%s", role.commands())
}

func (o *iamRoleOptions) role() (*iamRole, error) {
	if o.hubARN == "" {
		return nil, errors.New("--hub-cluster-arn must be set: the ARN of the hub's EKS cluster")
	}
	hubCluster, err := irsa.ParseClusterARN(o.hubARN)
	if err != nil {
		return nil, fmt.Errorf("--hub-cluster-arn: %w", err)
	}
	provider, ok := strings.CutPrefix(o.oidcProvider, "https://")
	switch {
	case o.oidcProvider == "":
		return nil, errors.New("--oidc-provider must be set: aws eks describe-cluster --name NAME --query cluster.identity.oidc.issuer prints it")
	case !ok && strings.Contains(o.oidcProvider, "://"), !oidcProviderForm.MatchString(provider):
		return nil, fmt.Errorf("--oidc-provider must be an https issuer, not %q", o.oidcProvider)
	}
	if o.hubAccess != accessEntry && o.hubAccess != awsAuth {
		return nil, fmt.Errorf("--eks-access must be %s or %s, not %q", accessEntry, awsAuth, o.hubAccess)
	}
	path, err := irsa.ParseRolePath(o.rolePath)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", kit.RolePathFlag, err)
	}
	if err := irsa.CheckBoundary(o.boundary, hubCluster); err != nil {
		return nil, fmt.Errorf("--%s: %w", kit.BoundaryFlag, err)
	}
	if o.managedARN == "" {
		return o.hubRole(hubCluster, path, provider)
	}
	managed, err := irsa.ParseClusterARN(o.managedARN)
	if err != nil {
		return nil, fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	identity, err := irsa.NewIdentity(hubCluster, managed)
	if err != nil {
		return nil, fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	identity.HubPath = path
	subjects, err := o.subjects(registration.AgentNamespace + "/" + registration.AgentServiceAccount)
	if err != nil {
		return nil, err
	}
	return &iamRole{
		Name: identity.ManagedRole(), ARN: identity.ManagedRoleARN(), Tags: identity.Tags(),
		TrustPolicy:  irsa.WebIdentityTrustPolicy(managed, provider, subjects...),
		AccessPolicy: identity.ManagedAccessPolicy(),
	}, nil
}

func (o *iamRoleOptions) hubRole(hubCluster irsa.ClusterARN, path irsa.RolePath, provider string) (*iamRole, error) {
	subjects, err := o.subjects(hubServiceAccount)
	if err != nil {
		return nil, err
	}
	keys, err := o.tagKeys()
	if err != nil {
		return nil, err
	}
	return &iamRole{
		Name: irsa.CreatorRole(hubCluster), ARN: irsa.CreatorRoleARN(hubCluster),
		TrustPolicy:  irsa.WebIdentityTrustPolicy(hubCluster, provider, subjects...),
		AccessPolicy: irsa.CreatorPolicy(hubCluster, irsa.HubRoles{Path: path, Boundary: o.boundary, AccessEntries: o.hubAccess == accessEntry, TagKeys: keys}),
	}, nil
}

func (o *iamRoleOptions) tagKeys() (keys []string, err error) {
	for _, tag := range o.tags {
		key, _, ok := strings.Cut(tag, "=")
		if !ok || !tagKeyForm.MatchString(key) {
			return nil, fmt.Errorf("--aws-resource-tags: %q is not of the form key=value, with a key of letters, digits, spaces and _.:/+@-", tag)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// subjects returns the service accounts in the form of the subjects of their tokens.
func (o *iamRoleOptions) subjects(byDefault string) (subjects []string, err error) {
	accounts := o.serviceAccounts
	if len(accounts) == 0 {
		accounts = []string{byDefault}
	}
	for _, account := range accounts {
		namespace, name, ok := strings.Cut(account, "/")
		if !ok || len(validation.IsDNS1123Label(namespace))+len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, fmt.Errorf("--service-account must be NAMESPACE/NAME, not %q", account)
		}
		subjects = append(subjects, "system:serviceaccount:"+namespace+":"+name)
	}
	return subjects, nil
}

// commands returns shell commands. Quoted values contain no quotes: policies and tags consist of names that IAM allows.
func (r *iamRole) commands() string {
	var b strings.Builder
	fmt.Fprintf(&b, "aws iam create-role --role-name %s --assume-role-policy-document '%s'", r.Name, r.TrustPolicy.Indented())
	if len(r.Tags) > 0 {
		b.WriteString(" --tags")
	}
	for _, key := range slices.Sorted(maps.Keys(r.Tags)) {
		fmt.Fprintf(&b, " Key=%s,Value=%s", key, r.Tags[key])
	}
	fmt.Fprintf(&b, "\naws iam put-role-policy --role-name %s --policy-name %s --policy-document '%s'\n",
		r.Name, accessPolicyName, r.AccessPolicy.Indented())
	return b.String()
}

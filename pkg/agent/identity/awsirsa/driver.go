// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package awsirsa implements the identity that is an AWS IAM role, which the hub creates.
package awsirsa

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

const (
	// Name is the name of the driver for --registration-auth.
	Name = "awsirsa"
	// nameOfSeed is the spelling of the name in the specification of the registration.
	nameOfSeed = "aws-irsa"
)

// The commands by which the kubeconfig in the secret gets its tokens.
const (
	tokenCommandOwn = "hub-agent"
	tokenCommandAWS = "aws"
)

// RegisterDriver registers by AWS IAM roles.
type RegisterDriver struct {
	// HubARN and ManagedARN are the ARNs of the EKS clusters of the hub and of the agent.
	HubARN, ManagedARN string
	// HubRolePath is the IAM path of the roles that the hub creates; empty means "/".
	HubRolePath string
	// TokenCommand is the command by which the kubeconfig in the secret gets tokens: hub-agent or aws.
	TokenCommand string
}

var _ identity.RegisterDriver = &RegisterDriver{}

// New returns the driver with the defaults of its flags.
func New() *RegisterDriver { return &RegisterDriver{TokenCommand: tokenCommandOwn} }

// Names implements identity.RegisterDriver.
func (d *RegisterDriver) Names() []string { return []string{Name, nameOfSeed} }

// Summary implements identity.RegisterDriver.
func (d *RegisterDriver) Summary() string { return "AWS IAM; also spelled " + nameOfSeed }

// AddFlags implements identity.RegisterDriver.
func (d *RegisterDriver) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&d.HubARN, "hub-cluster-arn", d.HubARN, "The ARN of the hub's EKS cluster, for "+Name+".")
	fs.StringVar(&d.HubARN, "eks-hub-cluster-arn", d.HubARN, "The same as --hub-cluster-arn.")
	fs.StringVar(&d.ManagedARN, "managed-cluster-arn", d.ManagedARN, "The ARN of the managed EKS cluster, for "+Name+".")
	fs.StringVar(&d.HubRolePath, "hub-role-path", d.HubRolePath,
		"The IAM path of the roles that the hub creates, as set for hub-controller-manager, for "+Name+". The default is /.")
	fs.StringVar(&d.TokenCommand, "eks-token-command", d.TokenCommand,
		"The command with which the kubeconfig in the Secret gets tokens, for "+Name+": "+tokenCommandOwn+" (hub-agent "+
			"eks-token) or "+tokenCommandAWS+" (aws eks get-token).")
}

// Validate implements identity.RegisterDriver.
func (d *RegisterDriver) Validate(chosen bool) (errs []error) {
	if !chosen {
		return nil
	}
	if _, err := d.roles(); err != nil {
		errs = append(errs, err)
	}
	if !slices.Contains([]string{tokenCommandOwn, tokenCommandAWS}, d.TokenCommand) {
		errs = append(errs, fmt.Errorf("--eks-token-command must be %s or %s, not %q", tokenCommandOwn, tokenCommandAWS, d.TokenCommand))
	}
	return errs
}

// Rights implements identity.RegisterDriver. The driver reads the ManagedCluster to check whether the hub accepts the role.
func (d *RegisterDriver) Rights() rights.Rights {
	return rights.Rights{Hub: rights.Rules{Cluster: []rbacv1.PolicyRule{rights.Rule(clusterv1.GroupName, "managedclusters", "get")}}}
}

// New implements identity.RegisterDriver.
func (d *RegisterDriver) New(agent identity.Agent) (identity.Identity, error) {
	roles, err := d.roles()
	if err != nil {
		return nil, err
	}
	return &role{agent: agent, roles: roles, command: d.TokenCommand,
		tokens: &Tokens{Cluster: roles.Hub.Name, Region: roles.Hub.Region, OwnRegion: roles.Managed.Region,
			RoleARN: roles.HubRoleARN()}}, nil
}

// Find implements identity.RegisterDriver. The kubeconfig names the cluster and the role of the tokens.
func (d *RegisterDriver) Find(s state.State) (identity.Identity, error) {
	if len(s.Cert) > 0 {
		return nil, nil
	}
	tokens, err := TokensOf(s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return &role{tokens: tokens}, nil
}

// roles returns the IAM roles of the cluster.
func (d *RegisterDriver) roles() (irsa.Identity, error) {
	hub, err := irsa.ParseClusterARN(d.HubARN)
	if err != nil {
		return irsa.Identity{}, fmt.Errorf("--hub-cluster-arn: %w", err)
	}
	managed, err := irsa.ParseClusterARN(d.ManagedARN)
	if err != nil {
		return irsa.Identity{}, fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	roles, err := irsa.NewIdentity(hub, managed)
	if err != nil {
		return irsa.Identity{}, fmt.Errorf("--managed-cluster-arn: %w", err)
	}
	roles.HubPath, err = irsa.ParseRolePath(d.HubRolePath)
	if err != nil {
		return irsa.Identity{}, fmt.Errorf("--hub-role-path: %w", err)
	}
	return roles, nil
}

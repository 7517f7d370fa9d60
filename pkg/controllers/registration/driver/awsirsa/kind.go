// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	autoApprovedFlag = "auto-approved-arn-patterns"
	pathFlag         = "hub-role-path"
	boundaryFlag     = "hub-role-permissions-boundary"
)

// Factory is registration by AWS IAM.
type Factory struct {
	hubClusterARN string
	access        string
	autoApproved  []string
	tags          []string
	path          string
	boundary      string
}

var _ driver.Factory = &Factory{}

// NewKind returns the kind with the defaults of its flags.
func NewKind() *Factory { return &Factory{access: string(AccessEntry)} }

// Name implements driver.Factory.
func (k *Factory) Name() string { return Name }

// AddFlags implements driver.Factory.
func (k *Factory) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&k.autoApproved, autoApprovedFlag, k.autoApproved,
		"Comma-separated list of regular expressions of the ARNs of EKS clusters that are accepted without an admin, if the name of the "+
			"cluster equals the match of the group (?P<name>…) or, without that group, the name of the EKS cluster. Requires the feature gate "+
			driver.AutoApprovalGate+".")
	fs.StringVar(&k.hubClusterARN, "hub-cluster-arn", k.hubClusterARN,
		"The ARN of the EKS cluster that the hub runs on. Required by the driver awsirsa.")
	fs.StringVar(&k.access, "eks-access", k.access,
		"The way in which the role of a cluster is registered in EKS: access-entry, or aws-auth for hubs that authenticate with that "+
			"ConfigMap. Clusters that were accepted with the other one are migrated at their next check.")
	fs.StringVar(&k.path, pathFlag, k.path,
		"The IAM path of the roles that are created for clusters, such as /clusterhub/. The default is /. Agents require the same path: --"+
			pathFlag+" of kubectl hub join. The path of an existing role does not change.")
	fs.StringVar(&k.boundary, boundaryFlag, k.boundary,
		"The ARN of the policy that is the permissions boundary of each role that is created for a cluster. Roles with another boundary, or "+
			"without one, get it at their next check. If empty, the boundaries of roles do not change.")
	fs.StringSliceVar(&k.tags, "aws-resource-tags", k.tags,
		"Comma-separated list of key=value tags of the objects that are created in AWS, such as team=platform.")
}

// Validate implements driver.Factory.
func (k *Factory) Validate(autoApproval bool) (errs []error) {
	if !autoApproval && len(k.autoApproved) > 0 {
		errs = append(errs, fmt.Errorf("--%s needs --feature-gates=%s=true", autoApprovedFlag, driver.AutoApprovalGate))
	}
	if _, err := k.resourceTags(); err != nil {
		errs = append(errs, err)
	}
	if _, err := irsa.ParseRolePath(k.path); err != nil {
		errs = append(errs, fmt.Errorf("--%s: %w", pathFlag, err))
	}
	// Without the hub's ARN, which New requires, nothing is created.
	if hub, err := irsa.ParseClusterARN(k.hubClusterARN); err == nil {
		if err := irsa.CheckBoundary(k.boundary, hub); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", boundaryFlag, err))
		}
	}
	return errs
}

func (k *Factory) resourceTags() (map[string]string, error) {
	tags := map[string]string{}
	for _, tag := range k.tags {
		key, value, ok := strings.Cut(tag, "=")
		if !ok || key == "" || value == "" {
			return nil, fmt.Errorf("--aws-resource-tags: %q is not of the form key=value", tag)
		}
		if _, twice := tags[key]; twice {
			return nil, fmt.Errorf("--aws-resource-tags: duplicate key %q", key)
		}
		tags[key] = value
	}
	return tags, nil
}

// Rights implements driver.Factory.
func (k *Factory) Rights() []kit.Right {
	return []kit.Right{kit.On(corev1.SchemeGroupVersion, "configmaps", "get", "update").Named(awsAuthName).In(awsAuthNamespace).By("aws-auth")}
}

// New implements driver.Factory.
func (k *Factory) New(ctx context.Context, o driver.Options) (driver.Driver, error) {
	hub, err := irsa.ParseClusterARN(k.hubClusterARN)
	if err != nil {
		return nil, fmt.Errorf("--hub-cluster-arn: %w", err)
	}
	tags, err := k.resourceTags()
	if err != nil {
		return nil, err
	}
	config, err := LoadConfig(ctx, hub.Region)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(o.Hub)
	if err != nil {
		return nil, err
	}
	return New(Options{
		HubClusterARN: k.hubClusterARN, AWS: config, Access: Access(k.access), Kube: client, Tags: tags, RolePath: k.path, PermissionsBoundary: k.boundary,
		ApprovedARNPatterns: k.autoApproved, CheckInterval: o.CheckInterval,
	})
}

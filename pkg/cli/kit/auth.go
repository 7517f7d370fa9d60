// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/pflag"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// AuthCSR is the value of --registration-auth for client certificates.
	AuthCSR = "csr"
	// AuthAWS is the value of --registration-auth for AWS IAM.
	AuthAWS = "awsirsa"
	// AuthAWSOfSeed is the spelling of the registration's specification for the same.
	AuthAWSOfSeed = "aws-irsa"
)

// RolePathFlag is the name of the flag with the IAM path of the roles of clusters.
const RolePathFlag = "hub-role-path"

// AddRolePathFlag adds the flag, which hub-controller-manager and hub-agent also have.
func AddRolePathFlag(fs *pflag.FlagSet, path *string, byDefault string) {
	fs.StringVar(path, RolePathFlag, "", "IAM path of the roles that the hub creates for clusters, as set for "+deploy.Manager+", for "+AuthAWS+
		". "+byDefault)
}

// BoundaryFlag is the name of the flag with the permissions boundary of the roles of clusters.
const BoundaryFlag = "hub-role-permissions-boundary"

// AddHubARNFlags adds the flag under the specification's name and under upstream's.
func AddHubARNFlags(fs *pflag.FlagSet, arn *string, usage string) {
	fs.StringVar(arn, "hub-cluster-arn", "", usage)
	fs.StringVar(arn, "eks-hub-cluster-arn", "", "Same as --hub-cluster-arn.")
}

// NormalizeAuth returns AuthCSR or AuthAWS for each of their spellings, and an error for other values of --registration-auth.
func NormalizeAuth(auth string) (string, error) {
	switch auth {
	case AuthCSR, AuthAWS:
		return auth, nil
	case AuthAWSOfSeed:
		return AuthAWS, nil
	}
	return "", fmt.Errorf("--registration-auth must be %s or %s, not %q", AuthCSR, AuthAWS, auth)
}

// CheckServer rejects a URL by which a token would be sent without encryption.
func CheckServer(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--hub-apiserver must be an https URL, not %q", server)
	}
	return nil
}

// IsLoopback reports whether the host of a URL is this machine.
func IsLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// RegistrationOf returns how a cluster authenticates.
func RegistrationOf(c *clusterv1.ManagedCluster) string {
	if ARNOf(c) != "" {
		return AuthAWS
	}
	return AuthCSR
}

// ARNOf returns the ARN of the EKS cluster with whose IAM role a cluster authenticates, or "".
func ARNOf(c *clusterv1.ManagedCluster) string {
	if arn := c.Annotations[registration.AnnotationManagedClusterARN]; arn != "" {
		return arn
	}
	return c.Annotations[registration.AnnotationManagedClusterARNOfSeed]
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package irsa defines the names and policies by which a cluster registers with AWS IAM, for the hub's controllers, the agents of managed clusters,
// the command line and the docs. The rules are those of the specification of the registration (seeds/aws-irsa-registration.md); Open Cluster
// Management shares the names.
package irsa

import (
	"fmt"
	"regexp"
	"strings"
)

// The supported partitions of AWS. None trusts another.
const (
	partitionAWS   = "aws"
	partitionChina = "aws-cn"
	partitionGov   = "aws-us-gov"
)

var (
	regionForm  = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
	// EKS allows 1 to 100 letters, digits, hyphens and underscores; the first is a letter or a digit.
	nameForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)
)

// ClusterARN is an EKS cluster, as identified by its ARN.
type ClusterARN struct {
	Partition string
	Region    string
	// Account is the AWS account of the cluster, 12 digits.
	Account string
	Name    string
}

// ParseClusterARN parses the ARN of an EKS cluster. Its errors name the fault in the ARN, and fit into one line whatever the ARN is.
func ParseClusterARN(arn string) (ClusterARN, error) {
	refuse := func(format string, args ...any) (ClusterARN, error) {
		return ClusterARN{}, fmt.Errorf("%s is not the ARN of an EKS cluster (arn:aws:eks:<region>:<account>:cluster/<name>): %s",
			quote(arn), fmt.Sprintf(format, args...))
	}
	parts := strings.SplitN(arn, ":", 6)
	if parts[0] != "arn" {
		return refuse(`it does not begin with "arn:"`)
	}
	if len(parts) < 6 {
		return refuse("it has %d parts between colons instead of 6", len(parts))
	}
	c := ClusterARN{Partition: parts[1], Region: parts[3], Account: parts[4]}
	name, isCluster := strings.CutPrefix(parts[5], "cluster/")
	c.Name = name
	switch {
	case c.Partition != partitionAWS && c.Partition != partitionChina && c.Partition != partitionGov:
		return refuse("its partition is %s; aws, aws-cn and aws-us-gov are supported", quote(c.Partition))
	case parts[2] != "eks":
		return refuse("its service is %s instead of eks", quote(parts[2]))
	case !regionForm.MatchString(c.Region):
		return refuse("%s is not a region", quote(c.Region))
	case partitionOf(c.Region) != c.Partition:
		return refuse("the region %s is in the partition %s", c.Region, partitionOf(c.Region))
	case !accountForm.MatchString(c.Account):
		return refuse("its account is %s instead of 12 digits", quote(c.Account))
	case !isCluster:
		return refuse("it names %s instead of cluster/<name>", quote(parts[5]))
	case !nameForm.MatchString(c.Name):
		return refuse("%s is not the name of an EKS cluster", quote(c.Name))
	}
	return c, nil
}

func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return partitionChina
	case strings.HasPrefix(region, "us-gov-"):
		return partitionGov
	}
	return partitionAWS
}

// String returns the ARN.
func (c ClusterARN) String() string {
	return "arn:" + c.Partition + ":eks:" + c.Region + ":" + c.Account + ":cluster/" + c.Name
}

func (c ClusterARN) roleARN(path RolePath, role string) string {
	return "arn:" + c.Partition + ":iam::" + c.Account + ":role" + path.String() + role
}

// quote formats untrusted text for one line of a message.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// HubRoles configures how a hub creates the roles of its managed clusters, and authorizes them.
type HubRoles struct {
	// Path is the path of each role.
	Path RolePath
	// Boundary is the ARN of the policy that is the permissions boundary of each role. If it is empty, the hub sets none.
	Boundary string
	// AccessEntries means that the hub authorizes them by EKS access entries, instead of aws-auth.
	AccessEntries bool
	// TagKeys are the keys of tags beside the hub's own.
	TagKeys []string
}

// RolePath is the path of an IAM role, which precedes the name in its ARN. An empty one means "/".
type RolePath string

// String returns the path as IAM uses it.
func (p RolePath) String() string { return cmp.Or(string(p), "/") }

const (
	maxPath   = 512
	maxPolicy = 2048
)

var (
	// IAM allows more characters in a path. Of those left out some are wildcards in policies, and others have a meaning in a shell.
	pathForm       = regexp.MustCompile(`^/([0-9A-Za-z_+=,.@-]+/)*$`)
	policyNameForm = regexp.MustCompile(`^[0-9A-Za-z_+=,.@-]{1,128}$`)
)

// ParseRolePath parses the path of a role.
func ParseRolePath(path string) (RolePath, error) {
	refuse := func(why string) (RolePath, error) {
		return "", fmt.Errorf("%s is not the path of an IAM role, such as /clusterhub/: %s", quote(path), why)
	}
	switch {
	case path == "" || path == "/":
		return "", nil
	case len(path) > maxPath:
		return refuse(fmt.Sprintf("it has %d characters, and IAM allows %d", len(path), maxPath))
	case !strings.HasPrefix(path, "/") || !strings.HasSuffix(path, "/"):
		return refuse("it must begin and end with a slash")
	case strings.Contains(path, "//"):
		return refuse("two slashes follow each other")
	case !pathForm.MatchString(path):
		return refuse("between slashes it may have letters, digits and _+=,.@-")
	}
	return RolePath(path), nil
}

// CheckBoundary checks the ARN of a policy for use as the permissions boundary of roles in the hub's account. It may be empty.
func CheckBoundary(arn string, hub ClusterARN) error {
	if arn == "" {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%s is not the ARN of a policy that roles of %s can have (arn:%s:iam::%s:policy/<name>): %s",
			quote(arn), hub, hub.Partition, hub.Account, fmt.Sprintf(format, args...))
	}
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" {
		return refuse("it is not an ARN")
	}
	policy, isPolicy := strings.CutPrefix(parts[5], "policy")
	slash := strings.LastIndex(policy, "/")
	switch {
	case len(arn) > maxPolicy:
		return refuse("it has %d characters, and IAM allows %d", len(arn), maxPolicy)
	case parts[1] != hub.Partition:
		return refuse("its partition is %s, and the hub is in %s", quote(parts[1]), hub.Partition)
	case parts[2] != "iam" || parts[3] != "":
		return refuse("it is not of IAM, which has no regions")
	case parts[4] != hub.Account && parts[4] != "aws":
		return refuse("it is of the account %s: take a policy of the hub's account, or one of AWS's own", quote(parts[4]))
	case !isPolicy || slash < 0:
		return refuse("it names %s instead of policy/<name>", quote(parts[5]))
	case !pathForm.MatchString(policy[:slash+1]) || !policyNameForm.MatchString(policy[slash+1:]):
		return refuse("%s is not the path and the name of a policy", quote(policy))
	}
	return nil
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"fmt"
	"maps"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// ownTag reports whether the driver sets the tag. It ignores case, as IAM does.
func ownTag(key string) bool {
	key = strings.ToLower(key)
	switch key {
	case irsa.TagHubAccount, irsa.TagHubCluster, irsa.TagManagedAccount, irsa.TagManagedCluster:
		return true
	}
	return strings.HasPrefix(key, "clusterhub.dev/")
}

func validateTags(tags map[string]string) error {
	const (
		maxTags  = 40 // of AWS's 50: the driver has some of its own
		maxKey   = 128
		maxValue = 256
	)
	if len(tags) > maxTags {
		return fmt.Errorf("%d tags are too many: AWS allows %d", len(tags), maxTags)
	}
	keys := map[string]bool{}
	for key, value := range tags {
		lower := strings.ToLower(key)
		if keys[lower] {
			return fmt.Errorf("duplicate tag %q: IAM does not distinguish upper and lower case", lower)
		}
		keys[lower] = true
		switch {
		case key == "" || len(key) > maxKey || len(value) > maxValue:
			return fmt.Errorf("the tag %q: a key has 1 to %d characters, a value at most %d", key, maxKey, maxValue)
		case strings.HasPrefix(lower, "aws:"):
			return fmt.Errorf(`the tag %q: the prefix "aws:" is reserved by AWS`, key)
		case ownTag(key):
			return fmt.Errorf("the tag %q is the hub's own: leave it out", key)
		}
	}
	return nil
}

// desiredTags returns the tags of the role and of its access entry: the given ones, and those of the driver.
func (g grant) desiredTags(given map[string]string) map[string]string {
	tags := maps.Clone(given)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, g.Tags())
	tags[irsa.TagOwner], tags[irsa.TagOwnerHub] = g.cluster, g.Hub.String()
	return tags
}

// owns returns nil if the tags are those of this cluster of this hub. Otherwise the error names the owner.
func (g grant) owns(what string, tags map[string]string) error {
	cluster, hub := tags[irsa.TagOwner], tags[irsa.TagOwnerHub]
	switch {
	case cluster == g.cluster && hub == g.Hub.String():
		return nil
	case cluster == "" || hub == "":
		return driver.Terminal(fmt.Errorf("%s already exists and was not created by this hub: delete it, or tag it with %s=%s and %s=%s",
			what, irsa.TagOwner, g.cluster, irsa.TagOwnerHub, g.Hub))
	case hub != g.Hub.String():
		return driver.Terminal(fmt.Errorf("%s belongs to the ManagedCluster %q of another hub, %s", what, cluster, hub))
	}
	// The names of roles do not include the region.
	return driver.Terminal(fmt.Errorf("%s belongs to the ManagedCluster %q, whose EKS cluster has the account and the name of %s too: "+
		"a hub can have one of them", what, cluster, g.Managed))
}

// missing returns the wanted tags that are missing or have another value.
func missing(tags, wanted map[string]string) map[string]string {
	miss := map[string]string{}
	for key, value := range wanted {
		if have, ok := tags[key]; !ok || have != value {
			miss[key] = value
		}
	}
	return miss
}

// The package comment names the user that the agent of a cluster is on the hub.

func entryUser(cluster string) string { return registration.AWSGroup(cluster) }
func entryGroups(cluster string) []string {
	return []string{registration.AWSGroup(cluster), registration.AWSManagedClustersGroup}
}

func mappedUser(cluster string) string { return registration.ClusterGroup(cluster) }
func mappedGroups(cluster string) []string {
	return []string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup}
}

// namedCluster returns the cluster of one of the users above, or "".
func namedCluster(user string, form func(string) string) string {
	cluster, ok := strings.CutPrefix(user, form(""))
	if !ok || strings.Contains(cluster, ":") {
		return ""
	}
	return cluster
}

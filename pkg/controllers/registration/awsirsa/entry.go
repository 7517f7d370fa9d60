// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	driver "github.com/clusterhub/clusterhub/pkg/controllers/registration"
)

const standard = "STANDARD"

// ensureEntry makes the access entry of the role, or makes it what it should be.
func (d *Driver) ensureEntry(ctx context.Context, g grant, roleID string, fresh bool) error {
	if fresh {
		// A new role rarely has an entry: one call instead of two.
		err := d.createEntry(ctx, g, roleID)
		if !is[*ekstypes.ResourceInUseException](err) {
			return err
		}
	}
	entry, err := d.getEntry(ctx, g)
	if err != nil {
		return err
	}
	if entry == nil {
		return d.createEntry(ctx, g, roleID)
	}
	if err := g.ownsEntry(entry); err != nil {
		return err
	}
	if entry.Tags[TagRoleID] != roleID || aws.ToString(entry.Type) != standard {
		if err := d.deleteEntry(ctx, g); err != nil {
			return err
		}
		return d.createEntry(ctx, g, roleID)
	}
	if aws.ToString(entry.Username) != entryUser(g.cluster) || !sameSet(entry.KubernetesGroups, entryGroups(g.cluster)) {
		_, err := d.eks.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{
			ClusterName: aws.String(g.Hub.Name), PrincipalArn: aws.String(g.HubRoleARN()),
			Username: aws.String(entryUser(g.cluster)), KubernetesGroups: entryGroups(g.cluster),
		})
		if err != nil {
			return awsError("EKS UpdateAccessEntry "+g.HubRole(), err)
		}
	}
	if miss := missing(entry.Tags, d.entryTags(g, roleID)); len(miss) > 0 {
		_, err := d.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: entry.AccessEntryArn, Tags: miss})
		if err != nil {
			return awsError("EKS TagResource "+g.HubRole(), err)
		}
	}
	return nil
}

func (d *Driver) removeEntry(ctx context.Context, g grant, mine bool) error {
	entry, err := d.getEntry(ctx, g)
	if err != nil || entry == nil {
		return err
	}
	// One without tags is ours if the role is.
	if g.ownsEntry(entry) != nil || entry.Tags[TagCluster] == "" && !mine {
		return nil
	}
	return d.deleteEntry(ctx, g)
}

// ownsEntry is nil for the entry of this cluster of this hub, and for one that says nothing of whose it is: the role that
// it lets in is ours.
func (g grant) ownsEntry(entry *ekstypes.AccessEntry) error {
	what := "the EKS access entry of " + g.HubRole()
	if entry.Tags[TagCluster] != "" {
		return g.owns(what, entry.Tags)
	}
	if other := namedCluster(aws.ToString(entry.Username), entryUser); other != "" && other != g.cluster {
		return driver.Terminal(fmt.Errorf("%s belongs to the ManagedCluster %q, by its user name", what, other))
	}
	return nil
}

// getEntry returns nil for an entry that is not there.
func (d *Driver) getEntry(ctx context.Context, g grant) (*ekstypes.AccessEntry, error) {
	out, err := d.eks.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{
		ClusterName: aws.String(g.Hub.Name), PrincipalArn: aws.String(g.HubRoleARN()),
	})
	if is[*ekstypes.ResourceNotFoundException](err) {
		return nil, nil
	}
	if err != nil {
		return nil, awsError("EKS DescribeAccessEntry "+g.HubRole(), err)
	}
	return out.AccessEntry, nil
}

func (d *Driver) createEntry(ctx context.Context, g grant, roleID string) error {
	_, err := d.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: aws.String(g.Hub.Name), PrincipalArn: aws.String(g.HubRoleARN()), Type: aws.String(standard),
		Username: aws.String(entryUser(g.cluster)), KubernetesGroups: entryGroups(g.cluster),
		Tags: d.entryTags(g, roleID),
	})
	if err == nil {
		return nil
	}
	wrapped := awsError("EKS CreateAccessEntry "+g.HubRole(), err)
	// What is not found is the cluster. An invalid parameter, though, is most often a role that EKS will see in some seconds.
	if is[*ekstypes.ResourceNotFoundException](err) {
		return driver.Terminal(wrapped)
	}
	return wrapped
}

func (d *Driver) deleteEntry(ctx context.Context, g grant) error {
	_, err := d.eks.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{
		ClusterName: aws.String(g.Hub.Name), PrincipalArn: aws.String(g.HubRoleARN()),
	})
	if err != nil && !is[*ekstypes.ResourceNotFoundException](err) {
		return awsError("EKS DeleteAccessEntry "+g.HubRole(), err)
	}
	return nil
}

func (d *Driver) entryTags(g grant, roleID string) map[string]string {
	tags := d.wantedTags(g)
	tags[TagRoleID] = roleID
	return tags
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

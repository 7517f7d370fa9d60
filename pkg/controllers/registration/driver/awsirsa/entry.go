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

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

const standard = "STANDARD"

// accessEntries creates, updates and deletes the access entries of roles.
type accessEntries struct {
	eks    *eks.Client
	tags   map[string]string
	settle *settling
}

// ensure creates or updates the access entry of the role.
func (a *accessEntries) ensure(ctx context.Context, g grant, r *role, fresh bool) error {
	if fresh {
		// A new role rarely has an entry: this is one call instead of two.
		err := a.create(ctx, g)
		if !is[*ekstypes.ResourceInUseException](err) {
			return err
		}
	}
	entry, err := a.get(ctx, g)
	if err != nil {
		return err
	}
	if entry == nil {
		return a.create(ctx, g)
	}
	if err := g.ownsEntry(entry); err != nil {
		return err
	}
	if belongsToPreviousRole(entry, r) || aws.ToString(entry.Type) != standard {
		if err := a.delete(ctx, g); err != nil {
			return err
		}
		return a.create(ctx, g)
	}
	if aws.ToString(entry.Username) != entryUser(g.cluster) || !sameSet(entry.KubernetesGroups, entryGroups(g.cluster)) {
		_, err := a.eks.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{
			ClusterName: aws.String(g.Hub.Name), PrincipalArn: aws.String(g.HubRoleARN()),
			Username: aws.String(entryUser(g.cluster)), KubernetesGroups: entryGroups(g.cluster),
		})
		if err != nil {
			return awsError("EKS UpdateAccessEntry "+g.HubRole(), err)
		}
	}
	if err := a.dropPolicies(ctx, g); err != nil {
		return err
	}
	if miss := missing(entry.Tags, g.desiredTags(a.tags)); len(miss) > 0 {
		_, err := a.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: entry.AccessEntryArn, Tags: miss})
		if err != nil {
			err = awsError("EKS TagResource "+g.HubRole(), err)
		}
		return g.unlessTagged(err)
	}
	return nil
}

// belongsToPreviousRole reports whether an entry was created for an earlier role of the same name. EKS gives access only to the role that existed when the
// entry was created, and does not report which one that was.
func belongsToPreviousRole(entry *ekstypes.AccessEntry, r *role) bool {
	return entry.CreatedAt != nil && entry.CreatedAt.Before(r.created)
}

// remove deletes the access entry. It reports whether it must be called again, because there may be an entry that EKS does not show yet.
func (a *accessEntries) remove(ctx context.Context, g grant) (again bool, err error) {
	entry, err := a.get(ctx, g)
	if err != nil || entry == nil {
		return err == nil && a.settle.unseenEntry(g), err
	}
	if g.ownsEntry(entry) != nil {
		return false, nil
	}
	err = a.delete(ctx, g)
	if err == nil {
		a.settle.entryDeleted(g)
	}
	return false, err
}

// ownsEntry returns nil for the entry of this cluster of this hub: by its tags or, if it does not have both of them, by its user name, which no
// other cluster has. Every other entry belongs to others, even if it is for our role.
func (g grant) ownsEntry(entry *ekstypes.AccessEntry) error {
	what := "the EKS access entry of " + g.HubRole()
	cluster, hub := entry.Tags[irsa.TagOwner], entry.Tags[irsa.TagOwnerHub]
	if cluster != "" && hub != "" || cluster != "" && cluster != g.cluster || hub != "" && hub != g.Hub.String() {
		return g.owns(what, entry.Tags)
	}
	user := aws.ToString(entry.Username)
	if user == entryUser(g.cluster) {
		return nil
	}
	if other := namedCluster(user, entryUser); other != "" {
		return driver.Terminal(fmt.Errorf("%s belongs to the ManagedCluster %q, by its user name", what, other))
	}
	return driver.Terminal(fmt.Errorf("%s already exists, with the user name %q, and was not created by this hub: delete it",
		what, user))
}

// unlessTagged adds a note that the hub may not tag access entries, and returns any other error.
func (g grant) unlessTagged(err error) error {
	if !denied(err) {
		return err
	}
	g.note("Its EKS access entry does not have the tags of the hub, and works without them: " + err.Error())
	return nil
}

// get returns nil for an entry that does not exist.
func (a *accessEntries) get(ctx context.Context, g grant) (*ekstypes.AccessEntry, error) {
	out, err := a.eks.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{
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

// create creates the entry, without tags if the hub may not tag it.
func (a *accessEntries) create(ctx context.Context, g grant) error {
	refused := a.tryCreate(ctx, g, g.desiredTags(a.tags))
	if !denied(refused) {
		return refused
	}
	if err := a.tryCreate(ctx, g, nil); err != nil {
		return err
	}
	return g.unlessTagged(refused)
}

func (a *accessEntries) tryCreate(ctx context.Context, g grant, tags map[string]string) error {
	_, err := a.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: aws.String(g.Hub.Name), PrincipalArn: aws.String(g.HubRoleARN()), Type: aws.String(standard),
		Username: aws.String(entryUser(g.cluster)), KubernetesGroups: entryGroups(g.cluster), Tags: tags,
	})
	if err == nil {
		a.settle.entered(g)
		return nil
	}
	wrapped := awsError("EKS CreateAccessEntry "+g.HubRole(), err)
	// The cluster was not found. An invalid parameter, though, is most often a role that EKS will see in some seconds.
	if is[*ekstypes.ResourceNotFoundException](err) {
		return driver.Terminal(wrapped)
	}
	return wrapped
}

func (a *accessEntries) delete(ctx context.Context, g grant) error {
	_, err := a.eks.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{
		ClusterName: aws.String(g.Hub.Name), PrincipalArn: aws.String(g.HubRoleARN()),
	})
	if err != nil && !is[*ekstypes.ResourceNotFoundException](err) {
		return awsError("EKS DeleteAccessEntry "+g.HubRole(), err)
	}
	return nil
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

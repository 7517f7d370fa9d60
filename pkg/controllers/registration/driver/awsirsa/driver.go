// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package awsirsa registers EKS clusters by AWS IAM (IRSA). An accepted cluster gets an IAM role in the hub's account that the cluster's agent may
// assume, and access to the hub's EKS cluster as that role: by an EKS access entry, or by an entry in the ConfigMap kube-system/aws-auth.
//
// What exists in AWS is read before anything is written. So a cluster without drift costs only reads, and the work of a process that was killed is
// continued. A role is changed or deleted only if its tags say that it was created for the same ManagedCluster of the same hub. An access entry
// must have these tags or, where the hub may not tag entries, the user name of that cluster. So a ManagedCluster that names the ARN of another's
// cluster gets an error, not its identity.
//
// On the hub an agent is
//   - with an access entry, user and group open-cluster-management:<cluster>: EKS refuses "system:", and a bare name might
//     be that of another user;
//   - by aws-auth, user system:open-cluster-management:<cluster>, in the groups that a certificate would give it.
package awsirsa

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// Name is the name of the driver in --registration-drivers.
	Name = "awsirsa"
	// DefaultCheckInterval is the default of --drift-check-interval: AWS limits the rate of reads of an account.
	DefaultCheckInterval = time.Hour

	// timeout limits one Grant or Revoke, which are a handful of calls.
	timeout = 30 * time.Second
)

// Access is the way in which a role gets access to the hub's cluster. Its values are those of --eks-access.
type Access string

// The ways of access.
const (
	AccessEntry Access = "access-entry"
	AWSAuth     Access = "aws-auth"
)

// Options is the configuration of a Driver.
type Options struct {
	// HubClusterARN is the ARN of the EKS cluster that the hub runs on.
	HubClusterARN string
	// AWS has the credentials, as returned by LoadConfig. Its region is replaced by the one in the hub's ARN.
	AWS aws.Config
	// Access defaults to AccessEntry. Clusters that were accepted with another value move at their next check.
	Access Access
	// Kube is the hub's kube-apiserver. Only AWSAuth needs it.
	Kube kubernetes.Interface
	// Tags are added to roles and access entries, in addition to the driver's own.
	Tags map[string]string
	// RolePath is the IAM path of new roles, "/" by default; a role keeps the path that it was created with.
	RolePath string
	// PermissionsBoundary is the ARN of the policy that each role has as its permissions boundary. Without one, roles keep what they have.
	PermissionsBoundary string
	// ApprovedARNPatterns are regular expressions; a cluster whose whole ARN one of them matches, and whose name follows from that, is accepted
	// without an admin, see irsa.Patterns. An empty list approves nothing.
	ApprovedARNPatterns []string
	// CheckInterval is the interval of checks of a cluster for drift, such as DefaultCheckInterval. 0 disables them.
	CheckInterval time.Duration
	// Clock defaults to the real one.
	Clock clock.PassiveClock
}

// Driver implements the registration by AWS IAM.
type Driver struct {
	hub      irsa.ClusterARN
	access   Access
	path     irsa.RolePath
	patterns irsa.Patterns
	interval time.Duration

	roles   iamRoles
	entries accessEntries
	settle  *settling
	// awsAuth is nil without a client of the hub.
	awsAuth *awsAuth
}

var (
	_ driver.Driver    = &Driver{}
	_ driver.Exclusive = &Driver{}
	_ driver.Explainer = &Driver{}
	_ driver.Mover     = &Driver{}
)

// New returns a driver, or an error if the configuration is invalid. It sends no request.
func New(c Options) (*Driver, error) {
	hub, err := irsa.ParseClusterARN(c.HubClusterARN)
	if err != nil {
		return nil, fmt.Errorf("the hub's ARN: %w", err)
	}
	patterns, err := irsa.ParsePatterns(c.ApprovedARNPatterns)
	if err != nil {
		return nil, err
	}
	if err := validateTags(c.Tags); err != nil {
		return nil, err
	}
	path, err := irsa.ParseRolePath(c.RolePath)
	if err != nil {
		return nil, fmt.Errorf("the path of roles: %w", err)
	}
	if err := irsa.CheckBoundary(c.PermissionsBoundary, hub); err != nil {
		return nil, fmt.Errorf("the permissions boundary: %w", err)
	}
	switch c.Access {
	case "":
		c.Access = AccessEntry
	case AccessEntry:
	case AWSAuth:
		if c.Kube == nil {
			return nil, fmt.Errorf("access by %s needs a client of the hub", AWSAuth)
		}
	default:
		return nil, fmt.Errorf("access must be %[2]q or %[3]q, not %[1]q", c.Access, AccessEntry, AWSAuth)
	}
	if c.CheckInterval < 0 {
		return nil, fmt.Errorf("the interval of checks is %s, and must not be negative", c.CheckInterval)
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	settle := newSettling(c.Clock)
	d := &Driver{
		hub: hub, access: c.Access, path: path, patterns: patterns, interval: c.CheckInterval, settle: settle,
		roles:   iamRoles{boundary: c.PermissionsBoundary, tags: c.Tags, settle: settle},
		entries: accessEntries{tags: c.Tags, settle: settle},
	}
	if c.Kube != nil {
		d.awsAuth = &awsAuth{kube: c.Kube}
	}
	d.roles.iam, d.entries.eks, d.roles.account = newClients(c.AWS, hub.Region)
	return d, nil
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return Name }

// CheckInterval implements driver.Driver.
func (d *Driver) CheckInterval() time.Duration { return d.interval }

// Handles implements driver.Driver. It reports whether a cluster names its EKS cluster.
func (d *Driver) Handles(cluster *clusterv1.ManagedCluster) bool {
	return cluster.Annotations[registration.AnnotationManagedClusterARN] != "" ||
		cluster.Annotations[registration.AnnotationManagedClusterARNOfSeed] != ""
}

// AutoApproves implements driver.Driver. It reports whether a pattern approves the cluster's ARN for its name.
func (d *Driver) AutoApproves(cluster *clusterv1.ManagedCluster) bool {
	identity, err := d.identity(cluster)
	return err == nil && d.patterns.Approve(identity.Managed, cluster.Name)
}

// WhyNot implements driver.Explainer.
func (d *Driver) WhyNot(cluster *clusterv1.ManagedCluster) string {
	identity, err := d.identity(cluster)
	if err != nil {
		return ""
	}
	names := d.patterns.Names(identity.Managed)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("A pattern matches the ARN %s, but approves it for a cluster with the name %q", identity.Managed, names[0])
}

// Identity implements driver.Exclusive: a role is for one cluster. The name of a role does not include the region.
func (d *Driver) Identity(rec driver.Record) string {
	g, err := d.read("", rec)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("the IAM role %s, of the EKS cluster %s of the AWS account %s", g.HubRole(), g.Managed.Name, g.Managed.Account)
}

// record is the driver's record of a cluster. It has all that is needed to revoke what was granted, even if the flags have changed since.
type record struct {
	HubClusterARN     string `json:"hubClusterARN"`
	ManagedClusterARN string `json:"managedClusterARN"`
	RoleName          string `json:"roleName"`
	// RolePath is the path of the role, which does not change. Empty is "/".
	RolePath irsa.RolePath `json:"rolePath,omitempty"`
	Access   Access        `json:"access"`
	// Former is the access that the role had before it moved, while some of it may be left.
	Former Access `json:"former,omitempty"`
}

// Plan implements driver.Driver.
func (d *Driver) Plan(cluster *clusterv1.ManagedCluster) (driver.Record, error) {
	identity, err := d.identity(cluster)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(record{
		HubClusterARN:     identity.Hub.String(),
		ManagedClusterARN: identity.Managed.String(),
		RoleName:          identity.HubRole(),
		RolePath:          identity.HubPath,
		Access:            d.access,
	})
	return driver.Record(text), err
}

// identity returns the EKS cluster that a cluster claims to be. Names, suffix and account are computed from its ARN.
func (d *Driver) identity(cluster *clusterv1.ManagedCluster) (irsa.Identity, error) {
	key, arn := registration.AnnotationManagedClusterARN, cluster.Annotations[registration.AnnotationManagedClusterARN]
	if seed := cluster.Annotations[registration.AnnotationManagedClusterARNOfSeed]; seed != "" {
		if arn != "" && arn != seed {
			return irsa.Identity{}, fmt.Errorf("the annotations %s and %s name different clusters: remove one of them",
				registration.AnnotationManagedClusterARN, registration.AnnotationManagedClusterARNOfSeed)
		}
		if arn == "" {
			key, arn = registration.AnnotationManagedClusterARNOfSeed, seed
		}
	}
	// The author of the cluster sets the ARN. A cluster with a key or requesters expects a certificate, and no IAM role.
	for _, other := range []string{registration.AnnotationAgentKey, registration.AnnotationRequesters} {
		if cluster.Annotations[other] != "" {
			return irsa.Identity{}, fmt.Errorf("the annotations %s and %s contradict each other: the first is of a cluster that registers "+
				"by AWS IAM, the second of one that registers by certificate; remove the wrong one", key, other)
		}
	}
	managed, err := irsa.ParseClusterARN(arn)
	if err != nil {
		return irsa.Identity{}, fmt.Errorf("the annotation %s: %w", key, err)
	}
	identity, err := irsa.NewIdentity(d.hub, managed)
	if err != nil {
		return irsa.Identity{}, err
	}
	identity.HubPath = d.path
	said := cluster.Annotations[registration.AnnotationRoleSuffix]
	if said != "" && said != identity.Suffix() {
		return irsa.Identity{}, fmt.Errorf("the agent and the hub have different ARNs of the hub: this hub is %s, "+
			"for which the annotation %s would be %s", d.hub, registration.AnnotationRoleSuffix, identity.Suffix())
	}
	return identity, nil
}

// grant is one cluster's record, read back.
type grant struct {
	irsa.Identity
	cluster string
	access  Access
	former  Access
	*notes
}

func (d *Driver) read(cluster string, rec driver.Record) (grant, error) {
	refuse := func(why string) (grant, error) {
		return grant{}, driver.Terminal(fmt.Errorf("the record of the cluster's registration: %s", why))
	}
	var r record
	if err := json.Unmarshal([]byte(rec), &r); err != nil {
		return refuse(err.Error())
	}
	if r.HubClusterARN != d.hub.String() {
		return refuse(fmt.Sprintf("it was accepted by the hub %q, and this hub is %s", r.HubClusterARN, d.hub))
	}
	managed, err := irsa.ParseClusterARN(r.ManagedClusterARN)
	if err != nil {
		return refuse(err.Error())
	}
	identity, err := irsa.NewIdentity(d.hub, managed)
	if err != nil {
		return refuse(err.Error())
	}
	if r.RoleName != identity.HubRole() {
		return refuse(fmt.Sprintf("it names the role %q instead of %s", r.RoleName, identity.HubRole()))
	}
	identity.HubPath, err = irsa.ParseRolePath(string(r.RolePath))
	if err != nil {
		return refuse(err.Error())
	}
	for _, access := range []Access{r.Access, r.Former} {
		if access != AccessEntry && access != AWSAuth && (access != "" || r.Access == "") {
			return refuse(fmt.Sprintf("unknown access %q", access))
		}
		if access == AWSAuth && d.awsAuth == nil {
			return refuse(fmt.Sprintf("access by %s needs a client of the hub", AWSAuth))
		}
	}
	if r.Access == r.Former {
		return refuse(fmt.Sprintf("it moves from access by %[1]s to access by %[1]s", r.Access))
	}
	return grant{Identity: identity, cluster: cluster, access: r.Access, former: r.Former, notes: &notes{}}, nil
}

// Grant implements driver.Driver. The first grant of a cluster is four calls: GetRole, CreateRole, PutRolePolicy, CreateAccessEntry. If EKS cannot
// see the role yet, each retry is one more. Without drift, a grant is six reads.
func (d *Driver) Grant(ctx context.Context, cluster string, rec driver.Record) error {
	g, err := d.read(cluster, rec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, fresh := d.settle.ready(g)
	if !fresh {
		r, fresh, err = d.roles.ensure(ctx, g)
		if err != nil {
			return err
		}
	}
	if err := d.ensureAccess(ctx, g, r, fresh); err != nil {
		return err
	}
	if err := d.deleteFormer(ctx, g); err != nil {
		return err
	}
	d.settle.granted(g)
	if g.HubPath != d.path {
		g.note(fmt.Sprintf("Its IAM role keeps the path %s that it was created with, and new ones get %s: to change it, deny the cluster, wait until "+
			"it is denied, accept it again, and let its agent join again with --hub-role-path=%[2]s", g.HubPath, d.path))
	}
	return g.warning()
}

// Revoke implements driver.Driver. It first deletes the access, then the trust policy of the role, and then the role, which ends the sessions of
// the agent in AWS. It skips what belongs to another cluster, without an error: this cluster never had it.
func (d *Driver) Revoke(ctx context.Context, cluster string, rec driver.Record) error {
	g, err := d.read(cluster, rec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// Access is also deleted while IAM does not respond.
	role, roleErr := d.roles.get(ctx, g)
	mine := roleErr == nil && role != nil && g.owns("", role.tags) == nil
	again, err := d.removeAccess(ctx, g, g.access, mine)
	if err == nil {
		var former bool
		former, err = d.removeAccess(ctx, g, g.former, mine)
		again = again || former
	}
	switch {
	case err != nil:
		return err
	case roleErr != nil:
		return roleErr
	case role == nil && d.settle.unseen(g):
		return fmt.Errorf("IAM does not return the role %s, but may still return one that was just created: checking again", g.HubRole())
	case mine:
		if err := d.roles.delete(ctx, g, role); err != nil {
			return err
		}
	}
	if again {
		return fmt.Errorf("EKS does not return the access entry of %s, but may still return one that was just created: checking again", g.HubRole())
	}
	if !mine {
		d.settle.forget(g)
	}
	return nil
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package awsirsa registers EKS clusters by AWS IAM (IRSA). An accepted cluster gets an IAM role in the hub's account that
// the cluster's agent may assume, and access to the hub's EKS cluster as that role: by an EKS access entry, or by an entry
// in the ConfigMap kube-system/aws-auth.
//
// What exists in AWS is read before anything is written. So a cluster that has what it should have costs reads only, and the
// work of a process that was killed is continued. A role is changed or deleted only if its tags say that it was made for the
// same ManagedCluster of the same hub. An access entry has to have these tags or, where the hub may not tag entries, the
// user name of that cluster. So a ManagedCluster that names the ARN of another's cluster gets an error, not its identity.
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
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// Name is how --registration-drivers names the driver.
	Name = "awsirsa"
	// DefaultCheckInterval is the default of --drift-check-interval: AWS lets an account read only so often.
	DefaultCheckInterval = time.Hour

	// timeout bounds one Grant or Revoke, which are a handful of calls.
	timeout = 30 * time.Second
)

// Access is how a role is let into the hub's cluster, and the values of --eks-access.
type Access string

// The ways of access.
const (
	AccessEntry Access = "access-entry"
	AWSAuth     Access = "aws-auth"
)

// Config is what a Driver needs to know.
type Config struct {
	// HubClusterARN is that of the EKS cluster that the hub runs on.
	HubClusterARN string
	// AWS has the credentials, as LoadConfig finds them. The region is that of the hub's ARN, whatever it says.
	AWS aws.Config
	// Access is AccessEntry when it is empty. Clusters that have been accepted with another one move when they are checked.
	Access Access
	// Kube is the hub's kube-apiserver. Only AWSAuth needs it.
	Kube kubernetes.Interface
	// Tags are put on roles and access entries besides the driver's own.
	Tags map[string]string
	// RolePath is the IAM path that new roles get; a role keeps the one that it was made with. None is "/".
	RolePath string
	// PermissionsBoundary is the ARN of the policy that each role has as its permissions boundary. Without one, roles keep what they have.
	PermissionsBoundary string
	// ApprovedARNPatterns are regular expressions; a cluster whose whole ARN one of them matches, and whose name follows from
	// that, is accepted without an admin, see irsa.Patterns. None approves nothing.
	ApprovedARNPatterns []string
	// CheckInterval is how often a cluster is looked at for drift, such as DefaultCheckInterval. 0 is never.
	CheckInterval time.Duration
	// Clock is the real one when it is nil.
	Clock clock.PassiveClock
}

// Driver implements the registration by AWS IAM.
type Driver struct {
	hub      irsa.Cluster
	access   Access
	path     irsa.RolePath
	boundary string
	tags     map[string]string
	patterns irsa.Patterns
	interval time.Duration

	iam     *iam.Client
	eks     *eks.Client
	account func(context.Context) (string, error)
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

// New returns a driver, or says what is wrong with its configuration. It sends no request.
func New(c Config) (*Driver, error) {
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
	d := &Driver{
		hub: hub, access: c.Access, path: path, boundary: c.PermissionsBoundary, tags: c.Tags, patterns: patterns,
		interval: c.CheckInterval, settle: newSettling(c.Clock),
	}
	if c.Kube != nil {
		d.awsAuth = &awsAuth{kube: c.Kube}
	}
	d.iam, d.eks, d.account = newClients(c.AWS, hub.Region)
	return d, nil
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return Name }

// CheckInterval implements driver.Driver.
func (d *Driver) CheckInterval() time.Duration { return d.interval }

// Handles is true for a cluster that says which EKS cluster it is.
func (d *Driver) Handles(cluster *clusterv1.ManagedCluster) bool {
	return cluster.Annotations[registration.AnnotationManagedClusterARN] != "" ||
		cluster.Annotations[registration.AnnotationManagedClusterARNOfSeed] != ""
}

// AutoApproves is true for a cluster whose ARN a pattern approves for its name.
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

// Identity implements driver.Exclusive: a role lets in one cluster. Its name does not tell regions apart.
func (d *Driver) Identity(rec driver.Record) string {
	g, err := d.read("", rec)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("the IAM role %s, of the EKS cluster %s of the AWS account %s", g.HubRole(), g.Managed.Name, g.Managed.Account)
}

// record is what the driver keeps of a cluster. What has been granted can be revoked from it, also when the flags are
// others by then.
type record struct {
	HubClusterARN     string `json:"hubClusterARN"`
	ManagedClusterARN string `json:"managedClusterARN"`
	RoleName          string `json:"roleName"`
	// RolePath is the path that the role is made with, and keeps. None is "/".
	RolePath irsa.RolePath `json:"rolePath,omitempty"`
	Access   Access        `json:"access"`
	// Former is how the role was let in before it moved, while something of that may be left.
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

// identity is what a cluster says of itself. Names, suffix and account are computed from its ARN.
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
	// The ARN is by the author of the cluster. A cluster with a key or requesters expects a certificate, and no IAM role.
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
		return irsa.Identity{}, fmt.Errorf("the agent and the hub disagree about the hub's ARN: this hub is %s, "+
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
	if identity.HubPath, err = irsa.ParseRolePath(string(r.RolePath)); err != nil {
		return refuse(err.Error())
	}
	for _, access := range []Access{r.Access, r.Former} {
		if access != AccessEntry && access != AWSAuth && (access != "" || r.Access == "") {
			return refuse(fmt.Sprintf("access by %q is not known", access))
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

// Grant implements driver.Driver. A first one is four calls: GetRole, CreateRole, PutRolePolicy, CreateAccessEntry.
// A role that EKS cannot see yet costs one more each time it is tried again. When nothing has drifted it is six, all
// reads.
func (d *Driver) Grant(ctx context.Context, cluster string, rec driver.Record) error {
	g, err := d.read(cluster, rec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, fresh := d.settle.ready(g)
	if !fresh {
		if r, fresh, err = d.ensureRole(ctx, g); err != nil {
			return err
		}
	}
	if err := d.ensureAccess(ctx, g, r, fresh); err != nil {
		return err
	}
	if err := d.leaveFormer(ctx, g); err != nil {
		return err
	}
	d.settle.granted(g)
	if g.HubPath != d.path {
		g.note(fmt.Sprintf("Its IAM role keeps the path %s that it was made with, and new ones get %s: to give it that, deny the cluster, wait until "+
			"it is denied, accept it again, and let its agent join again with --hub-role-path=%[2]s", g.HubPath, d.path))
	}
	return g.warning()
}

// Revoke implements driver.Driver. Access goes first; then who may become the role; then the role, whose deletion ends
// the sessions of the agent in AWS. What belongs to another cluster stays, without an error: this one never had it.
func (d *Driver) Revoke(ctx context.Context, cluster string, rec driver.Record) error {
	g, err := d.read(cluster, rec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// Access is taken also while IAM does not answer.
	role, roleErr := d.getRole(ctx, g)
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
		return fmt.Errorf("IAM does not show the role %s, but may soon show one that was made a moment ago: looking again", g.HubRole())
	case mine:
		if err := d.deleteRole(ctx, g, role); err != nil {
			return err
		}
	}
	if again {
		return fmt.Errorf("EKS does not show the access entry of %s, but may soon show one that was made a moment ago: looking again", g.HubRole())
	}
	if !mine {
		d.settle.forget(g)
	}
	return nil
}

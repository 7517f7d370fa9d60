// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// awsFixture is a fixture whose process has the driver of AWS IAM, and the AWS that it calls.
type awsFixture struct {
	*fixture
	aws          *fakeaws.Server
	hub, managed *fakeaws.Account
	hubCluster   irsa.ClusterARN
	access       awsirsa.Access
	sdk          aws.Config
	kube         *kubefake.Clientset
	// path is the path of new roles.
	path string
	// patterns are the patterns of ARNs that are approved without an admin.
	patterns []string
}

const (
	awsRegion = "us-west-2"
	// podSubject is the subject of hub-controller-manager's token.
	podSubject = "system:serviceaccount:clusterhub-system:hub-controller-manager"
	// noNodes is the content of aws-auth before any cluster joins.
	noNodes = "- rolearn: arn:aws:iam::123456789012:role/nodes\n  username: system:node:{{EC2PrivateDNSName}}\n"
)

// newAWSFixture returns a fixture with these clusters, each of which claims to be the EKS cluster of its name.
func newAWSFixture(t *testing.T, access awsirsa.Access, clusters ...string) *awsFixture {
	t.Helper()
	f := &awsFixture{aws: must(fakeaws.Start(1))(t), access: access}
	t.Cleanup(f.aws.Close)
	f.hub = must(f.aws.AddAccount("123456789012", awsRegion))(t)
	f.managed = must(f.aws.AddAccount("210987654321", awsRegion))(t)
	f.hubCluster = must(irsa.ParseClusterARN(f.hub.AddCluster(fakeaws.Cluster{Name: "hub"})))(t)
	issuer := must(f.hub.AddIssuer("oidc.eks." + awsRegion + ".amazonaws.com/id/HUB"))(t)
	creator := must(f.hub.AddRole(fakeaws.Role{
		Name:     irsa.CreatorRole(f.hubCluster),
		Trust:    irsa.WebIdentityTrustPolicy(f.hubCluster, issuer.Provider, podSubject).JSON(),
		Policies: map[string]string{"creator": irsa.CreatorPolicy(f.hubCluster, irsa.HubRoles{AccessEntries: access == awsirsa.AccessEntry}).JSON()},
	}))(t)
	for key, value := range must(issuer.PodEnv(t.TempDir(), creator, podSubject))(t) {
		t.Setenv(key, value)
	}
	f.sdk = must(awsirsa.LoadConfig(t.Context(), awsRegion))(t)
	f.sdk.HTTPClient = f.aws.InProcess()
	f.kube = kubefake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}, Data: map[string]string{"mapRoles": noNodes},
	})
	f.fixture = newFixture(t)
	for _, name := range clusters {
		f.join(name, f.arn(name))
	}
	f.drivers = func() driver.Drivers { return driver.Drivers{f.driver()} }
	f.restart()
	return f
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// driver returns the driver of a new process.
func (f *awsFixture) driver() driver.Driver {
	f.Helper()
	return must(awsirsa.New(awsirsa.Options{
		HubClusterARN: f.hubCluster.String(), AWS: f.sdk, Access: f.access,
		Kube: f.kube, CheckInterval: time.Hour, Clock: f.clock, ApprovedARNPatterns: f.patterns, RolePath: f.path,
	}))(f.T)
}

// arn returns the ARN of an EKS cluster, whose admin has created its agent's role.
func (f *awsFixture) arn(name string) string {
	f.Helper()
	managed := f.hubCluster
	managed.Account, managed.Name = f.managed.ID, name
	identity := must(irsa.NewIdentity(f.hubCluster, managed))(f.T)
	if _, there := f.managed.Roles()[identity.ManagedRole()]; !there {
		must(f.managed.AddRole(fakeaws.Role{
			Name: identity.ManagedRole(), Tags: identity.Tags(), Trust: irsa.WebIdentityTrustPolicy(managed, "oidc", "agent").JSON(),
		}))(f.T)
	}
	return managed.String()
}

// hubRole returns the name of the role that the hub creates for an EKS cluster.
func (f *awsFixture) hubRole(name string) string {
	return "ocm-hub-" + irsa.Suffix(f.hubCluster.Account, f.hubCluster.Name, f.managed.ID, name)
}

// giveMore changes the role of an EKS cluster and its access entry, as another program might.
func (f *awsFixture) giveMore(name string) {
	f.Helper()
	config, role, cluster := f.hub.Config(f.hub.Root()), f.hubRole(name), f.hubCluster.Name
	must(iam.NewFromConfig(config).PutRolePolicy(f.Context(), &iam.PutRolePolicyInput{
		RoleName: &role, PolicyName: aws.String("more"), PolicyDocument: aws.String(fakeaws.AllowAll)}))(f.T)
	must(iam.NewFromConfig(config).AttachRolePolicy(f.Context(), &iam.AttachRolePolicyInput{
		RoleName: &role, PolicyArn: aws.String("arn:aws:iam::aws:policy/AdministratorAccess")}))(f.T)
	if f.access == awsirsa.AccessEntry {
		must(eks.NewFromConfig(config).AssociateAccessPolicy(f.Context(), &eks.AssociateAccessPolicyInput{
			ClusterName: &cluster, PrincipalArn: aws.String(f.hub.Roles()[role].ARN),
			PolicyArn:   aws.String("arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"),
			AccessScope: &ekstypes.AccessScope{Type: ekstypes.AccessScopeTypeCluster}}))(f.T)
	}
}

// join creates an accepted ManagedCluster that claims to be an EKS cluster.
func (f *awsFixture) join(name, arn string) {
	f.Helper()
	cluster := newCluster(name)
	cluster.Annotations = map[string]string{registration.AnnotationManagedClusterARN: arn}
	if err := f.client.Create(f.Context(), cluster); err != nil {
		f.Fatal(err)
	}
}

// inAWS lists what exists in AWS, and for which cluster.
func (f *awsFixture) inAWS() (all []string) {
	f.Helper()
	for name, role := range f.hub.Roles() {
		if strings.HasPrefix(name, "ocm-hub-") {
			all = append(all, fmt.Sprintf("role of %s with %d policies", role.Tags[irsa.TagOwner], len(role.Policies)+len(role.Attached)))
		}
	}
	roles := f.hub.Roles()
	for principal, e := range f.hub.AccessEntries(f.hubCluster.String()) {
		role := roles[principal[strings.LastIndex(principal, "/")+1:]]
		of := strings.TrimPrefix(e.Username, "open-cluster-management:")
		if owner := e.Tags[irsa.TagOwner]; owner != of && len(e.Tags) > 0 {
			f.Errorf("the entry of %s is tagged as that of %s", of, owner)
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("entry of %s for %v, of that role: %t %s", of, e.KubernetesGroups,
			e.PrincipalID == role.ID, strings.Join(e.AccessPolicies, " "))))
	}
	found := must(f.kube.CoreV1().ConfigMaps("kube-system").Get(f.Context(), "aws-auth", metav1.GetOptions{}))(f.T)
	mine, ok := strings.CutPrefix(found.Data["mapRoles"], noNodes)
	if !ok {
		f.Errorf("the entry of others has changed: %s", found.Data["mapRoles"])
	}
	for line := range strings.Lines(mine) {
		if user, ok := strings.CutPrefix(line, "  username: "); ok {
			all = append(all, "mapping of "+strings.TrimSpace(user))
		}
	}
	slices.Sort(all)
	return all
}

// granted returns what inAWS lists for a cluster with a complete grant.
func (f *awsFixture) granted(name string) []string {
	role := "role of " + name + " with 1 policies"
	if f.access == awsirsa.AWSAuth {
		return []string{"mapping of system:open-cluster-management:" + name, role}
	}
	return []string{"entry of " + name + " for [open-cluster-management:" + name + " open-cluster-management:managed-clusters], of that role: true", role}
}

// errNoProcess is the response to calls of a dead process. The SDK does not retry it.
var errNoProcess = &fakeaws.Error{Code: "NoProcess", Message: errKilled.Error(), Status: 400}

// mortal lets the process die of effects on AWS and on aws-auth, too.
func (f *awsFixture) mortal() {
	f.aws.Inject(fakeaws.Fault{Hook: func(fakeaws.Call) error {
		if f.isDead() {
			return errNoProcess
		}
		return nil
	}})
	f.aws.Inject(fakeaws.Fault{AfterEffect: true, Hook: func(c fakeaws.Call) error {
		if c.Write && f.effect(c.Operation, func() error { return nil }) != nil {
			return errNoProcess
		}
		return nil
	}})
	f.kube.PrependReactor("*", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if f.isDead() {
			return true, nil, errKilled
		}
		update, ok := a.(clienttesting.UpdateAction)
		if !ok || a.GetVerb() != "update" {
			return false, nil, nil
		}
		return true, update.GetObject(), f.effect("update ConfigMap", func() error {
			return f.kube.Tracker().Update(a.GetResource(), update.GetObject(), a.GetNamespace())
		})
	})
}

// nextCheck advances the clock beyond the next check of the cluster.
func (f *awsFixture) nextCheck(name string) {
	f.Helper()
	f.clock.SetTime(f.clock.Now().Add(3 * time.Hour))
	f.settle(name)
}

// anHour reconciles a cluster for an hour: when it is due, and five more times because of events.
func (f *awsFixture) anHour(name string) {
	f.Helper()
	for end := f.clock.Now().Add(time.Hour); f.clock.Now().Before(end); {
		result, err := f.reconcile(name)
		if err != nil || result.RequeueAfter <= 0 {
			f.Fatalf("%v, %v", result, err)
		}
		for range 5 {
			if _, err := f.reconcile(name); err != nil {
				f.Fatal(err)
			}
		}
		f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
	}
}

func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return all
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

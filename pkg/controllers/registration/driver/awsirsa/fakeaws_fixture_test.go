// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// Here the driver has the SDK's own clients, and calls a faithful fake of AWS: policies decide, by web identity.

const (
	hubAccount, managedAccount = "123456789012", "210987654321"
	controller                 = "system:serviceaccount:clusterhub-system:hub-controller-manager"
)

// world is the AWS of a hub and of its clusters, in one partition.
type world struct {
	*testing.T
	*fakeaws.Server
	hub, managed *fakeaws.Account
	cluster      irsa.ClusterARN // the hub's
	agents       *fakeaws.Issuer
	kube         *fake.Clientset
	clock        *fakeClock
	config       aws.Config // of the driver
	roles        irsa.HubRoles
	*Driver
}

// newWorld returns a world in which the driver's role may do only what the policy says.
func newWorld(t *testing.T, region string, access Access, policy func(irsa.PolicyDocument) irsa.PolicyDocument) *world {
	t.Helper()
	return newWorldOf(t, region, irsa.HubRoles{AccessEntries: access == AccessEntry}, policy)
}

// boundaryPolicy is the name of the policy that is the boundary of roles, in the hub's account.
const boundaryPolicy = "platform/limits"

// newWorldOf returns a world whose hub creates such roles.
func newWorldOf(t *testing.T, region string, roles irsa.HubRoles, policy func(irsa.PolicyDocument) irsa.PolicyDocument) *world {
	t.Helper()
	server := must(fakeaws.Start(1))(t)
	t.Cleanup(server.Close)
	w := &world{
		T: t, Server: server, roles: roles, hub: must(server.AddAccount(hubAccount, region))(t),
		managed: must(server.AddAccount(managedAccount, region))(t),
		kube:    fake.NewClientset(newAWSAuth(nodes)),
		clock:   &fakeClock{clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))},
	}
	w.cluster = must(irsa.ParseClusterARN(w.hub.AddCluster(fakeaws.Cluster{Name: "hub-cluster1"})))(t)
	w.agents = must(w.managed.AddIssuer("oidc.eks." + region + ".amazonaws.com/id/MANAGED"))(t)
	issuer := must(w.hub.AddIssuer("oidc.eks." + region + ".amazonaws.com/id/HUB"))(t)
	must(w.hub.AddPolicy(boundaryPolicy, fakeaws.AllowAll))(t)
	w.roles.TagKeys = []string{"team"}
	allowed := irsa.CreatorPolicy(w.cluster, w.roles)
	if policy != nil {
		allowed = policy(allowed)
	}
	creator := must(w.hub.AddRole(fakeaws.Role{
		Name:     irsa.CreatorRole(w.cluster),
		Trust:    irsa.WebIdentityTrustPolicy(w.cluster, issuer.Provider, controller).JSON(),
		Policies: map[string]string{"creator": allowed.JSON()},
	}))(t)
	for key, value := range must(issuer.PodEnv(t.TempDir(), creator, controller))(t) {
		t.Setenv(key, value)
	}
	w.config = must(LoadConfig(t.Context(), region))(t)
	w.config.HTTPClient = w.InProcess() // the credentials come by the network
	w.begin()
	return w
}

// begin starts a new process, which creates roles by w.roles.
func (w *world) begin() {
	w.Helper()
	access := AWSAuth
	if w.roles.AccessEntries {
		access = AccessEntry
	}
	w.Driver = must(New(Options{
		HubClusterARN: w.cluster.String(), AWS: w.config, Access: access, Kube: w.kube, RolePath: string(w.roles.Path),
		PermissionsBoundary: w.roles.Boundary, Tags: map[string]string{"team": "platform"}, Clock: w.clock,
	}))(w.T)
	w.clock.pass(2 * settleTime)
}

// setCreatorPolicy sets the policy of the hub, as an admin of AWS does before the hub creates roles in another way.
func (w *world) setCreatorPolicy(policy irsa.PolicyDocument) {
	w.Helper()
	if err := w.hub.ChangeRole(irsa.CreatorRole(w.cluster), func(r *fakeaws.Role) { r.Policies["creator"] = policy.JSON() }); err != nil {
		w.Fatal(err)
	}
}

// must returns values whose errors end the test: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// join creates a managed cluster, with the role that its admin creates beforehand, and returns its record.
func (w *world) join(name string) (irsa.Identity, driver.Record) {
	w.Helper()
	managed := w.cluster
	managed.Account, managed.Name = managedAccount, name
	identity := must(irsa.NewIdentity(w.cluster, managed))(w.T)
	identity.HubPath = w.roles.Path
	must(w.managed.AddRole(fakeaws.Role{
		Name: identity.ManagedRole(), Tags: identity.Tags(),
		Trust:    irsa.WebIdentityTrustPolicy(managed, w.agents.Provider, "system:serviceaccount:agent:"+name).JSON(),
		Policies: map[string]string{"assume": identity.ManagedAccessPolicy().JSON()},
	}))(w.T)
	return identity, must(w.Plan(newCluster(name, annotation, managed.String())))(w.T)
}

// enter authenticates to the hub as the agent of one cluster, by the role of another, or its own.
func (w *world) enter(agent, as irsa.Identity) (fakeaws.UserInfo, error) {
	w.Helper()
	anonymous := w.managed.Config(fakeaws.Credentials{})
	anonymous.Credentials = nil
	session, err := sts.NewFromConfig(anonymous).AssumeRoleWithWebIdentity(w.Context(), &sts.AssumeRoleWithWebIdentityInput{
		RoleArn: aws.String(agent.ManagedRoleARN()), RoleSessionName: aws.String("agent"),
		WebIdentityToken: aws.String(must(w.agents.Token("system:serviceaccount:agent:"+agent.Managed.Name, time.Hour))(w.T)),
	})
	if err != nil {
		w.Fatal(err)
	}
	own := sts.NewFromConfig(w.managed.Config(fakeaws.Credentials{AccessKeyID: *session.Credentials.AccessKeyId,
		SecretAccessKey: *session.Credentials.SecretAccessKey, SessionToken: *session.Credentials.SessionToken}))
	assumed, err := own.AssumeRole(w.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String(as.HubRoleARN()), RoleSessionName: aws.String("agent")})
	if err != nil {
		return fakeaws.UserInfo{}, err
	}
	presign := sts.NewPresignClient(sts.NewFromConfig(w.hub.Config(fakeaws.Credentials{AccessKeyID: *assumed.Credentials.AccessKeyId,
		SecretAccessKey: *assumed.Credentials.SecretAccessKey, SessionToken: *assumed.Credentials.SessionToken})))
	signed, err := presign.PresignGetCallerIdentity(w.Context(), nil, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(smithyhttp.AddHeaderValue("x-k8s-aws-id", w.cluster.Name)))
	})
	if err != nil {
		w.Fatal(err)
	}
	token := "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(signed.URL))
	return w.Authenticate(w.cluster.String(), token)
}

// mustEnter fails unless the agent is authenticated as its cluster.
func (w *world) mustEnter(cluster irsa.Identity) {
	w.Helper()
	user, err := w.enter(cluster, cluster)
	if err != nil {
		w.Fatal(err)
	}
	mustEqual(w.T, "user", user.Username, "open-cluster-management:"+cluster.Managed.Name)
	mustEqual(w.T, "groups", user.Groups, []string{"open-cluster-management:" + cluster.Managed.Name, "open-cluster-management:managed-clusters"})
}

// leaks returns what exists for clusters.
func (w *world) leaks() (all []string) {
	for name := range w.hub.Roles() {
		if strings.HasPrefix(name, "ocm-hub-") {
			all = append(all, "role "+name)
		}
	}
	for principal := range w.hub.AccessEntries(w.cluster.String()) {
		all = append(all, "access entry "+principal)
	}
	if data := awsAuthOf(w.T, w.kube).Data["mapRoles"]; data != nodes {
		all = append(all, "mapRoles: "+data)
	}
	return all
}

// root returns clients that may do anything: those of an admin, or of an attacker.
func (w *world) root() (*iam.Client, *eks.Client) {
	config := w.hub.Config(w.hub.Root())
	return iam.NewFromConfig(config), eks.NewFromConfig(config)
}

// anHour advances the time by an hour, for the driver and in AWS.
func (w *world) anHour() {
	w.clock.pass(time.Hour)
	w.Age(time.Hour)
}

// live runs all that can happen to a cluster, and collects the errors.
func (w *world) live() (errs []error) {
	w.Helper()
	a, record := w.join("a")
	grant := func() { errs = append(errs, w.Grant(w.Context(), "a", record)) }
	grant()
	all := []map[string]func(*world, irsa.Identity) error{drifts, extras}
	if w.Driver.roles.boundary != "" {
		all = append(all, boundaryDrifts)
	}
	if w.access == AccessEntry {
		all = append(all, entryDrifts, entryExtras)
	}
	for _, list := range all {
		for _, drift := range list {
			w.anHour()
			_ = drift(w, a) // what does not exist because of an earlier error cannot drift
			grant()
		}
	}
	errs = append(errs, w.Revoke(w.Context(), "a", record))
	return slices.DeleteFunc(errs, func(err error) bool {
		return err == nil || warningOf(err) != "" && !strings.Contains(err.Error(), "not authorized") // it reports what it has done
	})
}

// warningOf returns the warning of a successful Grant, or "".
func warningOf(err error) string {
	var warning driver.Warning
	if errors.As(err, &warning) {
		return warning.Error()
	}
	return ""
}

// mustGrantWith is mustGrant, and returns the warning.
func (w *world) mustGrantWith(cluster string, rec driver.Record) string {
	w.Helper()
	err := w.Grant(w.Context(), cluster, rec)
	if err != nil && warningOf(err) == "" {
		w.Fatal(err)
	}
	return warningOf(err)
}

func second[T any](_ T, err error) error { return err }

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	driver "github.com/clusterhub/clusterhub/pkg/controllers/registration"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// Here the driver has the SDK's own clients, and calls what is AWS as far as it knows: policies decide, by web identity.

const (
	hubAccount, managedAccount = "123456789012", "210987654321"
	controller                 = "system:serviceaccount:clusterhub-system:hub-controller-manager"
)

// world is the AWS of a hub and of its clusters, in one partition.
type world struct {
	*testing.T
	*fakeaws.Server
	hub, managed *fakeaws.Account
	cluster      irsa.Cluster // the hub's
	agents       *fakeaws.Issuer
	kube         *fake.Clientset
	clock        *fakeClock
	*Driver
}

// newWorld makes it. The driver's role may do what the policy says, and nothing else.
func newWorld(t *testing.T, region string, access Access, policy func(irsa.Policy) irsa.Policy) *world {
	t.Helper()
	server := must(fakeaws.Start(1))(t)
	t.Cleanup(server.Close)
	w := &world{
		T: t, Server: server, hub: must(server.AddAccount(hubAccount, region))(t),
		managed: must(server.AddAccount(managedAccount, region))(t),
		kube:    fake.NewClientset(newAWSAuth(nodes)),
		clock:   &fakeClock{clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))},
	}
	w.cluster = must(irsa.ParseClusterARN(w.hub.AddCluster(fakeaws.Cluster{Name: "hub-cluster1"})))(t)
	w.agents = must(w.managed.AddIssuer("oidc.eks." + region + ".amazonaws.com/id/MANAGED"))(t)
	issuer := must(w.hub.AddIssuer("oidc.eks." + region + ".amazonaws.com/id/HUB"))(t)
	allowed := irsa.CreatorPolicy(w.cluster, access == AccessEntry)
	if policy != nil {
		allowed = policy(allowed)
	}
	creator := must(w.hub.AddRole(fakeaws.Role{
		Name:     must(irsa.CreatorRole(w.cluster))(t),
		Trust:    irsa.WebIdentityTrustPolicy(w.cluster, issuer.Provider, controller).JSON(),
		Policies: map[string]string{"creator": allowed.JSON()},
	}))(t)
	for key, value := range must(issuer.PodEnv(t.TempDir(), creator, controller))(t) {
		t.Setenv(key, value)
	}
	w.Driver = must(New(Config{
		HubClusterARN: w.cluster.String(), AWS: must(LoadConfig(t.Context(), region))(t), Access: access, Kube: w.kube,
		Tags: map[string]string{"team": "platform"}, Clock: w.clock,
	}))(t)
	w.clock.pass(2 * settleTime)
	return w
}

// must is for values whose errors end the test: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// join makes a managed cluster, with the role that its admin makes beforehand, and what it is accepted with.
func (w *world) join(name string) (irsa.Identity, driver.Record) {
	w.Helper()
	managed := w.cluster
	managed.Account, managed.Name = managedAccount, name
	identity := must(irsa.NewIdentity(w.cluster, managed))(w.T)
	must(w.managed.AddRole(fakeaws.Role{
		Name: identity.ManagedRole(), Tags: identity.Tags(),
		Trust:    irsa.WebIdentityTrustPolicy(managed, w.agents.Provider, "system:serviceaccount:agent:"+name).JSON(),
		Policies: map[string]string{"assume": identity.ManagedAccessPolicy().JSON()},
	}))(w.T)
	return identity, must(w.Plan(newCluster(name, annotation, managed.String())))(w.T)
}

// enter comes to the hub as the agent of one cluster, by the role of another, or its own.
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

// mustEnter fails unless the agent comes in as its cluster.
func (w *world) mustEnter(cluster irsa.Identity) {
	w.Helper()
	user, err := w.enter(cluster, cluster)
	if err != nil {
		w.Fatal(err)
	}
	mustEqual(w.T, "user", user.Username, "open-cluster-management:"+cluster.Managed.Name)
	mustEqual(w.T, "groups", user.Groups, []string{"open-cluster-management:" + cluster.Managed.Name})
}

// leaks are what was made for clusters.
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

// root are clients that may do anything: an admin, or an attacker.
func (w *world) root() (*iam.Client, *eks.Client) {
	config := w.hub.Config(w.hub.Root())
	return iam.NewFromConfig(config), eks.NewFromConfig(config)
}

func TestFakeAWS_LifeOfAClusterInEachPartition(t *testing.T) {
	for region, partition := range map[string]string{"us-west-2": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"} {
		for _, access := range []Access{AccessEntry, AWSAuth} {
			t.Run(partition+" by "+string(access), func(t *testing.T) {
				w := newWorld(t, region, access, nil)
				a, recordA := w.join("a")
				b, recordB := w.join("b")
				mustGrant(t, w.Driver, "a", recordA)
				mustGrant(t, w.Driver, "b", recordB)
				role := w.hub.Roles()[a.HubRole()]
				if role.ARN != "arn:"+partition+":iam::"+hubAccount+":role/"+a.HubRole() {
					t.Errorf("the role is %s", role.ARN)
				}
				if !irsa.Equivalent(role.Trust, a.HubTrustPolicy().JSON()) || !irsa.Equivalent(role.Policies[a.HubRole()], a.HubAccessPolicy().JSON()) ||
					len(role.Policies) != 1 {
					t.Errorf("trust %s, policies %v", role.Trust, role.Policies)
				}
				tags := a.Tags()
				tags["team"], tags[TagCluster], tags[TagHub] = "platform", "a", w.cluster.String()
				mustEqual(t, "tags of the role", role.Tags, tags)
				switch access {
				case AccessEntry:
					tags[TagRoleID] = role.ID
					mustEqual(t, "tags of the entry", w.hub.AccessEntries(w.cluster.String())[role.ARN].Tags, tags)
					w.mustEnter(a)
					w.mustEnter(b)
				default:
					if data := awsAuthOf(t, w.kube).Data["mapRoles"]; !strings.Contains(data, "- rolearn: "+role.ARN+"\n  username: system:open-cluster-management:a\n") {
						t.Errorf("mapRoles: %s", data)
					}
				}
				if _, err := w.enter(a, b); err == nil {
					t.Error("a cluster becomes the role of another")
				}

				w.ResetCalls()
				mustGrant(t, w.Driver, "a", recordA)
				if n := len(w.Writes()); n > 0 {
					t.Errorf("%d writes without a change", n)
				}
				mustRevoke(t, w.Driver, "a", recordA)
				if _, err := w.enter(a, a); err == nil {
					t.Error("the agent comes in after the revocation")
				}
				if access == AccessEntry {
					w.mustEnter(b)
				}
				mustRevoke(t, w.Driver, "b", recordB)
				mustEqual(t, "left", w.leaks(), []string(nil))
			})
		}
	}
}

// drifts are what others may do to what the hub has made, and how it is repaired.
var drifts = map[string]func(*world, irsa.Identity) error{
	"the trust policy": func(w *world, i irsa.Identity) error {
		trust := i.HubTrustPolicy()
		trust.Statement[0].Condition = nil
		iamRoot, _ := w.root()
		_, err := iamRoot.UpdateAssumeRolePolicy(w.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String(i.HubRole()), PolicyDocument: aws.String(trust.JSON())})
		return err
	},
	"no inline policy": func(w *world, i irsa.Identity) error {
		iamRoot, _ := w.root()
		_, err := iamRoot.DeleteRolePolicy(w.Context(), &iam.DeleteRolePolicyInput{RoleName: aws.String(i.HubRole()), PolicyName: aws.String(i.HubRole())})
		return err
	},
	"the inline policy": func(w *world, i irsa.Identity) error {
		iamRoot, _ := w.root()
		_, err := iamRoot.PutRolePolicy(w.Context(), &iam.PutRolePolicyInput{RoleName: aws.String(i.HubRole()), PolicyName: aws.String(i.HubRole()), PolicyDocument: aws.String(fakeaws.AllowAll)})
		return err
	},
	"a tag of the role": func(w *world, i irsa.Identity) error {
		iamRoot, _ := w.root()
		_, err := iamRoot.UntagRole(w.Context(), &iam.UntagRoleInput{RoleName: aws.String(i.HubRole()), TagKeys: []string{irsa.TagHubCluster}})
		return err
	},
	"no role": func(w *world, i irsa.Identity) error {
		w.hub.RemoveRole(i.HubRole())
		return nil
	},
}

// entryDrifts are those of access entries.
var entryDrifts = map[string]func(*world, irsa.Identity) error{
	"no entry": func(w *world, i irsa.Identity) error {
		_, eksRoot := w.root()
		_, err := eksRoot.DeleteAccessEntry(w.Context(), &eks.DeleteAccessEntryInput{ClusterName: &w.cluster.Name, PrincipalArn: aws.String(i.HubRoleARN())})
		return err
	},
	"the groups": func(w *world, i irsa.Identity) error {
		_, eksRoot := w.root()
		_, err := eksRoot.UpdateAccessEntry(w.Context(), &eks.UpdateAccessEntryInput{ClusterName: &w.cluster.Name, PrincipalArn: aws.String(i.HubRoleARN()), KubernetesGroups: []string{"admins"}})
		return err
	},
	"the user name": func(w *world, i irsa.Identity) error {
		_, eksRoot := w.root()
		_, err := eksRoot.UpdateAccessEntry(w.Context(), &eks.UpdateAccessEntryInput{ClusterName: &w.cluster.Name, PrincipalArn: aws.String(i.HubRoleARN()), Username: aws.String("admin")})
		return err
	},
	"a tag of the entry": func(w *world, i irsa.Identity) error {
		_, eksRoot := w.root()
		entry := w.hub.AccessEntries(w.cluster.String())[i.HubRoleARN()]
		_, err := eksRoot.UntagResource(w.Context(), &eks.UntagResourceInput{ResourceArn: &entry.ARN, TagKeys: []string{irsa.TagHubCluster}})
		return err
	},
}

func TestFakeAWS_DriftIsRepaired(t *testing.T) {
	for _, list := range []map[string]func(*world, irsa.Identity) error{drifts, entryDrifts} {
		for name, drift := range list {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, "us-west-2", AccessEntry, nil)
				a, record := w.join("a")
				mustGrant(t, w.Driver, "a", record)
				before := w.hub.Roles()[a.HubRole()]
				w.clock.pass(time.Hour)
				if err := drift(w, a); err != nil {
					t.Fatal(err)
				}
				mustGrant(t, w.Driver, "a", record)
				w.mustEnter(a)
				after := w.hub.Roles()[a.HubRole()]
				after.ID = before.ID
				mustEqual(t, "role", after, before)
				entry := w.hub.AccessEntries(w.cluster.String())[before.ARN]
				mustEqual(t, "tags of the entry", len(entry.Tags), len(before.Tags)+1)
				w.ResetCalls()
				mustGrant(t, w.Driver, "a", record)
				mustEqual(t, "writes of the next", len(w.Writes()), 0)
				mustRevoke(t, w.Driver, "a", record)
				mustEqual(t, "left", w.leaks(), []string(nil))
			})
		}
	}
}

// live has all that can happen to a cluster happen, and collects the errors.
func (w *world) live() (errs []error) {
	w.Helper()
	a, record := w.join("a")
	grant := func() { errs = append(errs, w.Grant(w.Context(), "a", record)) }
	grant()
	all := []map[string]func(*world, irsa.Identity) error{drifts}
	if w.access == AccessEntry {
		all = append(all, entryDrifts)
	}
	for _, list := range all {
		for _, drift := range list {
			w.clock.pass(time.Hour)
			_ = drift(w, a) // what is not there because of an error before cannot drift
			grant()
		}
	}
	errs = append(errs, w.Revoke(w.Context(), "a", record))
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// The policy that is written for admins to copy is enough, and nothing in it is too much.
func TestFakeAWS_TheCreatorPolicyIsWhatIsNeeded(t *testing.T) {
	for _, access := range []Access{AccessEntry, AWSAuth} {
		w := newWorld(t, "us-west-2", access, nil)
		if errs := w.live(); len(errs) > 0 {
			t.Fatalf("%s: the policy is not enough: %v", access, errors.Join(errs...))
		}
		mustEqual(t, "left", w.leaks(), []string(nil))
		for i, statement := range irsa.CreatorPolicy(w.cluster, access == AccessEntry).Statement {
			for _, action := range statement.Action {
				t.Run(string(access)+" without "+action, func(t *testing.T) {
					w := newWorld(t, "us-west-2", access, func(p irsa.Policy) irsa.Policy {
						s := &p.Statement[i]
						s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(a string) bool { return a == action })
						if len(s.Action) == 0 {
							p.Statement = slices.Delete(p.Statement, i, i+1)
						}
						return p
					})
					denied := slices.ContainsFunc(w.live(), func(err error) bool {
						return errors.Is(err, driver.ErrTerminal) && strings.Contains(err.Error(), "is not authorized to perform: "+action+" ") &&
							strings.Contains(err.Error(), "AccessDenied")
					})
					if !denied {
						t.Error("nothing misses it: it is too much")
					}
				})
			}
		}
	}
}

// The policy lets nobody make himself an admin of the hub.
func TestFakeAWS_TheCreatorPolicyIsNoMoreThanThat(t *testing.T) {
	w := newWorld(t, "us-west-2", AccessEntry, nil)
	a, record := w.join("a")
	mustGrant(t, w.Driver, "a", record)
	_, eksRoot := w.root()
	admin := must(w.hub.AddRole(fakeaws.Role{Name: "admin", Trust: a.HubTrustPolicy().JSON()}))(t)
	must(eksRoot.CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: &w.cluster.Name, PrincipalArn: &admin}))(t)
	entry := w.hub.AccessEntries(w.cluster.String())[admin].ARN
	creator := must(w.hub.AddRole(fakeaws.Role{Name: "x", Trust: a.HubTrustPolicy().JSON()}))(t)
	ctx := t.Context()
	name, cluster := aws.String("admin"), &w.cluster.Name
	for what, err := range map[string]error{
		"make an entry":      second(w.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: cluster, PrincipalArn: &creator})),
		"make another hub's": second(w.eks.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{ClusterName: aws.String("other"), PrincipalArn: aws.String(a.HubRoleARN())})),
		"change an entry":    second(w.eks.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{ClusterName: cluster, PrincipalArn: &admin, KubernetesGroups: []string{"x"}})),
		"delete an entry":    second(w.eks.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: cluster, PrincipalArn: &admin})),
		"tag an entry":       second(w.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &entry, Tags: map[string]string{"a": "b"}})),
		"tag the hub":        second(w.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: aws.String(w.cluster.String()), Tags: map[string]string{"a": "b"}})),
		"read a role":        second(w.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: name})),
		"delete a role":      second(w.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})),
		"take a role over":   second(w.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: name, PolicyDocument: aws.String(a.HubTrustPolicy().JSON())})),
		"give a role rights": second(w.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: name, PolicyName: name, PolicyDocument: aws.String(fakeaws.AllowAll)})),
	} {
		if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("it may %s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// 6 is what a cluster may cost, the credentials and the looks at what AWS does not show yet included.
func TestFakeAWS_TheCallsOfAFirstGrant(t *testing.T) {
	const clusters, most = 20, 6
	for name, test := range map[string]struct{ hidden, want int }{
		"at best":                 {0, 4},
		"EKS sees the role later": {2, 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "us-west-2", AccessEntry, nil)
			w.DelayVisibility(test.hidden, 0)
			for i := range clusters {
				cluster := fmt.Sprintf("c%d", i)
				_, record := w.join(cluster)
				for try := 0; ; try++ {
					err := w.Grant(t.Context(), cluster, record)
					if err == nil {
						break
					}
					if try > test.hidden || errors.Is(err, driver.ErrTerminal) {
						t.Fatal(err)
					}
				}
			}
			sessions, calls := w.Count("sts:*"), w.Count()
			t.Logf("%d calls for %d clusters, %d of them for credentials", calls, clusters, sessions)
			if sessions != 1 || calls != clusters*test.want+1 || calls-sessions > clusters*most {
				t.Errorf("want %d calls for each cluster, and one for the credentials", test.want)
			}
		})
	}
}

// Two clusters that name one EKS cluster: the one that was accepted first has it, the other gets nothing and takes nothing.
func TestFakeAWS_OneARNIsOfOneCluster(t *testing.T) {
	w := newWorld(t, "us-west-2", AccessEntry, nil)
	a, record := w.join("a")
	mustGrant(t, w.Driver, "a", record)
	w.ResetCalls()
	err := w.Grant(t.Context(), "b", record)
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), `belongs to the ManagedCluster "a"`) {
		t.Errorf("got %v", err)
	}
	mustRevoke(t, w.Driver, "b", record)
	mustEqual(t, "writes", len(w.Writes()), 0)
	w.mustEnter(a)
}

// The SDK stops trying again when too much has failed, and says so beside what AWS says.
func TestFakeAWS_AnOutageIsToldInOneLine(t *testing.T) {
	w := newWorld(t, "us-west-2", AccessEntry, nil)
	a, record := w.join("a")
	w.Inject(fakeaws.Fault{Operation: "iam:*", Err: fakeaws.Throttled})
	const grants = 160
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range grants / 16 {
				err := w.Grant(t.Context(), "a", record)
				if want := "IAM GetRole " + a.HubRole() + ": Throttling: Rate exceeded"; err == nil || err.Error() != want || errors.Is(err, driver.ErrTerminal) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
	wg.Wait()
	if n := w.Count("iam:GetRole"); n >= 2*grants {
		t.Errorf("%d calls: the SDK has always tried again, so the test has no point", n)
	}
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
)

const (
	hubID, managedID = "111122223333", "444455556666"
	region           = "us-west-2"
)

// world is the AWS of most tests: the account of a hub with its cluster, and that of a managed cluster. The clients are the SDK's.
type world struct {
	*Server
	hub, managed *Account
	clusterARN   string
	root         clients // of the hub's account
}

type clients struct {
	iam *iam.Client
	sts *sts.Client
	eks *eks.Client
}

func clientsOf(config aws.Config) clients {
	return clients{iam.NewFromConfig(config), sts.NewFromConfig(config), eks.NewFromConfig(config)}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: must(Start(1))(t)}
	t.Cleanup(w.Close)
	w.hub = must(w.AddAccount(hubID, region))(t)
	w.managed = must(w.AddAccount(managedID, region))(t)
	w.clusterARN = w.hub.AddCluster(Cluster{Name: "hub", Endpoint: "https://hub.example", CA: []byte("ca"), Issuer: "https://oidc.example/hub"})
	config := w.hub.Config(w.hub.Root())
	config.HTTPClient = nil // by the network, like other processes
	w.root = clientsOf(config)
	return w
}

// must ends the test if there is an error: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func noError(t *testing.T, _ any, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode verifies the code and a part of the message of an AWS error that the SDK returned.
func wantCode(t *testing.T, err error, code, message string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("error %v, want %s", err, code)
	}
	if api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), message) {
		t.Errorf("%s: %s; want %s with %q", api.ErrorCode(), api.ErrorMessage(), code, message)
	}
}

// wantType verifies that the error is of one of the SDK's types.
func wantType[T error](t *testing.T, err error) {
	t.Helper()
	var want T
	if !errors.As(err, &want) {
		t.Errorf("error %v, want %T", err, want)
	}
}

// user creates a user of the account with one identity policy and returns the clients.
func (w *world) user(t *testing.T, a *Account, name, policy string) clients {
	t.Helper()
	return clientsOf(a.Config(must(a.AddUser(name, policy))(t)))
}

// as returns clients with the credentials of an assumed role.
func as(t *testing.T, a *Account, out *sts.AssumeRoleOutput, err error) clients {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return clientsOf(a.Config(Credentials{*out.Credentials.AccessKeyId, *out.Credentials.SecretAccessKey, *out.Credentials.SessionToken}))
}

// allow returns an identity policy with one statement.
func allow(action, resource string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":%q,"Resource":%q}]}`, action, resource)
}

// trust returns a trust policy for one principal.
func trust(arn string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":%q},"Action":"sts:AssumeRole"}]}`, arn)
}

func assume(arn, session string) *sts.AssumeRoleInput {
	return &sts.AssumeRoleInput{RoleArn: &arn, RoleSessionName: &session}
}

func (w *world) createRole(t *testing.T, name string) string {
	t.Helper()
	out := must(w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trust(hubID))}))(t)
	return *out.Role.Arn
}

func TestOperations_MatchModelAndErrors(t *testing.T) {
	n := 0
	for service, model := range api.Models {
		for name, declared := range model.Operations {
			n++
			op := operations[service+":"+name]
			if op == nil {
				t.Errorf("%s:%s is in the model but not served", service, name)
				continue
			}
			for _, code := range op.fails {
				if declared.Errors[code] == 0 {
					t.Errorf("%s may fail with %s, which AWS's model does not declare", op.action(), code)
				}
			}
		}
	}
	if n != len(operations) {
		t.Errorf("%d operations are served, %d are in the model", len(operations), n)
	}
}

func TestError_UndeclaredErrorIsAFault(t *testing.T) {
	op := api.Models["iam"].Operations["GetRole"]
	if got := api.Fail("NoSuchEntity", "x").Complete("iam", op); got.Status != 404 || got.Code != "NoSuchEntity" {
		t.Errorf("declared error became %+v", got)
	}
	if got := api.Fail("EntityAlreadyExists", "x").Complete("iam", op); got.Code != "FakeAWSBug" {
		t.Errorf("undeclared error became %+v", got)
	}
	for code := range api.CommonErrors {
		for service, model := range api.Models {
			for name, op := range model.Operations {
				if got := api.Fail(code, "x").Complete(service, op); got.Code == "" || got.Status < 400 {
					t.Errorf("%s of %s:%s became %+v", code, service, name, got)
				}
			}
		}
	}
}

func TestServer_ListensOnLoopbackOnlyAndStops(t *testing.T) {
	w := newWorld(t)
	if !strings.HasPrefix(w.URL(), "http://127.0.0.1:") {
		t.Errorf("URL %s", w.URL())
	}
	_, err := w.root.sts.GetCallerIdentity(t.Context(), nil)
	noError(t, nil, err)
	w.Close()
	if _, err := w.root.sts.GetCallerIdentity(t.Context(), nil); err == nil {
		t.Error("a closed server answers")
	}
}

func TestAddAccount_TakesPartitionFromRegion(t *testing.T) {
	w := newWorld(t)
	for region, partition := range map[string]string{"eu-west-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"} {
		id := fmt.Sprintf("%012d", len(region))
		a := must(w.AddAccount(id, region))(t)
		c := clientsOf(a.Config(a.Root()))
		got := must(c.sts.GetCallerIdentity(t.Context(), nil))(t)
		if want := "arn:" + partition + ":iam::" + id + ":root"; *got.Arn != want || *got.Account != id {
			t.Errorf("%s: caller %s of %s, want %s", region, *got.Arn, *got.Account, want)
		}
		name := "r"
		made := must(c.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trust(id))}))(t)
		if want := "arn:" + partition + ":iam::" + id + ":role/r"; *made.Role.Arn != want {
			t.Errorf("%s: role %s, want %s", region, *made.Role.Arn, want)
		}
		// Credentials are valid in their own partition only.
		config := a.Config(a.Root())
		config.Region = map[string]string{"aws": "cn-north-1", "aws-cn": "us-gov-west-1", "aws-us-gov": "eu-west-1"}[partition]
		_, err := sts.NewFromConfig(config).GetCallerIdentity(t.Context(), nil)
		wantCode(t, err, "InvalidClientTokenId", "")
	}
	for _, bad := range []string{"", "1234", "12345678901x", hubID} {
		if _, err := w.AddAccount(bad, region); err == nil {
			t.Errorf("account %q was added", bad)
		}
	}
}

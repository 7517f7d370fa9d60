// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration measures clusters that join a hub, and a fleet of accepted clusters: (f) and (g).
package registration

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/clusterhub/clusterhub/pkg/irsa"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// bootstrapManifest has the identity that agents join with.
//
//go:embed bootstrap.yaml
var bootstrapManifest []byte

const (
	hubAccount, managedAccount = "123456789012", "210987654321"
	awsRegion                  = "us-west-2"
)

// env is a hub with registration enabled: by certificate, and by AWS IAM with a fake AWS.
type env struct {
	*kit.Env
	aws     *fakeaws.Server
	managed *fakeaws.Account
	eks     irsa.ClusterARN // that the hub would run on
	awsEnv  []string
	audit   *audit.Log
}

// withRegistration calls measure with a hub that has both drivers.
func withRegistration(ctx context.Context, o kit.Options, measure func(context.Context, *env) error) error {
	r := &env{}
	if err := r.startAWS(); err != nil {
		return err
	}
	defer r.aws.Close()
	adapt := func(c *localhub.Options) (err error) {
		c.HubControllerManagerArgs = []string{
			"--registration-drivers=csr,awsirsa", "--hub-cluster-arn=" + r.eks.String(),
			"--drift-check-interval=" + o.DriftInterval.String(),
		}
		c.HubControllerManagerEnv = r.awsEnv
		r.audit, err = audit.New(c, audit.ControllersPolicy)
		return err
	}
	return kit.WithHub(ctx, o, adapt, func(ctx context.Context, e *kit.Env) error {
		r.Env = e
		return measure(ctx, r)
	})
}

// startAWS starts a fake AWS.
func (r *env) startAWS() (err error) {
	r.aws, err = fakeaws.Start(1)
	if err != nil {
		return err
	}
	hub, err := r.aws.AddAccount(hubAccount, awsRegion)
	if err != nil {
		return err
	}
	r.managed, err = r.aws.AddAccount(managedAccount, awsRegion)
	if err != nil {
		return err
	}
	r.eks, err = irsa.ParseClusterARN(hub.AddCluster(fakeaws.Cluster{Name: "hub"}))
	if err != nil {
		return err
	}
	// It has the permissions that the documentation requires, and no others.
	user, err := hub.AddUser("hub-controller-manager", irsa.CreatorPolicy(r.eks, irsa.HubRoles{AccessEntries: true}).JSON())
	if err != nil {
		return err
	}
	env := r.aws.Env()
	env["AWS_REGION"], env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"] = awsRegion, user.AccessKeyID, user.SecretAccessKey
	for name, value := range env {
		r.awsEnv = append(r.awsEnv, name+"="+value)
	}
	slices.Sort(r.awsEnv) // a process with a different environment is restarted
	return nil
}

// addEKS creates in AWS what a cluster has there before it joins, and returns its ARN.
func (r *env) addEKS(name string) (arn string, err error) {
	arn = fmt.Sprintf("arn:aws:eks:%s:%s:cluster/%s", awsRegion, managedAccount, name)
	cluster, err := irsa.ParseClusterARN(arn)
	if err != nil {
		return "", err
	}
	identity, err := irsa.NewIdentity(r.eks, cluster)
	if err != nil {
		return "", err
	}
	_, err = r.managed.AddRole(fakeaws.Role{Name: identity.ManagedRole(), Tags: identity.Tags(), Trust: fmt.Sprintf(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::%s:root"},"Action":"sts:AssumeRole"}]}`,
		managedAccount)})
	return arn, err
}

// cpuAll includes the time of this process, which runs the agents and the fake AWS.
func (r *env) cpuAll() kit.CPUTimes {
	times := r.CPUNow()
	if own := kit.OwnCPU(); own != 0 {
		times["agents and AWS"] = own
	}
	return times
}

// awsCalls are the calls about the role of each cluster.
type awsCalls map[string][]fakeaws.Call

// callsByRole groups the log of AWS by role. It includes calls about the access entry of a role.
func (r *env) callsByRole() awsCalls {
	by := awsCalls{}
	for _, call := range r.aws.Calls("iam:*", "eks:*") {
		role, _ := call.Params["RoleName"].(string)
		if arn, ok := call.Params["principalArn"].(string); ok {
			role = path.Base(arn)
		}
		by[role] = append(by[role], call)
	}
	return by
}

// most returns the largest number of calls about one cluster, and the number of all calls.
func (c awsCalls) most() (one, all int) {
	for _, calls := range c {
		one, all = max(one, len(calls)), all+len(calls)
	}
	return one, all
}

func (c awsCalls) writes() (n int) {
	for _, calls := range c {
		for _, call := range calls {
			if call.Write {
				n++
			}
		}
	}
	return n
}

// checks returns when each cluster's identity was checked: a check begins with its role.
func (c awsCalls) checks() map[string][]time.Time {
	checks := map[string][]time.Time{}
	for role, calls := range c {
		for _, call := range calls {
			if call.Operation == "iam:GetRole" {
				checks[role] = append(checks[role], call.Time)
			}
		}
		slices.SortFunc(checks[role], time.Time.Compare)
	}
	return checks
}

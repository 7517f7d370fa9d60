// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAWSCLI verifies the wire formats with botocore, which shares no code with the SDK for Go.
func TestAWSCLI(t *testing.T) {
	if testing.Short() || exec.Command("aws", "--version").Run() != nil {
		t.Skip("needs the AWS CLI, and some seconds")
	}
	s := newSeed(t)
	s.withAccess(t)
	// The CLI caches credentials in the home directory, where another server's test would find them.
	env := append(os.Environ(), "HOME="+t.TempDir(), "AWS_DEFAULT_REGION="+region, "AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_MAX_ATTEMPTS=1")
	for key, value := range s.Env() {
		env = append(env, key+"="+value)
	}
	// run runs the CLI with these credentials or, if they are empty, with the environment's.
	run := func(c Credentials, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "aws", append(args, "--output", "json")...)
		cmd.Env = env
		if c.AccessKeyID != "" {
			cmd.Env = append(env[:len(env):len(env)], "AWS_ACCESS_KEY_ID="+c.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+c.SecretAccessKey)
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			return errs.String(), fmt.Errorf("%w: %s", err, &errs)
		}
		return out.String(), nil
	}
	root := s.world.hub.Root()
	for _, tc := range []struct {
		args string
		fine bool
		want string
	}{
		{"sts get-caller-identity", true, `"Arn": "arn:aws:iam::` + hubID + `:root"`},
		{"iam create-role --role-name r --assume-role-policy-document " + trust(hubID) + " --tags Key=a,Value=b", true, `"RoleId": "AROA`},
		{"iam create-role --role-name r --assume-role-policy-document " + trust(hubID), false, "(EntityAlreadyExists) when calling the CreateRole operation"},
		{"iam get-role --role-name r", true, `"Key": "a"`},
		{"iam list-role-policies --role-name ocm-hub-" + s.hash, true, `"ocm-hub-` + s.hash + `"`},
		{"iam get-role --role-name missing", false, "(NoSuchEntity) when calling the GetRole operation: The role with name missing cannot be found."},
		{"iam delete-role --role-name ocm-hub-" + s.hash, false, "(DeleteConflict)"},
		{"eks describe-access-entry --cluster-name hub --principal-arn " + s.hubARN, true, `"username": "managed1"`},
		{"eks create-access-entry --cluster-name hub --principal-arn " + s.hubARN, false, "(ResourceInUseException)"},
		{"eks create-access-entry --cluster-name hub --principal-arn " + s.hubARN + "x", false, "(InvalidParameterException)"},
		{"eks describe-cluster --name hub", true, `"endpoint": "https://hub.example"`},
	} {
		got, err := run(root, strings.Fields(tc.args)...)
		if (err == nil) != tc.fine || !strings.Contains(got, tc.want) {
			t.Errorf("aws %s: %v\n%s\nwant %s", tc.args, err, got, tc.want)
		}
	}

	// This is the documented way to a token: by web identity to the agent's role, and from there to the role on the hub.
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	provider := s.managed.AddOIDCProvider(issuer, []crypto.PublicKey{key.Public()})
	agent := must(s.managed.AddRole(Role{Name: "agent", Tags: s.tags, Trust: creatorTrust(provider), Policies: map[string]string{"assume": allow("sts:AssumeRole", s.hubARN)}}))(t)
	s.world.hub.RemoveRole("ocm-hub-" + s.hash)
	must(s.world.hub.AddRole(Role{Name: "ocm-hub-" + s.hash, Trust: strings.Replace(s.trustPolicy(), s.managedARN, agent, 1)}))(t)
	noError(t, nil, second(run(root, "eks", "delete-access-entry", "--cluster-name", "hub", "--principal-arn", s.hubARN)))
	s.withAgentEntry(t)
	file := filepath.Join(t.TempDir(), "token")
	noError(t, nil, os.WriteFile(file, []byte(signToken(t, key, claims{"alg": "ES256"}, goodClaims())), 0o600))
	env = append(env, "AWS_ROLE_ARN="+agent, "AWS_WEB_IDENTITY_TOKEN_FILE="+file)
	got := must(run(Credentials{}, "eks", "get-token", "--cluster-name", "hub", "--role-arn", s.hubARN))(t)
	var exec struct{ Status struct{ Token string } }
	noError(t, nil, json.Unmarshal([]byte(got), &exec))
	if user := must(s.Authenticate(s.clusterARN, exec.Status.Token))(t); user.Username != "managed1" {
		t.Errorf("user %+v", user)
	}
}

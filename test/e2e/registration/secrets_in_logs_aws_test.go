// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/irsa"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// TestSecretsInLogs_OfAWS has a cluster join by AWS IAM, with programs at the highest verbosity, and with faults of AWS. It searches their logs for
// all secrets that AWS has issued or received: secret keys, session tokens, signatures, tokens of ServiceAccounts, and the tokens that the hub
// accepts, which are signed requests.
func TestSecretsInLogs_OfAWS(t *testing.T) {
	t.Parallel()
	most := []string{"-v=10", "--vmodule=*=10"}
	// The roles have a path, which neither STS nor aws-auth includes.
	e := newEKS(t, irsa.HubRoles{Path: "/clusterhub/"}, func(c *localhub.Options) {
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, most...)
		c.HubControllerManagerArgs = append(c.HubControllerManagerArgs, most...)
	})
	l := harness.NewLogged()
	m := e.newManaged(t, plains.Lend(t, 1)[0])
	m.start(most...)
	m.awaitMade(t)
	m.accepted(t, true)
	m.awaitCondition(t, registration.ConditionAvailable, metav1.ConditionTrue)

	// The tokens are those that hub-apiserver has reviewed, and those that the kubectl plugin creates.
	var tokens []string
	tokens = append(tokens, m.token(t))
	direct := rest.AnonymousClientConfig(e.HubAPIServerConfig(0))
	direct.BearerToken = tokens[0]
	harness.Must(harness.Ours(t, direct).ClusterV1().ManagedClusters().Get(t.Context(), m.name, metav1.GetOptions{}))(t)
	harness.Must(harness.Kube(t, e.withToken(tokens[0])).Discovery().ServerVersion())(t)

	// AWS is unreachable: the agent's token is rejected, so that the agent needs a new one, and the hub cannot delete the role.
	restore := e.aws.Inject(fakeaws.Fault{Err: fakeaws.Cut})
	m.accepted(t, false)
	e.awaitFailure(t, "sts:AssumeRoleWithWebIdentity", "")
	e.awaitFailure(t, "iam:", roleName(e.creator))
	restore()
	m.hasNothingInAWS(t)
	// AWS refuses: the role does not exist.
	e.awaitFailure(t, "sts:AssumeRole", roleName(m.roles.ManagedRoleARN()))
	_, err := m.run(t, "eks-token", "--cluster-name="+m.roles.Hub.Name, "--region="+m.roles.Hub.Region, "--role-arn="+m.roles.HubRoleARN())
	if err == nil {
		t.Error("there is a token for a role that is not there")
	}
	l.Logs["hub-agent eks-token"] = []byte(fmt.Sprint(err))
	m.accepted(t, true)
	m.awaitRenewal(t)
	tokens = append(tokens, m.token(t))

	for name, value := range e.aws.Secrets() {
		l.Secrets[name] = []byte(value)
	}
	for i, token := range tokens {
		l.Secrets[fmt.Sprintf("EKS token %d", i)] = []byte(token)
	}
	for name, file := range map[string]string{"the hub's web identity token": e.tokenFile, "the agent's web identity token": m.tokenFile} {
		l.Add(t, name, string(harness.Must(os.ReadFile(file))(t)))
	}
	// These marks are in each signed request, regardless of the signer.
	for _, mark := range []string{"X-Amz-Signature=", "X-Amz-Security-Token", "AWS4-HMAC-SHA256", "k8s-aws-v1.aHR0cHM6Ly9"} {
		l.Secrets["mark "+mark] = []byte(mark)
	}
	for _, name := range []string{"hub-apiserver", "hub-controller-manager", "hub-certificate-approver"} {
		l.Logs[name] = harness.Must(os.ReadFile(filepath.Join(e.Dir(), "logs", name+".log")))(t)
	}
	l.Logs["hub-agent"] = []byte(m.said.String())
	l.Look(t, "secret key of ASIA", "session token of ASIA", "signature 1 by ASIA", "EKS token 1", "the hub's web identity token",
		"the agent's web identity token")
}

// awaitFailure waits until a request to AWS by a caller whose name contains caller has failed.
func (e *eks) awaitFailure(t *testing.T, operation, caller string) {
	t.Helper()
	harness.Eventually(t, operation+" of "+caller+" fails", func(context.Context) (bool, error) {
		if slices.ContainsFunc(e.aws.Calls(), func(call fakeaws.Call) bool {
			return strings.HasPrefix(call.Operation, operation) && strings.Contains(call.Caller, caller) && call.Error != ""
		}) {
			return true, nil
		}
		return false, errors.New("it has not been called, or has not failed")
	})
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TestSecrets_ConditionsOfBootstrapKubeconfig verifies the conditions in every mode, as long as the agent needs the kubeconfig, and that they do
// not quote it.
func TestSecrets_ConditionsOfBootstrapKubeconfig(t *testing.T) {
	const token = "hunter2-hunter2"
	with := func(old, new string) *corev1.Secret {
		data := bytes.Replace(operatortest.Bootstrap, []byte(old), []byte(new), 1)
		return &corev1.Secret{Data: map[string][]byte{"kubeconfig": data}}
	}
	identity := &corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte("of the agent")}}
	for name, test := range map[string]struct {
		bootstrap, identity *corev1.Secret
		reason, want        string
	}{
		"good":          {with("", ""), nil, operatorv1.ReasonHubKubeConfigSecretMissing, ""},
		"none":          {nil, nil, reasonBootstrapMissing, "the Secret n/bootstrap-hub-kubeconfig does not exist"},
		"another key":   {&corev1.Secret{Data: map[string][]byte{"config": nil}}, nil, reasonBootstrapMissing, "has no key kubeconfig"},
		"an empty key":  {&corev1.Secret{Data: map[string][]byte{"kubeconfig": nil}}, nil, reasonBootstrapMissing, "has no key kubeconfig"},
		"unreadable":    {with("{", token), nil, reasonBootstrapRefused, "key kubeconfig of Secret n/bootstrap-hub-kubeconfig is refused: it cannot be read"},
		"a file":        {with("token: bootstrap", "tokenFile: /"+token), nil, reasonBootstrapRefused, "is refused: it names a file in tokenFile"},
		"a program":     {with("token: bootstrap", "exec: {command: "+token+", apiVersion: client.authentication.k8s.io/v1}"), nil, reasonBootstrapRefused, "by a program"},
		"insecure":      {with("https", "http"), nil, reasonBootstrapRefused, "is refused: it is insecure"},
		"no token":      {with("token: bootstrap", ""), nil, reasonBootstrapRefused, "is refused: it has a user without credentials"},
		"not needed":    {nil, identity, operatorv1.ReasonHubConnectionFunctional, ""},
		"of no concern": {with("https", "http"), identity, operatorv1.ReasonHubConnectionFunctional, ""},
		"nonsense of the agent": {nil, &corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte("of the agent"), "hub-refusal": []byte(token)}},
			operatorv1.ReasonHubConnectionFunctional, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := agentSecrets{namespace: "n", bootstrap: test.bootstrap, identity: test.identity}
			s := newReport(&operatorv1.Klusterlet{})
			s.hub(g)
			condition := meta.FindStatusCondition(s.conditions, operatorv1.ConditionHubConnectionDegraded)
			if condition.Reason != test.reason || !strings.Contains(condition.Message, test.want) || strings.Contains(condition.Message, token) ||
				(condition.Status == metav1.ConditionTrue) != (test.reason != operatorv1.ReasonHubConnectionFunctional) {
				t.Errorf("it says %+v, want %s, %q", condition, test.reason, test.want)
			}
			if why := g.bootstrapProblem(); (why == nil) != (test.want == "") || why != nil && why.Error() != condition.Message {
				t.Errorf("what is not ready is %v, and of the hub it says %q", why, condition.Message)
			}
		})
	}
}

// TestSecrets_ConditionsFromAgent: no request is sent to a hub from the management cluster.
func TestSecrets_ConditionsFromAgent(t *testing.T) {
	for refusal, want := range map[string]string{
		registration.RefusalNotAccepted: "kubectl hub accept",
		registration.RefusalNoCluster:   "restart the pods",
		registration.RefusalUnknown:     "bootstrap-hub-kubeconfig",
	} {
		data := map[string][]byte{"kubeconfig": []byte("of the agent"), "cluster-name": []byte("c1"), "hub-refusal": []byte(refusal)}
		s := newReport(&operatorv1.Klusterlet{})
		s.hub(agentSecrets{namespace: "n", identity: &corev1.Secret{Data: data}})
		condition := meta.FindStatusCondition(s.conditions, operatorv1.ConditionHubConnectionDegraded)
		if condition.Status != metav1.ConditionTrue || condition.Reason != operatorv1.ReasonHubKubeConfigUnauthorized ||
			!strings.Contains(condition.Message, want) || s.waitsFor != condition.Message || s.clusterName != "c1" {
			t.Errorf("%s: %+v, and the cluster is %q", refusal, condition, s.clusterName)
		}
		// Without an identity the agent cannot know.
		delete(data, "kubeconfig")
		s.hub(agentSecrets{namespace: "n", identity: &corev1.Secret{Data: data}})
		if condition := meta.FindStatusCondition(s.conditions, operatorv1.ConditionHubConnectionDegraded); condition.Reason != reasonBootstrapMissing {
			t.Errorf("%s, without an identity: %+v", refusal, condition)
		}
	}
}

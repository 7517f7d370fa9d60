// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/base64"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func readFile(name string) (string, error) {
	data, err := os.ReadFile(name)
	return string(data), err
}

const (
	inAgents  = "--namespace=" + registration.AgentNamespace
	bootstrap = "secret/" + registration.BootstrapSecret
)

// managed has a cluster join, and breaks the connection of its agent. The agent is a process: this test acts as the kubelet.
func managed(t *testing.T, w *world) {
	if _, stderr, err := w.plugin.Run(t, "doctor", "--context", onSpoke); err == nil || !strings.Contains(stderr, "is neither a hub") {
		t.Errorf("a cluster that has nothing to do with hubs: %v: %s", err, stderr)
	}
	w.plugin.Must(t, "init", "--context", onHub)
	f := w.found(t, onSpoke, "AgentMissing", "deployment/hub-agent", []string{"has not joined a hub"}, "--managed")
	w.rejoin(t, f)
	w.startAgent(t)
	w.podState(t, 0, `{"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}`)
	w.found(t, onSpoke, "AgentNotReady", "deployment/hub-agent", []string{"ImagePullBackOff: no such image"})
	harness.Eventually(t, "the agent asks to be let in", func(ctx context.Context) (bool, error) {
		csrs, err := harness.Kube(t, w.hub.AdminConfig()).CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
		return err == nil && len(csrs.Items) > 0, err
	})
	w.paste(t, w.found(t, onHub, "AcceptancePending", "managedcluster/"+onSpoke, nil, "--patience", "0s"))
	harness.Eventually(t, "the agent has its identity", func(context.Context) (bool, error) {
		return harness.Holds(len(w.secret(t, registration.HubKubeconfigSecret).Data[registration.KeyKubeconfig]) > 0, "no kubeconfig")
	})
	w.podState(t, 1, `{"running": {}}`)
	w.healthy(t, onSpoke)
	w.healthy(t, onHub)
	claims(t, w)
	bundles(t, w)

	for _, fault := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"a binding of the agent is missing", agentsBinding},
		{"the agent is scaled to 0", agentScaled},
		{"the agent has another CA", agentsCA},
		{"the bootstrap token is refused", tokenRefused},
	} {
		begun := time.Now()
		fault.test(t, w)
		w.healthy(t, onSpoke)
		t.Logf("%s: %s", fault.name, time.Since(begun).Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("%s: see above", fault.name)
		}
	}
}

// claims are the claims that the agent reports.
func claims(t *testing.T, w *world) {
	ca := harness.Must(base64.StdEncoding.DecodeString(w.plugin.Joining(t, "get", "token", "--context", onHub).CA))(t)
	harness.Eventually(t, "the agent says by which CA it trusts the hub", func(context.Context) (bool, error) {
		claims := w.kubectl(t, onHub, "", "get", "managedcluster", onSpoke, "-o", `jsonpath={range .status.clusterClaims[*]}{.name}={.value}{"\n"}{end}`)
		return harness.Holds(strings.Contains(claims, registration.ClaimHubCA+"="+strings.Join(registration.CertificateHashes(ca), ",")), claims)
	})
}

// rejoin runs the commands of a finding: a command for the hub, whose output is a command for the cluster.
func (w *world) rejoin(t *testing.T, f finding) {
	t.Helper()
	if len(f.Fix) != 2 || !strings.HasPrefix(f.Fix[0], "kubectl hub get token ") || !strings.Contains(f.Fix[1], "JOIN COMMAND") {
		t.Fatalf("the fix is %q", f.Fix)
	}
	token := w.plugin.Joining(t, strings.Fields(strings.Replace(strings.TrimPrefix(f.Fix[0], "kubectl hub "), "<CONTEXT OF THE HUB>", onHub, 1))...)
	join, said := w.plugin.Command(t, append(token.Args(t, onSpoke), "--context", onSpoke)...), &harness.Buffer{}
	join.Stderr = said
	if err := join.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- join.Wait() }()
	// No kubelet runs its pod, so join may wait forever after it has created all objects.
	harness.Eventually(t, "join has made all", func(context.Context) (bool, error) {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("join: %v\n%s", err, said)
			}
			ended <- nil
			return true, nil
		default:
			return harness.Holds(strings.Contains(said.String(), "Waiting for cluster "+onSpoke+" to join"), said)
		}
	})
	_ = join.Process.Signal(os.Interrupt) // it may have exited
	if err := <-ended; err != nil {
		t.Logf("join was ended: %v", err)
	}
}

// startAgent starts the agent, or restarts it, as its Deployment does after a change.
func (w *world) startAgent(t *testing.T) {
	t.Helper()
	if pid, runs := w.spoke.PIDs()["hub-agent"]; runs {
		process := harness.Must(os.FindProcess(pid))(t)
		if err := process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "the agent ends", func(context.Context) (bool, error) {
			_, runs := w.spoke.PIDs()["hub-agent"]
			return !runs, nil
		})
	}
	if err := w.spoke.StartHubAgent(t.Context(), "--cluster-name="+onSpoke); err != nil {
		t.Fatal(err)
	}
}

func (w *world) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	return harness.Must(harness.Kube(t, w.spoke.AdminConfig()).CoreV1().Secrets(registration.AgentNamespace).Get(t.Context(), name, metav1.GetOptions{}))(t)
}

// podState sets the status of the agent's Deployment and pod as a kubelet would.
func (w *world) podState(t *testing.T, available int32, state string) {
	t.Helper()
	kube := harness.Kube(t, w.spoke.AdminConfig())
	harness.Eventually(t, "the agent has a pod", func(ctx context.Context) (bool, error) {
		pods, err := kube.CoreV1().Pods(registration.AgentNamespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 {
			return false, err
		}
		for _, p := range pods.Items {
			phase, ready := "Pending", "False"
			if available > 0 {
				phase, ready = "Running", "True"
			}
			w.kubectl(t, onSpoke, "", inAgents, "patch", "pod", p.Name, "--subresource=status", "--type=merge",
				`-p={"status": {"phase": "`+phase+`", "conditions": [{"type": "Ready", "status": "`+ready+`", "lastTransitionTime": "2020-01-01T00:00:00Z"}],
				"containerStatuses": [{"name": "hub-agent", "image": "x", "imageID": "x", "ready": `+strings.ToLower(ready)+`, "restartCount": 0, "state": `+state+`}]}}`)
		}
		return true, nil
	})
	harness.Eventually(t, "the Deployment counts it", func(ctx context.Context) (bool, error) {
		d, err := kube.AppsV1().Deployments(registration.AgentNamespace).Get(ctx, "hub-agent", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return harness.Holds(d.Status.AvailableReplicas == available, d.Status)
	})
}

func agentsBinding(t *testing.T, w *world) {
	for _, binding := range []string{"clusterrolebinding/clusterhub:hub-agent", "rolebinding/clusterhub:hub-agent"} {
		w.kubectl(t, onSpoke, "", inAgents, "delete", binding)
		w.paste(t, w.found(t, onSpoke, "AgentPermissionsMissing", binding, nil))
	}
}

func agentScaled(t *testing.T, w *world) {
	w.kubectl(t, onSpoke, "", inAgents, "scale", "deployment", "hub-agent", "--replicas=0")
	w.paste(t, w.found(t, onSpoke, "AgentNotReady", "deployment/hub-agent", []string{"scaled to 0"}))
	w.podState(t, 1, `{"running": {}}`)
}

// change replaces a text in the kubeconfig of a Secret.
func (w *world) change(t *testing.T, name, from, to string) {
	t.Helper()
	changed := strings.ReplaceAll(string(w.secret(t, name).Data[registration.KeyKubeconfig]), from, to)
	w.kubectl(t, onSpoke, "", inAgents, "patch", "secret", name, "--type=merge", `-p={"data":{"kubeconfig":"`+base64.StdEncoding.EncodeToString([]byte(changed))+`"}}`)
}

func agentsCA(t *testing.T, w *world) {
	config := w.spoke.AdminConfig()
	other := config.CAData
	if len(other) == 0 {
		other = []byte(harness.Must(readFile(config.CAFile))(t))
	}
	token := w.plugin.Joining(t, "get", "token", "--context", onHub)
	for _, name := range []string{registration.BootstrapSecret, registration.HubKubeconfigSecret} {
		w.change(t, name, token.CA, base64.StdEncoding.EncodeToString(other))
	}
	w.rejoin(t, w.found(t, onSpoke, "HubDistrusted", "secret/"+registration.HubKubeconfigSecret, []string{"not issued by the CA in this kubeconfig", "sha256:"}))
	w.startAgent(t)
	w.podState(t, 1, `{"running": {}}`)
}

func tokenRefused(t *testing.T, w *world) {
	kubeconfig := string(w.secret(t, registration.BootstrapSecret).Data[registration.KeyKubeconfig])
	_, token, _ := strings.Cut(kubeconfig, "token: ")
	token = strings.Fields(token)[0]
	w.change(t, registration.BootstrapSecret, token, "abcdef.0123456789abcdef")
	w.kubectl(t, onSpoke, "", inAgents, "delete", "secret", registration.HubKubeconfigSecret)
	f := w.found(t, onSpoke, "BootstrapTokenRefused", bootstrap, []string{"does not accept its token"})
	w.rejoin(t, f)
}

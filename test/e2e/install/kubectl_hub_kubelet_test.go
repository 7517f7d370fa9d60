// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// kubelet is the one node of a cluster without nodes. It runs the pods of hub-agent as processes: with the flags of the pod,
// and with no rights on the cluster but those of the pod's service account.
type kubelet struct {
	cluster *localhub.Hub
	client  kubernetes.Interface
	node    string
	dir     string
	agent   string
	// flags are further ones of the agent, and out is what all pods have written.
	flags []string
	out   harness.Buffer

	mu   sync.Mutex
	pods map[types.UID]*podProcess
}

type podProcess struct {
	cmd   *exec.Cmd
	out   *harness.Buffer
	probe string
	ended chan struct{}
}

// startKubelet runs until the test ends.
func startKubelet(t *testing.T, cluster *localhub.Hub, flags ...string) *kubelet {
	t.Helper()
	k := &kubelet{cluster: cluster, client: harness.Kube(t, cluster.AdminConfig()), node: "node-1", dir: t.TempDir(), agent: harness.Binary(t, "hub-agent"),
		pods: map[types.UID]*podProcess{}, flags: flags}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}}
	harness.Must(k.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := k.sync(ctx); err != nil && ctx.Err() == nil {
				t.Logf("kubelet: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, p := range k.pods {
			p.stop()
			if t.Failed() {
				t.Logf("a pod of hub-agent said:\n%s", p.out.String())
			}
		}
	})
	return k
}

func (k *kubelet) sync(ctx context.Context) error {
	if err := k.heartbeat(ctx); err != nil {
		return err
	}
	pods, err := k.client.CoreV1().Pods(registration.AgentNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	k.endRemoved(pods.Items)
	for i := range pods.Items {
		if err := k.syncPod(ctx, &pods.Items[i]); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}

// endRemoved ends the pods that were removed without being asked to end first.
func (k *kubelet) endRemoved(there []corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, p := range k.pods {
		if !slices.ContainsFunc(there, func(pod corev1.Pod) bool { return pod.UID == uid }) {
			p.stop()
		}
	}
}

// heartbeat keeps the node lifecycle controller from evicting the pods.
func (k *kubelet) heartbeat(ctx context.Context) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: metav1.Now()}}
	_, err = k.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (k *kubelet) syncPod(ctx context.Context, pod *corev1.Pod) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	pods := k.client.CoreV1().Pods(pod.Namespace)
	p := k.pods[pod.UID]
	switch {
	case pod.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			Target: corev1.ObjectReference{Kind: "Node", Name: k.node}}, metav1.CreateOptions{})
	case pod.DeletionTimestamp != nil:
		if p != nil {
			p.stop()
		}
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	case p == nil:
		var err error
		if p, err = k.start(ctx, pod); err != nil {
			return err
		}
		k.pods[pod.UID] = p
	}
	status := p.status(pod)
	if status.Phase == pod.Status.Phase && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready == status.ContainerStatuses[0].Ready {
		return nil
	}
	pod.Status = status
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (k *kubelet) start(ctx context.Context, pod *corev1.Pod) (*podProcess, error) {
	kubeconfig, err := k.kubeconfig(ctx, pod)
	if err != nil {
		return nil, err
	}
	p := &podProcess{out: &harness.Buffer{}, ended: make(chan struct{})}
	args := slices.Clone(k.flags)
	for _, arg := range pod.Spec.Containers[0].Args {
		// The pod would have a network of its own.
		if arg == "--health-probe-bind-address=:8082" {
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			address := listener.Addr().String()
			_ = listener.Close()
			arg, p.probe = "--health-probe-bind-address="+address, "http://"+address+"/readyz"
		}
		args = append(args, arg)
	}
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), k.agent, append(args, "--spoke-kubeconfig="+kubeconfig)...)
	p.cmd.Stdout = io.MultiWriter(p.out, &k.out)
	p.cmd.Stderr = p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// kubeconfig is how a pod reaches its cluster.
func (k *kubelet) kubeconfig(ctx context.Context, pod *corev1.Pod) (string, error) {
	token, err := k.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	config := k.cluster.AdminConfig()
	file := filepath.Join(k.dir, string(pod.UID))
	return file, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"pod": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "pod"}},
		CurrentContext: "c",
	}, file)
}

func (p *podProcess) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
}

func (p *podProcess) status(pod *corev1.Pod) corev1.PodStatus {
	container := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image}
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: new(metav1.Now())}
	ready := corev1.ConditionFalse
	select {
	case <-p.ended:
		code := p.cmd.ProcessState.ExitCode()
		message := ""
		if status.Phase = corev1.PodSucceeded; code != 0 {
			status.Phase, message = corev1.PodFailed, p.out.String()
		}
		container.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(code), Message: message}
	default:
		container.State.Running = &corev1.ContainerStateRunning{}
		if p.probe == "" || isReady(p.probe) {
			container.Ready, ready = true, corev1.ConditionTrue
		}
	}
	status.ContainerStatuses = []corev1.ContainerStatus{container}
	status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()},
	}
	return status
}

func isReady(probe string) bool {
	client := http.Client{Timeout: time.Second}
	response, err := client.Get(probe)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// logs are what all pods have said.
func (k *kubelet) logs() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all strings.Builder
	for _, p := range k.pods {
		all.WriteString(p.out.String())
	}
	return all.String()
}

// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// Forward forwards a port of this machine to a Service, which has no address here. For each connection it selects a ready pod of the Service. The
// Service need not exist yet. The forwarding ends with the test.
func (k *Kubelet) Forward(namespace, service string, port int32) (address string) {
	k.t.Helper()
	listener, number, err := localserver.Listen()
	if err != nil {
		k.t.Fatal(err)
	}
	k.forward(listener, namespace, service, port)
	return localserver.Address(number)
}

// ForwardFrom is like Forward with an address of this machine, HOST:PORT.
func (k *Kubelet) ForwardFrom(address, namespace, service string, port int32) {
	k.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		k.t.Fatal(err)
	}
	k.forward(listener, namespace, service, port)
}

func (k *Kubelet) forward(listener net.Listener, namespace, service string, port int32) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.t.Context()))
	var serving sync.WaitGroup
	serving.Go(func() {
		serve(ctx, listener, func(ctx context.Context) (net.Conn, error) { return k.endpoint(ctx, namespace, service, port) }, func(err error) {
			k.t.Logf("kubelet: a client of Service %s/%s: %v", namespace, service, err)
		})
	})
	k.t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
}

// Egress returns flags with which a kube-apiserver connects to the Services of this cluster by their names, as if it were a pod here. The egress ends
// with the test.
func (k *Kubelet) Egress() (flags []string) {
	k.t.Helper()
	flags, stop, err := localserver.Egress(func(ctx context.Context, address string) (net.Conn, error) {
		host, number, err := net.SplitHostPort(address)
		name := strings.Split(host, ".")
		port, e := strconv.ParseInt(number, 10, 32)
		if err != nil || e != nil || len(name) != 3 || name[2] != "svc" {
			return nil, fmt.Errorf("%q is not SERVICE.NAMESPACE.svc:PORT", address)
		}
		return k.endpoint(ctx, name[1], name[0], int32(port))
	}).Start()
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(stop)
	return flags
}

// endpoint connects to a pod of a Service.
func (k *Kubelet) endpoint(ctx context.Context, namespace, name string, port int32) (net.Conn, error) {
	service, err := k.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var target *intstr.IntOrString
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			target = &p.TargetPort
		}
	}
	if target == nil || len(service.Spec.Selector) == 0 {
		return nil, fmt.Errorf("it has no port %d, or selects no pods", port)
	}
	pods, err := k.pods.Pods(namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if !isReady(pod) {
			continue
		}
		number := target.IntVal
		for _, c := range pod.Spec.Containers {
			for _, p := range c.Ports {
				if target.Type == intstr.String && p.Name == target.StrVal {
					number = p.ContainerPort
				}
			}
		}
		return k.dialPod(ctx, pod, number)
	}
	return nil, errors.New("no pod of it is ready")
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

func (k *Kubelet) dialPod(ctx context.Context, pod *corev1.Pod, port int32) (net.Conn, error) {
	k.mu.Lock()
	w := k.workers[pod.UID]
	var n *network
	if w != nil {
		n = w.network
	}
	k.mu.Unlock()
	if n == nil {
		return nil, fmt.Errorf("pod %s does not run here", pod.Name)
	}
	return n.dial(ctx, localserver.Address(int(port)))
}
